"""Short-video crawls end to end: a real process and a real Chromium, with the sandbox."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

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


@pytest.fixture(autouse=True)
def _chromium() -> None:
    require_chromium()


def crawl(
    tmp_path: Path, spider: str, targets: list[dict[str, Any]], *options: str
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Crawl targets with ids. Return id -> data, id -> failure, and the log."""
    file = tmp_path / "targets.jsonl"
    file.write_text("\n".join(map(json.dumps, targets)))
    given = crawls.options(*QUICK, *options)
    _, out, failures, log = crawls.crawl(tmp_path, "-a", f"targets={file}", *given, spider=spider)
    data = {line["id"]: line["data"] for line in out}
    failed = {line["id"]: line for line in failures}
    assert not data.keys() & failed.keys(), log
    return data, failed, log


VISITED = sorted(FAULTS.keys() - TIMEOUT_FAULTS - QUIET_FAULTS - {"silent-wall"})
OF_EACH_CODE = sorted({FAULTS[name].code: name for name in VISITED}.values())


@pytest.mark.parametrize(
    "names", [OF_EACH_CODE, pytest.param(VISITED, marks=pytest.mark.soak)], ids=["one of each code", "all"]
)
def test_every_fault_has_its_code(tmp_path: Path, names: list[str]) -> None:
    """The fast test visits only one fault of each code, because a page takes a second of processor time."""
    targets = [{"id": name, "keywords": name} for name in names]
    followups = {"login-wall": "UPSTREAM_BLOCKED", "captcha-later": "UPSTREAM_BLOCKED"}
    followups |= {"login-prompt-returns": "UPSTREAM_BLOCKED"}
    followups |= {"login-json-later": "UPSTREAM_BLOCKED", "repeated-page": "UPSTREAM_RATE_LIMITED"}
    targets += [{"id": f"{name} next page", "keywords": name, "cursor": "12"} for name in followups]
    data, failed, log = crawl(tmp_path, "shortvideo", targets)
    found = dict.fromkeys(data, "OK") | {name: line["code"] for name, line in failed.items()}
    expected = {name: FAULTS[name].code for name in names} | {
        f"{name} next page": code for name, code in followups.items()
    }
    assert {name: code for name, code in found.items() if expected[name] != code} == {}, log
    assert found.keys() == expected.keys()
    wrong = [name for name, record in data.items() if record != Site().expected_record({"keywords": name})]
    assert wrong == [], log
    assert "open_contexts=0" in [line for line in log.splitlines() if "browser_page" in line][-1]


def test_quiet_page_ends(tmp_path: Path) -> None:
    targets = [{"id": name, "keywords": name} for name in sorted(QUIET_FAULTS)]
    data, failed, log = crawl(tmp_path, "shortvideo", targets, "BROWSER_QUIET=2")
    assert data == {"raw-controls": Site().expected_record({"keywords": "raw-controls"})}, log
    assert {name: line["code"] for name, line in failed.items()} == {
        name: FAULTS[name].code for name in QUIET_FAULTS - data.keys()
    }, log


def test_rows_in_flight_at_a_login_wall_are_delivered(tmp_path: Path) -> None:
    delays = ("login-wall-100ms", "login-wall-1s", "login-wall-3s")
    data, failed, log = crawl(tmp_path, "shortvideo", [{"id": name, "keywords": name} for name in delays])
    assert failed == {}, log
    assert data == {name: Site().expected_record({"keywords": name}) for name in delays}
    assert all(record["search_item_list"] for record in data.values())


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


def test_rows_beyond_a_visit_are_reported_alike_with_and_without_a_prompt(tmp_path: Path) -> None:
    walls = ("login-wall", "login-prompt-returns", "silent-wall")
    targets = [{"id": name, "keywords": name} for name in walls]
    targets += [{"id": f"{name} next page", "keywords": name, "cursor": "12"} for name in walls]
    data, failed, log = crawl(tmp_path, "shortvideo", targets, "BROWSER_QUIET=3")
    assert data == {name: Site().expected_record({"keywords": name}) for name in walls}, log
    assert all(record["has_more"] for record in data.values())
    assert failed.keys() == {f"{name} next page" for name in walls}, log
    reports = [(line["code"], line["retryable"], line["message"], line["upstream"]) for line in failed.values()]
    assert reports[0][:2] == ("UPSTREAM_BLOCKED", True)
    assert reports == [reports[0]] * 3


