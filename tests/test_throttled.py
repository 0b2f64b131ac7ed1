"""Fifty throttled targets in a row: a crawl stops after a few of them, and the rest stay pending."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import Site as Photoapp
from tests.crawls import crawl

IN_FLIGHT, THRESHOLD, TARGETS = 4, 5, 50


def microblog(fault: str) -> dict[str, str]:
    return {"username": next(handle for handle, name in Microblog().faults.items() if name == fault)}


def photoapp(fault: str) -> dict[str, str]:
    code = next(code for code, name in Photoapp().faults.items() if name == fault)
    return {"url": f"https://www.instagram.com/p/{code}/"}


def crawl_throttled(tmp_path: Path, spider: str, params: dict[str, str], *options: str) -> tuple[int, Any, Any, str]:
    """Crawl fifty targets with the same params, until the crawl gives up."""
    targets = tmp_path / "targets.jsonl"
    targets.write_text("".join(json.dumps({"id": str(n), **params}) + "\n" for n in range(TARGETS)))
    settings = {
        "TARGETS_IN_FLIGHT": IN_FLIGHT,
        "BREAKER_THRESHOLD": THRESHOLD,
        "BREAKER_COOLDOWN": 3_600,
        "BREAKER_GIVE_UP": 1,
        "DOWNLOAD_TIMEOUT": 60,
    }
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return crawl(tmp_path, *given, "-a", f"targets={targets}", *options, spider=spider)


def responses(log: str) -> int:
    found = re.search(r"'downloader/response_count': (\d+)", log)
    return int(found[1]) if found else 0


SITE = "https://www.linkedin.com/in/"


@pytest.mark.parametrize(
    ("spider", "params", "sources", "redirects"),
    [
        ("retail", {"query": "rate-limited"}, 1, 0),
        ("retail", {"query": "challenge"}, 1, 0),
        ("photoapp", photoapp("rate-limited"), 1, 0),
        ("photoapp", photoapp("shell"), 1, 0),
        ("photoapp", photoapp("login-redirect"), 2, 1),
        ("professional", {"url": f"{SITE}rate-limited"}, 1, 0),
        ("professional", {"url": f"{SITE}login-wall"}, 1, 1),
        ("videosite", {"username": "@rate-limited"}, 3, 0),
        ("videosite", {"username": "@consent"}, 3, 0),
        ("microblog", microblog("all-limited"), 3, 0),
        ("microblog", microblog("login-wall"), 3, 1),
        ("shortvideo", {"keywords": "rate-limited"}, 1, 0),
        ("shortvideo", {"keywords": "captcha"}, 1, 0),
    ],
)
def test_ph_2_throttled_targets_stop_a_crawl(
    tmp_path: Path, spider: str, params: dict[str, str], sources: int, redirects: int
) -> None:
    """At most the threshold and the targets in flight are downloaded from each of the sources."""
    code, out, failures, log = crawl_throttled(tmp_path, spider, params, "-a", f"resume={tmp_path / 'state'}")
    assert (code, out) == (1, []), log
    assert "platform_shut" in log
    assert "stayed shut" in log
    codes = Counter(failure["code"] for failure in failures)
    assert codes.keys() <= {"UPSTREAM_BLOCKED", "UPSTREAM_RATE_LIMITED"}, codes
    assert 0 < codes.total() <= THRESHOLD + IN_FLIGHT
    if spider != "shortvideo":  # a browser page has several responses
        tokens = 1 if spider == "microblog" else 0
        assert responses(log) <= (THRESHOLD + IN_FLIGHT) * sources * (1 + redirects) + tokens


def test_ph_2_the_targets_of_a_crawl_that_gave_up_stay_pending(tmp_path: Path) -> None:
    state = ("-a", f"resume={tmp_path / 'state'}")
    params = {"query": "challenge"}
    code, _, first, log = crawl_throttled(tmp_path, "retail", params, *state)
    assert code == 1, log
    code, _, failures, log = crawl_throttled(tmp_path, "retail", params, *state, "-s", "BREAKER_THRESHOLD=0")
    assert code == 4, log
    ids = Counter(failure["id"] for failure in failures)
    assert ids == {str(n): 1 for n in range(TARGETS)}, first


@pytest.mark.parametrize(
    ("spider", "params", "skipped"),
    [
        ("microblog", microblog("timeline-off"), "optional_source_failed .*source=timeline "),
        ("microblog", microblog("embed-limited"), "optional_source_failed .*source=embed "),
        ("microblog", microblog("page-off"), "optional_source_failed .*source=page "),
        ("videosite", {"username": "@bot-check"}, "optional_source_failed .*source=video "),
        ("videosite", {"username": "@no-page"}, "source_fallback .*source=browse "),
        ("photoapp", photoapp("page-walled"), "source_fallback .*source=embed "),  # PH-3
    ],
)
def test_ph_2_a_good_source_beside_a_throttled_one_does_not_reset_its_breaker(
    tmp_path: Path, spider: str, params: dict[str, str], skipped: str
) -> None:
    """All targets have a record; after the threshold they do without the throttled source."""
    code, out, failures, log = crawl_throttled(tmp_path, spider, params, "-s", "VIDEOSITE_ENRICH_MAX=2")
    assert (code, len(out), failures) == (0, TARGETS, []), log
    events = [line for line in log.splitlines() if re.search(skipped, line + " ")]
    refused = [line for line in events if "circuit_open" not in line]
    assert {line for line in events if "circuit_open" in line}, log
    assert THRESHOLD <= len(refused) <= THRESHOLD + IN_FLIGHT, log
