"""Short-video crawls end to end: a real process and a real Chromium, with the sandbox."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawler.components import BROWSER_HANDLER
from crawler.registry import spiders
from crawler.sandbox.photoapp.site import FAULTS as POST_FAULTS
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.sandbox.retail.site import FAULTS as SHOP_FAULTS
from crawler.sandbox.retail.site import Site as Shop
from crawler.sandbox.shortvideo.site import FAULTS, Site
from crawler.spiders.shortvideo import ShortvideoSpider
from crawler.targets.parser import check_params
from crawler.targets.target import Target
from tests import crawls
from tests.browsers import require_chromium

PAGES = 8
QUICK = (
    "DOWNLOAD_TIMEOUT=150",
    "BROWSER_QUIET=20",
    f"BROWSER_PAGES={PAGES}",
    f'PLATFORM_BUDGETS={{"shortvideo": {{"concurrency": {PAGES}}}}}',
)
TIMEOUT_FAULTS = {"hang"}
"""Faults that end only by DOWNLOAD_TIMEOUT. A separate test covers them."""
QUIET_FAULTS = {
    *("empty-body", "forbidden", "no-script", "not-html"),
    *("raw-controls", "results-hang", "results-reset", "unknown-path", "waiting-room-closed"),
}
"""Faults that end by BROWSER_QUIET, because the page receives nothing new. Other tests set a needlessly long time."""


class Crawled(NamedTuple):
    """The results of a crawl: id -> data, id -> failure, and the log."""

    data: dict[str, Any]
    failed: dict[str, Any]
    log: str

    def codes(self) -> dict[str, str]:
        return dict.fromkeys(self.data, "OK") | {name: line["code"] for name, line in self.failed.items()}


def crawl(folder: Path, spider: str, targets: list[dict[str, Any]], *options: str) -> Crawled:
    """Crawl targets with ids, in Chromium."""
    require_chromium()
    file = folder / "targets.jsonl"
    file.write_text("\n".join(map(json.dumps, targets)))
    given = crawls.options(*QUICK, *options)
    _, out, failures, log = crawls.crawl(folder, "-a", f"targets={file}", *given, spider=spider)
    data = {line["id"]: line["data"] for line in out}
    failed = {line["id"]: line for line in failures}
    assert not data.keys() & failed.keys(), log
    return Crawled(data, failed, log)


def searches(names: Iterable[str], followed: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return the targets for the first pages of some searches, and for the next pages of others."""
    further = [{"id": f"{name} next page", "keywords": name, "cursor": "12"} for name in followed]
    return [{"id": name, "keywords": name} for name in names] + further


def expected(names: Iterable[str]) -> dict[str, Any]:
    return {target["id"]: Site().expected_record(target) for target in searches(names)}


VISITED = sorted(FAULTS.keys() - TIMEOUT_FAULTS - QUIET_FAULTS - {"silent-wall"})
OF_EACH_CODE = sorted({FAULTS[name].code: name for name in VISITED}.values())
FOLLOWED = {
    "captcha-later": "UPSTREAM_BLOCKED",
    "login-json-later": "UPSTREAM_BLOCKED",
    "login-prompt-returns": "UPSTREAM_BLOCKED",
    "login-wall": "UPSTREAM_BLOCKED",
    "repeated-page": "UPSTREAM_RATE_LIMITED",
    **dict.fromkeys(("whales", "مرحبا 🐋", 'quo"tes & <tags>', "#hash"), "OK"),
}
"""Keywords -> the outcome of the next page."""
IN_FLIGHT = ("login-wall-100ms", "login-wall-1s", "login-wall-3s")
INCOMPLETE = ("login-prompt-returns", "login-wall", "missing-author")


@pytest.fixture(
    scope="module",
    params=[OF_EACH_CODE, pytest.param(VISITED, marks=pytest.mark.soak)],
    ids=["one fault of each code", "all faults"],
)
def visited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """One crawl for several tests, because a page takes a second of processor time."""
    targets = searches(sorted({*request.param, *IN_FLIGHT, *INCOMPLETE}), FOLLOWED)
    return crawl(tmp_path_factory.mktemp("visited"), "shortvideo", targets)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """A crawl of searches whose pages receive nothing new."""
    targets = searches([*sorted(QUIET_FAULTS), "silent-wall"], ["silent-wall"])
    return crawl(tmp_path_factory.mktemp("quiet"), "shortvideo", targets, "BROWSER_QUIET=3")


def test_every_fault_has_its_code(visited: Crawled) -> None:
    codes = visited.codes()
    following = {f"{name} next page": code for name, code in FOLLOWED.items()}
    assert codes == {name: FAULTS[name].code for name in codes.keys() - following} | following, visited.log
    found = {name: record for name, record in visited.data.items() if name not in following}
    assert found == expected(found), visited.log
    assert "open_contexts=0" in [line for line in visited.log.splitlines() if "browser_page" in line][-1]