def test_row_without_a_mandatory_part_is_left_out_with_a_warning(tmp_path: Path) -> None:
    data, failed, log = crawl(tmp_path, "shortvideo", [{"id": "1", "keywords": "missing-author"}])
    assert failed == {}, log
    assert data["1"] == Site().expected_record({"keywords": "missing-author"})
    unread = [line for line in log.splitlines() if "event=unread" in line]
    assert len(unread) == 2, log  # the id, and the row that is lost without it
    assert all("source=search" in line and "item_list[].author" in line for line in unread)


def test_download_timeout_ends_a_hanging_page(tmp_path: Path) -> None:
    targets = [{"id": "hang", "keywords": "hang"}, {"id": "slow page", "keywords": "results-slow"}]
    data, failed, log = crawl(tmp_path, "shortvideo", targets, "DOWNLOAD_TIMEOUT=12")
    assert (failed["hang"]["code"], failed["hang"]["retryable"]) == ("UPSTREAM_TIMEOUT", True), log
    assert set(data) == {"slow page"}


def test_searches_through_the_browser(tmp_path: Path) -> None:
    targets: list[dict[str, Any]] = [
        {"id": f"{words} {cursor}", "keywords": words, "cursor": cursor, "count": 12}
        for words in ("whales", "مرحبا 🐋", 'quo"tes & <tags>', "#hash")
        for cursor in ("0", "12")
    ]
    data, failed, log = crawl(tmp_path, "shortvideo", targets)
    assert failed == {}, log
    for target in targets:
        assert data[target["id"]] == Site().expected_record(target), target["id"]


def test_retail_falls_back_to_the_browser_if_enabled(tmp_path: Path) -> None:
    ids = {name: cat_id for cat_id, name in Shop().faults.items()}
    names = ("browser-only", "challenge", "forbidden", "gone")
    targets = [{"id": name, "cat_id": ids[name]} for name in names]
    targets += [{"id": "plain", "cat_id": "976759"}, {"id": "search", "query": "browser-only"}]
    data, failed, log = crawl(tmp_path, "retail", targets, "BROWSER_FALLBACK=retail", "BROWSER_QUIET=2")
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


BLOCKING_POST_FAULTS = (
    "browser-only",
    "shell-to-plain",
    "shell",
    "login-redirect",
    "challenge",
    "please-wait",
    "age-gate",
    "gone",
)


@pytest.mark.parametrize(("fallback", "pages"), [("photoapp", 6), ("retail", 0)])
def test_photoapp_falls_back_to_the_browser_if_enabled(tmp_path: Path, fallback: str, pages: int) -> None:
    app = PhotoApp()
    plain = next(code for code in app.listed if app.posts[code].is_video and app.posts[code].timing == "embed")
    token = next(token for token, code in app.shares.items() if code != plain)
    urls = {name: app.url_of_fault(name) for name in (*BLOCKING_POST_FAULTS, "share-login")}
    urls |= {
        name: f"https://www.instagram.com/{path}/" for name, path in (("p", f"p/{plain}"), ("s", f"share/{token}"))
    }
    targets = [{"id": name, "url": url} for name, url in urls.items()]
    data, failed, log = crawl(tmp_path, "photoapp", targets, f"BROWSER_FALLBACK={fallback}", "BROWSER_QUIET=2")
    recovered = {"browser-only", "shell-to-plain"} if pages else set()
    assert data == {name: app.expected_record({"url": urls[name]}) for name in ({"p", "s"} | recovered)}, log
    assert {name: line["code"] for name, line in failed.items()} == {
        name: POST_FAULTS[name].code for name in urls.keys() & POST_FAULTS.keys() - recovered
    }
    assert log.count("event=browser_page") == pages, "a rate limit or a complete post does not use the browser"
    assert "Traceback" not in log


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
