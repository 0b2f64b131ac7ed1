"""Each row of the tables *Refusals* in docs/errors.md and docs/platforms: what a crawl does with such pages."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from crawler.commands.extract import extract
from crawler.errors import ExtractionFailed, ScrapeError
from crawler.platforms import platforms
from crawler.registry import scrapers
from scripts import captures
from scripts.golden.extracts import SCRAPERS
from tests.browsers import require_chromium
from tests.crawls import ROOT
from tests.refusals.crawls import RETRY_TIMES, Refusal, Replayed, recorded, replay, replay_each, simulated
from tests.refusals.server import Page

CONSEQUENCES = ("breaker", "requests", "exit code", "alerts")
OF_CODES = ("code", *CONSEQUENCES)
OF_ALL = ("code", "reason", "mark", "platforms", "simulated", "differs")
OWN = ("code", "reason", "mark", "recorded page", "simulated", "differs")
PLATFORMS = sorted(platforms())
PATHS = {"photoapp": "/p/Example0001/", "professional": "/in/example-member"}
"""Platform -> path of a saved page, for the platforms whose page objects take the path ``/`` for a block."""


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    code: str
    reason: str
    recorded: Mapping[str, int]
    """Name of a recorded page -> its HTTP status."""
    simulated: str
    """The name of the fault of the simulated platform, or ""."""
    breaker: str
    requests: int
    exit: int
    alerts: frozenset[str]


@cache
def rows(platform: str) -> list[Row]:
    """Read the rows of a platform: its own, and those of all platforms."""
    lacking = f"all but `{platform}`"
    common = [each for each in table("errors.md", OF_ALL) if each["platforms"] != lacking]
    return [row(each) for each in (*table(f"platforms/{platform}.md", OWN), *common)]


@cache
def table(page: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of the table of a page that has these columns."""
    lines = (ROOT / "docs" / page).read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if cells(line) == columns) + 2
    found = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    return [dict(zip(columns, cells(line), strict=True)) for line in found]


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))


def row(written: Mapping[str, str]) -> Row:
    """Read a row: what it does not state is as for its code."""
    named = re.findall(r"`([0-9a-f]{12}(?: #\d+)?)`(?: \((\d+)\))?", written.get("recorded page", ""))
    assert written["mark"]
    assert named or written["simulated"], written
    of_code = next(each for each in table("errors.md", OF_CODES) if written["code"] in each["code"].split(", "))
    stated = dict(each.split(": ") for each in filter(None, written["differs"].split("; ")))
    assert stated.keys() <= set(CONSEQUENCES), written
    assert not stated.items() & of_code.items(), written
    breaker, requests, exit_code, alerts = (stated.get(each, of_code[each]) for each in CONSEQUENCES)
    return Row(
        written["code"].strip("`"),
        written["reason"].strip("`"),
        {name: int(status or 200) for name, status in named},
        written["simulated"].strip("`"),
        breaker,
        1 + RETRY_TIMES if "RETRY_TIMES" in requests else int(requests),
        int(exit_code),
        frozenset(re.findall(r"`(\w+)`", alerts)),
    )


def given(platform: str) -> Iterator[tuple[Row, Refusal]]:
    """Yield the refusals that are replayed, with their rows: recorded pages, where they are present, and faults."""
    for each in rows(platform):
        for name, status in each.recorded.items() if captures.captures() else ():
            yield each, recorded(platform, name, status)
        if each.simulated:
            yield each, simulated(platform, each.simulated)


def batches(refusals: list[Refusal]) -> Iterator[list[Refusal]]:
    """Yield the refusals in groups without repeated params: a repeated target would not be requested again."""
    while refusals:
        first = {str(each.params): each for each in reversed(refusals)}
        yield [each for each in refusals if first[str(each.params)] is each]
        refusals = [each for each in refusals if first[str(each.params)] is not each]


@cache
def alert_selectors() -> dict[str, set[tuple[str, str]]]:
    """Return the alerts with the labels of the failures that they count: ``code`` or ``alarm``, and its value."""
    groups = yaml.safe_load((ROOT / "deploy/compose/alerts.yml").read_text())["groups"]
    return {
        rule["alert"]: {
            (label, value)
            for label, values in re.findall(r'\b(code|alarm)=~?"([^"]+)"', rule["expr"].splitlines()[0])
            for value in values.split("|")
        }
        for group in groups
        for rule in group["rules"]
    }


def alerts_of(code: str, alarm: str) -> frozenset[str]:
    """Return the alerts that count a failure."""
    return frozenset(name for name, of in alert_selectors().items() if of & {("code", code), ("alarm", alarm)})


def differences(expected: Row, refusal: Refusal, found: Replayed, exit_code: int) -> list[str]:
    """Return what a crawl did with a refusal that the row does not say."""
    pages = [page for page in found.pages if (page["code"], page["reason"]) == (expected.code, expected.reason)]
    if not pages:
        return [f"{refusal.name}: {[(page['source'], page['code'], page['reason']) for page in found.pages]}"]
    source = refusal.page.source if refusal.page else pages[0]["source"]
    facts = {
        "breaker": ({page["breaker"] for page in pages}, {expected.breaker}),
        "requests": (found.requests.get(source), expected.requests),
        "alerts": ({alerts_of(page["code"], page["alarm"]) for page in pages}, {expected.alerts}),
        "exit code": (0 if found.outcome["outcome"] == "OK" else exit_code, expected.exit),
        "mark": (is_marked(pages[0]), True),
    }
    return [f"{refusal.name}: {name} {is_}, not {says}" for name, (is_, says) in facts.items() if is_ != says]


def is_marked(page: dict[str, Any]) -> bool:
    """Whether the error of a page quotes its mark, if it is a statement about the target. A status may be the mark."""
    return not page["code"].startswith("TARGET_") or bool(page["details"]) or page["status"] in {404, 410}