def test_a_cursor_continues_a_search_for_any_text(visited: Crawled) -> None:
    texts = [name for name, code in FOLLOWED.items() if code == "OK"]
    for target in searches([], texts):
        assert visited.data[target["id"]] == Site().expected_record(target), target


def test_quiet_page_ends(quiet: Crawled) -> None:
    assert quiet.data == expected(["raw-controls", "silent-wall"]), quiet.log
    assert {name: quiet.codes()[name] for name in QUIET_FAULTS} == {name: FAULTS[name].code for name in QUIET_FAULTS}


def test_rows_in_flight_at_a_login_wall_are_delivered(visited: Crawled) -> None:
    assert all(visited.data[name]["search_item_list"] for name in IN_FLIGHT)


def test_only_a_login_prompt_is_closed_and_only_once(tmp_path: Path) -> None:
    closed = {"login-prompt", "login-prompt-returns", "other-dialogs"}
    walls = {"captcha", "captcha-later", "captcha-over-login", "login-wall", "login-wall-at-once"}
    targets = [{"id": name, "keywords": name} for name in sorted(closed | walls | {"captcha-mount"})]
    with crawls.sandbox() as simulated:
        options = ("SANDBOX=0", f"PLATFORM_ORIGINS={simulated['PLATFORM_ORIGINS']}", "BROWSER_SCROLL_PAUSE=0")
        origin = json.loads(simulated["PLATFORM_ORIGINS"])["shortvideo"]
        data, failed, log = crawl(tmp_path, "shortvideo", targets, *options)
        with urllib.request.urlopen(f"{origin}/__world__") as world:  # noqa: S310  # loopback
            clicks = json.load(world)["clicks"]
    assert clicks == {f"{name}: login": 1 for name in closed}, log
    assert data == {name: Site().expected_record({"keywords": name}) for name in (*closed, *data)}, log
    assert {name: line["code"] for name, line in failed.items()} == {
        "captcha": "UPSTREAM_BLOCKED",
        "captcha-over-login": "UPSTREAM_BLOCKED",
        "login-wall-at-once": "UPSTREAM_BLOCKED",
    }


def test_rows_beyond_a_visit_are_reported_alike_with_and_without_a_prompt(visited: Crawled, quiet: Crawled) -> None:
    data, failed = visited.data | quiet.data, visited.failed | quiet.failed
    walls = ("login-wall", "login-prompt-returns", "silent-wall")
    assert all(data[name]["has_more"] for name in walls)
    lines = [failed[f"{name} next page"] for name in walls]
    reports = [(line["code"], line["retryable"], line["message"], line["upstream"]) for line in lines]
    assert reports[0][:2] == ("UPSTREAM_BLOCKED", True)
    assert reports == [reports[0]] * 3


def test_max_pages_continues_a_search_until_a_visit_is_cut_off(tmp_path: Path) -> None:
    """A visit that ends early says so, whether or not the next page was wanted (docs/completeness.md)."""
    require_chromium()
    file, warnings = tmp_path / "targets.jsonl", {}
    targets = [{"id": "whole", "keywords": "whales", "count": 12}, *searches(["login-wall", "captcha-later"])]
    file.write_text("\n".join(map(json.dumps, targets)))
    for pages in (1, 3):
        given = (f"targets={file}", f"max_pages={pages}")
        arguments = [part for each in given for part in ("-a", each)]
        status, out, failed, log = crawls.crawl(tmp_path, *arguments, *crawls.options(*QUICK), spider="shortvideo")
        assert (status, failed) == (0 if pages == 1 else 4, []), log
        for line in out:
            shown = [each["reasons"] if each["reason"] == "incomplete" else each["reason"] for each in line["warnings"]]
            warnings[pages, line["params"]["keywords"], line["params"]["cursor"]] = shown
    assert warnings == {
        (1, "whales", "0"): [],
        (1, "login-wall", "0"): ["login_wall"],
        (1, "captcha-later", "0"): ["challenge"],
        (3, "whales", "0"): [],
        (3, "whales", "12"): [],
        (3, "whales", "24"): [],
        (3, "login-wall", "0"): ["login_wall", ["no_end"]],
        (3, "captcha-later", "0"): ["challenge", ["no_end"]],
    }


def test_row_without_a_mandatory_part_is_left_out_with_a_warning(visited: Crawled) -> None:
    unread = [line for line in visited.log.splitlines() if "event=unread" in line and "author" in line]
    assert len(unread) == 2, visited.log  # the id, and the row that is lost without it
    assert all("source=search" in line and "item_list[].author" in line for line in unread)


