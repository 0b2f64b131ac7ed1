"""Platforms that limit the rate of requests, each with the refusals of the real one: all targets are collected.

The limits are short windows. No test depends on the speed of the machine: a slow crawl does not exceed a limit that its
budget keeps, and the limits that are to be exceeded leave seconds for a handful of requests.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox.limits import Windows
from tests import forks
from tests.browsers import require_chromium
from tests.crawls import command, comparable, lines, sandbox


@cache
def site(platform: str) -> Any:
    return import_module(f"crawler.sandbox.{platform}.site").Site()


def targets(platform: str) -> list[dict[str, Any]]:
    """Return targets of a platform that have data."""
    if platform == "photoapp":
        images = (code for code, post in site(platform).posts.items() if not post.is_video)
        return [{"url": f"https://www.instagram.com/p/{code}/"} for code in images if not code.startswith("FAULT")]
    if platform == "professional":
        return [{"scraper": "professional-profile-v4", "username": slug} for slug in site(platform).members]
    if platform == "retail":
        return [{"query": "mustard", "page": number} for number in range(1, 12)] + [{"cat_id": "976759"}]
    named = {
        "microblog": ("username", ["quiet_harbor", "old_lantern", "iron_meadow", "relay_station", "popular_tide"]),
        "shortvideo": ("keywords", ["whales", "boats", "clouds", "rivers", "stones", "lamps"]),
        "videosite": ("username", ["@harborlights", "@saltmill", "@north.pier", "@ropeworks", "@onlyshorts"]),
    }
    name, values = named[platform]
    shared = {"microblog": "microblog-profile", "videosite": "videosite-profile"}
    scraper = {"scraper": shared[platform]} if platform in shared else {}
    return [{**scraper, name: value} for value in values]


@dataclass
class Run:
    """A crawl that has ended, and the requests that the platform has received."""

    code: int
    records: list[Any]
    failures: list[Any]
    requests: list[Any]
    log: str

    @property
    def limited(self) -> int:
        return sum(request["limited"] for request in self.requests)


def run(folder: Path, platform: str, limit: tuple[int, float], number: int, **settings: Any) -> Run:
    """Crawl the first ``number`` targets of a platform with a limit: a number of requests, and the seconds for them."""
    chosen, out, failures, log = (folder / name for name in ("targets.jsonl", "out.jsonl", "failures.jsonl", "log"))
    rows = targets(platform)[:number]
    assert len(rows) == number
    chosen.write_text("".join(json.dumps({"id": str(n), **row}) + "\n" for n, row in enumerate(rows)))
    with sandbox("--limit", *map(str, limit), "--log", str(log)) as default:
        given = default | {"BREAKER_THRESHOLD": 5, "DOWNLOAD_TIMEOUT": 60, "FAILURES_FEED": failures} | settings
        ended = forks.run(command(platform, {"targets": chosen}, given, "-O", str(out)), timeout=600)
    return Run(ended.returncode, lines(out), lines(failures), lines(log), ended.stderr)


REFUSED = {"microblog": 3, "photoapp": 7, "retail": 7, "videosite": 5}
"""The platforms that refuse with a rate limit, and a number of targets that the limit cannot serve at once."""
LIMIT = (4, 4.0)
COOLDOWN = 4.5


@pytest.mark.parametrize("platform", REFUSED)
def test_targets_above_the_limit_are_collected_later(tmp_path: Path, platform: str) -> None:
    ended = run(tmp_path, platform, LIMIT, REFUSED[platform], BREAKER_COOLDOWN=COOLDOWN)
    assert (ended.code, ended.failures) == (0, []), ended.log[-4_000:]
    assert ended.limited, "the platform has limited the rate"
    assert len({record["id"] for record in ended.records}) == REFUSED[platform]
    if platform in {"photoapp", "retail"}:  # one source, so that nothing may be missing
        for record in ended.records:
            assert comparable(record["data"]) == comparable(site(platform).expected_record(record["params"]))


def test_a_member_whose_page_gets_a_block_is_the_only_one_that_fails(tmp_path: Path) -> None:
    """Such a block ends after an hour. It is not a rate limit, so its target is not requested again."""
    ended = run(tmp_path, "professional", LIMIT, 7, BREAKER_COOLDOWN=COOLDOWN, RETRY_AFTER_MAX=COOLDOWN)
    assert ended.limited
    codes = Counter(failure["code"] for failure in ended.failures)
    assert codes == {"UPSTREAM_BLOCKED": ended.limited}, ended.log[-4_000:]
    assert len(ended.records) == 7 - ended.limited


@pytest.mark.soak
def test_searches_above_the_limit_are_collected_later(tmp_path: Path) -> None:
    require_chromium()
    ended = run(tmp_path, "shortvideo", (12, 15.0), 5, BREAKER_COOLDOWN=15.5)
    assert (ended.code, ended.failures) == (0, []), ended.log[-4_000:]
    assert ended.limited


DELAY, BURST, SECONDS = 0.4, 3, 2.0


@pytest.mark.parametrize(
    ("platform", "number"), [("microblog", 3), ("photoapp", 10), ("professional", 10), ("retail", 10), ("videosite", 5)]
)
def test_a_budget_within_the_limit_meets_no_refusal(tmp_path: Path, platform: str, number: int) -> None:
    # In any time, a budget starts at most burst + time / delay requests. One more may arrive late.
    limit = BURST + int(SECONDS / DELAY) + 1
    budget = {"concurrency": 1, "delay": DELAY, "burst": BURST, "gap": 0, "sources": {}}
    ended = run(tmp_path, platform, (limit, SECONDS), number, PLATFORM_BUDGETS=json.dumps({platform: budget}))
    assert (ended.code, ended.failures, ended.limited) == (0, [], 0), ended.log[-4_000:]
    assert len({record["id"] for record in ended.records}) == number


@pytest.mark.soak
@pytest.mark.parametrize(
    ("platform", "limit"),
    [
        ("microblog", (50, 900.0)),
        ("photoapp", (75, 3_600.0)),
        ("professional", (33, 1_920.0)),
        ("retail", (55, 60.0)),
        ("videosite", (1_000, 3_600.0)),
    ],
)
def test_the_default_budgets_keep_the_limits_that_were_measured(
    tmp_path: Path, platform: str, limit: tuple[int, float]
) -> None:
    """The limits are those of the platforms' pages in docs/platforms. The first minutes use up the bursts."""
    number = {"microblog": 5, "photoapp": 12, "professional": 4, "retail": 12, "videosite": 5}[platform]
    ended = run(tmp_path, platform, limit, number, PLATFORM_BUDGETS="{}")
    assert (ended.code, ended.failures, ended.limited) == (0, [], 0), ended.log[-4_000:]


def test_the_window_of_each_client_is_its_own() -> None:
    windows = Windows(2, 1_000)
    assert [windows.count("a"), windows.count("a"), windows.count("b")] == [0, 0, 0]
    assert 990 < windows.count("a") <= 1_000
    assert windows.count("b") == 0
    assert windows.count("b") > 0


@pytest.mark.parametrize("limit", [("0", "5"), ("5", "0"), ("5", "nan"), ("x", "5"), ("5",)])
def test_other_limits_are_refused(limit: tuple[str, ...]) -> None:
    ended = forks.run([*forks.SCRAPY, "sandbox", "--limit", *limit])
    assert ended.returncode == 2
    assert "--limit" in ended.stderr