@pytest.mark.parametrize(
    "platform", [pytest.param(name, marks=[pytest.mark.soak] * (name == "shortvideo")) for name in PLATFORMS]
)
def test_a_crawl_does_with_a_refusal_what_its_row_says(tmp_path: Path, platform: str) -> None:
    if platform == "shortvideo":
        require_chromium()
    all_given = list(given(platform))
    crawled: dict[Path, tuple[int, list[Refusal]]] = {}
    # A page that says nothing about the breaker is not replayed beside one that opens it.
    for exit_code, effect in sorted({(each.exit, each.breaker) for each, _ in all_given}):
        of = {refusal.name: refusal for each, refusal in all_given if (each.exit, each.breaker) == (exit_code, effect)}
        for number, batch in enumerate(batches(list(of.values()))):
            folder = tmp_path / f"{exit_code}-{effect}-{number}"
            folder.mkdir()
            crawled[folder] = exit_code, batch
    replayed = replay_each(platform, {folder: batch for folder, (_, batch) in crawled.items()})
    wrong: list[str] = []
    for (exit_code, batch), (status, found, log) in zip(crawled.values(), replayed, strict=True):
        assert status == exit_code, log[-3_000:]
        for each, refusal in all_given:
            wrong += differences(each, refusal, found[refusal.name], status) if refusal in batch else []
    assert "\n".join(wrong) == ""


@pytest.mark.skipif(not captures.CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are missing")
@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_recorded_refusal_is_in_the_table(platform: str) -> None:
    """A page that can be read, or has an unknown form or layout, is no refusal."""
    named = {name for each in rows(platform) for name in each.recorded}
    files = [name for name, file in captures.captures().items() if platform in file.parts]
    assert {name for name in files if is_refusal(platform, name)} <= {name.partition(" ")[0] for name in named}


def is_refusal(platform: str, name: str) -> bool:
    """Whether all scrapers end with a statement about the target or the visitor, or with another form of answer."""
    body, url = captures.body_of(name), platforms()[platform].origin + PATHS.get(platform, "/")
    errors = [error_of(scraper, body, url) for scraper in SCRAPERS[platform]]
    return all(
        error is not None and (not isinstance(error, ExtractionFailed) or error.alarm == "")
        for error in errors
        if error is None or error.reason != "unknown_form"
    ) and any(error is not None and error.reason != "unknown_form" for error in errors)


def error_of(scraper: str, body: bytes, url: str) -> ScrapeError | None:
    """Return the error of a saved response, or None."""
    try:
        asyncio.run(extract(scrapers()[scraper], [body], {}, url=url))
    except ScrapeError as error:
        return error
    return None


def test_a_page_is_kept_if_it_has_something_to_read(tmp_path: Path) -> None:
    """A null result has nothing to read, and a shell is a statement about the visitor."""
    faults = ("null-post", "stub", "no-data", "blind", "shell", "age-gate")
    _, found, _ = replay("photoapp", [simulated("photoapp", fault) for fault in faults], tmp_path)
    assert {name: one.kept for name, one in found.items() if one.kept} == {
        "null-post": ["no_data_block"],  # the embed page, which is requested after the null result
        "stub": ["stub"],
        "no-data": ["unknown_form"],
        "blind": ["blind"],
    }


# Many throttled targets

THROTTLED, IN_FLIGHT, THRESHOLD = 60, 4, 5
SHELL = "9c42b6d6b023"
"""The recorded page of a throttled visitor: the post's page, whole, without the result of any query."""


def recorded_shells() -> list[Refusal]:
    """Return targets that get the recorded page, each with its own shortcode in place of the recorded one."""
    body = captures.body_of(SHELL)
    shown = recorded("photoapp", SHELL).params["url"].split("/")[-2]
    codes = [f"Throttled{number:02}" for number in range(THROTTLED)]
    return [
        Refusal(
            code,
            "photoapp",
            {"url": f"https://www.instagram.com/p/{code}/"},
            Page("page", body.replace(shown.encode(), code.encode())),
        )
        for code in codes
    ]


def simulated_shells() -> list[Refusal]:
    """Return targets that get the sandbox's page of a throttled visitor."""
    url = simulated("photoapp", "shell").params["url"]
    codes = [f"FAULT{number:03}" for number in range(THROTTLED)]
    return [Refusal(code, "photoapp", {"url": url.replace("FAULT000", code)}) for code in codes]


@pytest.mark.parametrize(
    "shells",
    [
        pytest.param(
            recorded_shells,
            marks=pytest.mark.skipif(not captures.captures(), reason="the recorded pages (../shared) are missing"),
        ),
        simulated_shells,
    ],
)
def test_throttled_pages_open_the_breaker_and_no_target_is_requested_twice(
    tmp_path: Path, shells: Callable[[], list[Refusal]]
) -> None:
    settings = {
        "REPLAY_OWN_BREAKERS": True,
        "TARGETS_IN_FLIGHT": IN_FLIGHT,
        "BREAKER_THRESHOLD": THRESHOLD,
        "BREAKER_COOLDOWN": 3_600,
        "BREAKER_GIVE_UP": 1,
    }
    status, found, log = replay("photoapp", shells(), tmp_path, **settings)
    assert status == 1
    assert "platform_shut" in log
    refused = [each for each in found.values() if each.requests]
    assert {(each.outcome["outcome"], each.outcome["reason"]) for each in refused} == {
        ("UPSTREAM_RATE_LIMITED", "throttled_shell")
    }
    assert {name for each in refused for name in each.requests} == {"page"}
    assert {number for each in refused for number in each.requests.values()} == {1}
    assert THRESHOLD <= len(refused) < THRESHOLD + IN_FLIGHT