def test_download_timeout_ends_a_hanging_page(tmp_path: Path) -> None:
    targets = [{"id": "hang", "keywords": "hang"}, {"id": "slow page", "keywords": "results-slow"}]
    data, failed, log = crawl(tmp_path, "shortvideo", targets, "DOWNLOAD_TIMEOUT=24", "RETRY_TIMES=0")
    assert (failed["hang"]["code"], failed["hang"]["retryable"]) == ("UPSTREAM_TIMEOUT", True), log
    assert set(data) == {"slow page"}


def test_retail_falls_back_to_the_browser_if_enabled(tmp_path: Path) -> None:
    ids = {name: cat_id for cat_id, name in Shop().faults.items()}
    names = ("browser-only", "challenge", "forbidden", "gone")
    targets = [{"id": name, "cat_id": ids[name]} for name in names]
    targets += [{"id": "plain", "cat_id": "976759"}, {"id": "search", "query": "browser-only"}]
    data, failed, log = crawl(tmp_path, "retail", targets, "BROWSER_FALLBACK=retail", "BROWSER_QUIET=5")
    assert data.keys() == {"browser-only", "plain", "search"}, log
    assert data["browser-only"] == Shop().expected_record({"cat_id": ids["browser-only"]})
    assert data["search"] == Shop().expected_record({"query": "browser-only"})
    assert {name: line["code"] for name, line in failed.items()} == {
        name: SHOP_FAULTS[name].code for name in ("challenge", "forbidden", "gone")
    }
    assert log.count("event=browser_page") == 4, "a missing page is not fetched again in the browser"


def test_a_page_that_reloads_itself_in_the_browser_keeps_the_cookies_of_the_request(tmp_path: Path) -> None:
    """Without the cookie that declines it, the video site's simulated pages are its consent request."""
    targets = [{"id": "a", "username": "@browser-only", "details": "none"}]
    data, failed, log = crawl(tmp_path, "videosite", targets, "BROWSER_FALLBACK=videosite", "BROWSER_QUIET=8")
    assert (list(data), failed, log.count("event=browser_page")) == (["a"], {}, 1), log


def test_photoapp_falls_back_to_the_browser_if_enabled(tmp_path: Path) -> None:
    app = PhotoApp()
    faults = ("browser-only", "shell-to-plain", "shell", "login-redirect", "challenge", "please-wait", "age-gate")
    plain = next(code for code in app.listed if app.posts[code].is_video and app.posts[code].timing == "embed")
    token = next(token for token, code in app.shares.items() if code != plain)
    urls = {name: app.url_of_fault(name) for name in (*faults, "gone", "share-login")}
    urls |= {
        name: f"https://www.instagram.com/{path}/" for name, path in (("p", f"p/{plain}"), ("s", f"share/{token}"))
    }
    targets = [{"id": name, "url": url} for name, url in urls.items()]
    crawled = crawl(tmp_path, "photoapp", targets, "BROWSER_FALLBACK=photoapp", "BROWSER_QUIET=5")
    recovered = ("browser-only", "shell-to-plain")
    assert crawled.data == {name: app.expected_record({"url": urls[name]}) for name in ("p", "s", *recovered)}
    assert crawled.codes() == {name: "OK" if name in crawled.data else POST_FAULTS[name].code for name in urls}
    assert crawled.log.count("event=browser_page") == 6, "a rate limit or a complete post does not use the browser"
    assert "Traceback" not in crawled.log


@pytest.mark.parametrize(
    ("given", "pause"), [({}, 1.0), ({"BROWSER_SCROLL_PAUSE": 2.5}, 2.5), ({"SANDBOX": True}, 0.0)]
)
def test_a_browser_scrolls_as_a_visitor_does_but_not_in_the_sandbox(given: dict[str, Any], pause: float) -> None:
    spider, scraper = ShortvideoSpider(), ShortvideoSpider.scrapers[0]
    spider.settings = get_project_settings()
    spider.settings.update(given, priority="cmdline")
    request = spider.request(Target("1", scraper, check_params(scraper, {"keywords": "whales"})))
    assert request.meta["page_session_factory"]().pause == pause


@pytest.mark.parametrize(
    ("fallback", "expected"),
    [([], {"shortvideo"}), (["retail"], {"shortvideo", "retail"}), ("retail", {"shortvideo", "retail"})],
)
def test_only_spiders_with_browser_use_have_the_handler(fallback: object, expected: set[str]) -> None:
    found = set()
    for name, spider in spiders().items():
        settings: Settings = get_project_settings()
        settings.set("BROWSER_FALLBACK", fallback, priority="cmdline")
        spider.update_settings(settings)
        handlers = settings.getdict("DOWNLOAD_HANDLERS")
        found |= {name} if BROWSER_HANDLER in (handlers.get("http"), handlers.get("https")) else set()
    assert found == expected
