"""Incomplete listings: what a crawl reports, for each platform whose listings have several pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawler.platforms.coverage import Coverage
from crawler.platforms.microblog.schema import CURSOR
from crawler.platforms.requests import encode_cursor
from crawler.sandbox.microblog.account import Plan
from crawler.sandbox.microblog.site import PLANS
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.retail.site import Site as Retail
from crawler.sandbox.retail.trees import world_id
from crawler.sandbox.videosite.site import Site as VideoSite
from crawler.service.envelope import partial_header, partial_message
from crawler.spiders.microblog import MicroblogSpider
from crawler.targets.warning import OutcomeWarning, add_warning
from tests.crawls import crawl
from tests.spiders.test_details import NOW, scrape
from tests.structured_fields import parse_list

PAGES = 30


@dataclass(frozen=True)
class Case:
    """A listing, and the coverage that a crawl of all its pages reports."""

    platform: str
    params: dict[str, str]
    coverage: Coverage | None
    status: int
    """The exit code of the crawl."""


CASES = (
    Case("retail", {"cat_id": "976759_6837314"}, Coverage(720, 443, ("ceiling",)), 0),
    Case("retail", {"cat_id": "976759_6837314_30279539"}, None, 0),
    Case(
        "retail",
        {"cat_id": world_id("976759", "repeated-page", 1)},
        Coverage(2_160, 399, ("repeated_page", "ceiling")),
        4,
    ),
    Case(
        "retail",
        {"cat_id": world_id("976759", "leads-back", 1)},
        Coverage(2_160, 179, ("repeated_page", "no_end")),
        4,
    ),
    Case("retail", {"query": "classic mustard"}, None, 0),
    Case("videosite", {"username": "@saltmill"}, None, 0),
    Case("videosite", {"username": "@loop"}, Coverage(None, 60, ("no_end",)), 4),
    Case("videosite", {"username": "@blank-page"}, Coverage(None, 30, ("no_end",)), 4),
    Case("videosite", {"username": "@blank-page-once"}, None, 0),
    Case("microblog", {"username": "iron_meadow"}, None, 0),
    Case("microblog", {"username": "half_listed"}, None, 0),
    Case("microblog", {"username": "cut_short"}, Coverage(60, 45, ("no_end",)), 4),
)


@pytest.mark.parametrize("status", [0, 4])
@pytest.mark.parametrize("platform", ["retail", "videosite", "microblog"])
def test_the_last_page_says_what_is_missing(platform: str, status: int, tmp_path: Path) -> None:
    cases = [case for case in CASES if (case.platform, case.status) == (platform, status)]
    targets = tmp_path / "targets.jsonl"
    targets.write_text("\n".join(json.dumps(case.params) for case in cases))
    found, out, failures, log = crawl(tmp_path, "-a", f"targets={targets}", "-a", f"max_pages={PAGES}", spider=platform)
    assert (found, failures) == (status, []), log
    for case in cases:
        lines = [line for line in out if case.params.items() <= line["params"].items()]
        *earlier, last = [[each for each in line["warnings"] if each["reason"] == "incomplete"] for line in lines]
        assert not any(earlier), case
        assert [Coverage.from_dict(each) for each in last] == ([] if case.coverage is None else [case.coverage]), case
    reasons = Counter(reason for case in cases if case.coverage for reason in case.coverage.failures)
    for reason, count in reasons.items():
        assert re.search(rf"'coverage/missing/\w+/{reason}': {count}", log), log


@pytest.mark.parametrize(
    ("stated", "earlier", "missing"),
    [
        (2, 0, ["incomplete timeline: 0 of 2 collected (no_end)"]),
        (0, 0, []),
        (20, 19, ["incomplete timeline: 19 of 20 collected (no_end)"]),
        (20, 20, []),
        (20, None, []),
        (None, 0, ["incomplete timeline: 0 collected (no_end)"]),
    ],
)
def test_an_empty_page_is_the_end_only_if_all_posts_that_the_profile_states_were_read(
    monkeypatch: pytest.MonkeyPatch, stated: int | None, earlier: int | None, missing: list[str]
) -> None:
    monkeypatch.setitem(PLANS, "cut_short", Plan(0, terminated=False, unlisted=stated or 0))
    site, page = Microblog(light=True), Microblog.page

    def without_count(request: FakeRequest) -> FakeResponse:
        status, headers, body = page(site, request)
        return status, headers, re.sub(rb"statuses_count|WriteAction|tweet_counts", b"x", body)

    if stated is None:
        monkeypatch.setattr(site, "page", without_count)
    cursor = {"handle": "cut_short", "user_id": site.account("cut_short").user.id, "cursor": "", "seen": []}
    params: dict[str, Any] = {} if earlier == 0 else {"cursor": encode_cursor(CURSOR, cursor | {"posts": earlier})}
    warnings = scrape(MicroblogSpider, site, NOW, username="cut_short", **params)[2]
    assert [each for each in warnings if "incomplete" in each] == missing


def test_a_run_that_stops_early_reports_nothing(tmp_path: Path) -> None:
    targets = tmp_path / "targets.jsonl"
    targets.write_text('{"cat_id": "976759"}\n{"cat_id": "976759", "page": 12}')
    status, out, _, log = crawl(tmp_path, "-a", f"targets={targets}", "-a", "max_pages=2")
    assert status == 0, log
    assert [line["warnings"] for line in out] == [[], [], []]


# The totals that the sandbox states match its lists


def test_the_shop_states_its_products() -> None:
    shop = Retail()
    for cat_id in ("976759", "4044", "976759_6837314", "880001", world_id("4044", "none", 1)):
        priced, unpriced = shop.products_of(cat_id)
        assert shop.view({"cat_id": cat_id}).total == len(priced | unpriced)


def test_channels_state_their_items() -> None:
    for channel in VideoSite().channels:
        assert channel.total == sum(map(len, channel.items.values()))


def test_accounts_state_their_posts() -> None:
    site = Microblog()
    accounts = [site.account(handle) for handle in PLANS]
    stated = {account.user.handle.lower(): account.user.posts - len(account.posts) for account in accounts}
    hidden = {handle: number for handle, number in stated.items() if number}
    assert hidden.pop("closed_garden") > 0, "a protected account shows no posts"
    assert hidden == {"cut_short": 15, "half_listed": 15}


# The response header and the message


def test_the_header_has_both_numbers_and_the_reasons() -> None:
    warning = OutcomeWarning.of_coverage("timeline", Coverage(60, 45, ("no_end", "repeated_page")))
    (item,) = parse_list(partial_header([warning]))
    assert item == (
        "timeline",
        {
            "reason": "incomplete",
            "code": "EXTRACTION_FAILED",
            "expected": 60,
            "collected": 45,
            "why": "no_end repeated_page",
        },
    )
    assert partial_message([warning]) == "Incomplete: timeline, 45 of 60 collected (no_end, repeated_page)."
    assert OutcomeWarning.from_dict(warning.as_dict()) == warning


def test_a_coverage_is_one_warning_beside_others() -> None:
    warnings: list[OutcomeWarning] = []
    for each in (
        OutcomeWarning("listing", "UPSTREAM_ERROR", "connection"),
        OutcomeWarning.of_coverage("listing", Coverage(5, 4, ("no_end",))),
    ):
        add_warning(warnings, each)
        add_warning(warnings, each)
    assert len(warnings) == 2
