"""Unread parts of payloads appear in every output of a crawl, a probe and the endpoint."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.reading.contract import Unread
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from crawler.service.envelope import MAX_UNREAD, Call, success
from crawler.targets.warning import OutcomeWarning
from tests import forks
from tests.changed_shop import BEFORE, CHANGED, RATING, RENAMED, TILES, UNKNOWN, changed
from tests.crawls import QUICK, lines
from tests.monitoring.test_progress import on_terminal
from tests.service.client import CATEGORY, SEARCH, Reply, call
from tests.service.conftest import Service, running
from tests.service.metrics_of import value
from tests.structured_fields import parse_list

SCRAPER = "retail-search-v4"
PRODUCTS, ROWS = 53, 58
"""A page's numbers of products (three advertised) and of rows (including three placeholders and two new tiles).
"""
CODE = {"code": "EXTRACTION_FAILED", "reason": "unread"}
RATING_LINE = {
    "source": "search",
    **CODE,
    "path": RATING,
    "cause": "missing",
    "rows": PRODUCTS,
    "of": PRODUCTS,
    "loses_rows": False,
    "names": [],
}
UNKNOWN_LINE = {
    "source": "search",
    **CODE,
    "path": UNKNOWN,
    "cause": "unknown",
    "rows": 2,
    "of": ROWS,
    "loses_rows": True,
    "names": ["NewTile", r"Tile\x1b[2J"],
}
RATING_TEXT = f"{RATING}: missing in 53 of 53"
UNKNOWN_TEXT = f"{UNKNOWN}: unknown in 2 of 58 (NewTile, Tile\\x1b[2J), not collected"


def scrapy(*arguments: str) -> tuple[int, str, str]:
    """Run a command with a changed simulated shop. Return its exit code, output and log."""
    command = [sys.executable, "-m", "scrapy", *arguments]
    run = forks.run(command, before=BEFORE)
    return run.returncode, run.stdout, run.stderr


def crawl(folder: Path, queries: list[str], *options: str) -> tuple[int, list[Any], str]:
    """Crawl a targets file. Return the exit code, the lines of the feed and the log."""
    targets, out, failures = folder / "targets.jsonl", folder / "out.jsonl", folder / "failures.jsonl"
    targets.write_text("".join(json.dumps({"id": f"{n}", "query": q}) + "\n" for n, q in enumerate(queries)))
    settings = ("-s", "SANDBOX=1", "-s", f"FAILURES_FEED={failures}", *QUICK)
    code, _, log = scrapy("crawl", "retail", "-a", f"targets={targets}", *settings, "-O", str(out), *options)
    assert lines(failures) == [], log
    return code, lines(out), log


# A crawl


def test_a_crawl_warns_of_a_renamed_key_in_all_outputs(tmp_path: Path) -> None:
    database = tmp_path / "out.db"
    code, out, log = crawl(tmp_path, [RENAMED, "mustard", RENAMED], "-O", f"sqlite:///{database}")
    assert code == 0, "an unread value leaves the exit code 0"
    assert {line["id"]: line["warnings"] for line in out} == {"0": [RATING_LINE], "1": [], "2": [RATING_LINE]}
    stored = sqlite3.connect(database).execute("SELECT warnings FROM retail_search_v4")
    assert [RATING_LINE] in [json.loads(text) for (text,) in stored]
    (logged,) = re.findall(r"event=unread .*", log)
    assert "warning" in log[: log.index(logged)].splitlines()[-1].casefold(), "the level"
    for fact in ("platform=retail", "source=search", f"path={RATING}", "cause=missing", "rows=53", "of=53", "names="):
        assert fact in logged
    assert re.search(r"event=targets_done .*total=3 partial=2 ", log)
    assert re.search(rf"'unread/search/{re.escape(RATING)}': 2[,}}]", log)
    assert "unread_rows" not in log
    assert "sources/failed" not in log


def test_rows_that_are_not_collected_make_the_exit_code_4(tmp_path: Path) -> None:
    code, out, log = crawl(tmp_path, [TILES, TILES])
    assert code == 4
    assert [line["warnings"] for line in out] == [[UNKNOWN_LINE]] * 2
    assert len(re.findall(r"event=unread ", log)) == 1, "one line per path and run"
    assert f"'unread_rows/search/{UNKNOWN}': 4" in log
    assert "\x1b" not in log


def test_the_summary_has_the_paths(tmp_path: Path) -> None:
    command = [*forks.SCRAPY, "crawl", "retail", "-a", f"query={CHANGED}", "-s", "SANDBOX=1", *QUICK]
    shown = on_terminal([*command, "-O", str(tmp_path / "out.jsonl")], before=BEFORE).replace("\r\n", "\n")
    *_, summary = shown.partition("retail: ")
    assert summary.splitlines()[1:] == [
        "  partial:    1 with data lacks a part of it, as its warnings say",
        f"  unread:     1 with {RATING} of search",
        f"  unread:     1 with {UNKNOWN} of search (2 rows not collected)",
        f"  data:       {tmp_path}/out.jsonl (1 line)",
        ("  next:       the platform may have changed its pages: scrapy extract --unread --suggest (docs/repair.md)"),
    ]


# A probe and saved responses


def test_a_probe_prints_the_paths() -> None:
    code, out, log = scrapy("probe", SCRAPER, "-a", f"query={CHANGED}", "-s", "SANDBOX=1")
    assert code == 0, log
    assert [line for line in out.splitlines() if line.startswith("WARNING")] == [
        f"WARNING    unread in search: {UNKNOWN_TEXT}",
        f"WARNING    unread in search: {RATING_TEXT}",
    ]


def test_extract_prints_the_paths(tmp_path: Path) -> None:
    saved = tmp_path / "saved.html"
    saved.write_bytes(changed(Site(light=True).page(FakeRequest("/search", {"q": "mustard"}))[2], RENAMED))
    code, out, log = scrapy("extract", SCRAPER, str(saved), "-a", "query=mustard")
    assert code == 0, log
    assert json.loads(out)["products"]
    products = len(json.loads(out)["products"])
    assert f"Warning: unread in search: {RATING}: missing in {products} of {products}" in log.splitlines()


# The endpoint


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    log = tmp_path_factory.mktemp("unread") / "log"
    with running(log, "BREAKER_THRESHOLD=1", before=BEFORE) as started:
        yield started


def ask(service: Service) -> Reply:
    return call(service.url, SEARCH, {"query": CHANGED})


HEADER = [
    (
        "search",
        {**CODE, "path": UNKNOWN.replace("…", "..."), "cause": "unknown", "rows": 2, "of": ROWS, "loses_rows": True},
    ),
    ("search", {**CODE, "path": RATING, "cause": "missing", "rows": PRODUCTS, "of": PRODUCTS}),
]


def test_a_response_names_the_paths(service: Service) -> None:
    paths = {path: value(service.url, "crawler_unread_total", **labels(path)) for path in (RATING, UNKNOWN)}
    for reply in (ask(service), ask(service)):
        message = f"Could not be read: {UNKNOWN_TEXT}; {RATING_TEXT}."
        assert reply.body["status"] == {"code": "OK", "message": message, "retryable": False}
        assert parse_list(reply.headers["x-partial"]) == HEADER
    for path, before in paths.items():
        assert value(service.url, "crawler_unread_total", **labels(path)) == before + 2
    failures = {"platform": "retail", "source": "search", "reason": "unread"}
    assert value(service.url, "crawler_source_failures_total", **failures) == 0, "the source did not fail"
    assert len(re.findall(rf"event=unread .*{re.escape(RATING)}", service.logged())) == 1


def test_a_response_names_the_params_that_the_page_does_not_prove(service: Service) -> None:
    prices = {"min_price": 20, "max_price": 30}
    reply = call(service.url, SEARCH, {"query": "no-prices", **prices})
    assert reply.body["data"]["products"]
    assert "Not confirmed by the page: min_price, max_price." in reply.body["status"]["message"]
    assert "reason=unproven" in reply.headers["x-partial"]
    assert "x-partial" not in call(service.url, CATEGORY, {"cat_id": "976759", **prices}).headers


def labels(path: str) -> dict[str, str]:
    return {"platform": "retail", "source": "search", "path": path}


# The response header and the message


def unread(number: int, *, loses_rows: bool = False) -> OutcomeWarning:
    return OutcomeWarning.of_unread("page", Unread(f"rows[].key{number}", "missing", 1, 2, loses_rows=loses_rows))


@pytest.mark.parametrize("number", [1, MAX_UNREAD, MAX_UNREAD + 1, 500])
def test_header_and_message_are_bounded_and_name_the_number_of_other_paths(number: int) -> None:
    failed = OutcomeWarning("feed", "UPSTREAM_ERROR", "no_feed")
    warnings = (*(unread(n) for n in range(number)), failed, unread(999, loses_rows=True))
    answer = success(Call(), {}, warnings)
    message, more = json.loads(answer.body)["status"]["message"], max(0, number + 1 - MAX_UNREAD)
    items = parse_list(answer.headers["X-Partial"])
    assert items[0] == ("feed", {"reason": "no_feed", "code": "UPSTREAM_ERROR"})
    assert [parameters["path"] for _, parameters in items[1:]] == [
        "rows[].key999",
        *(f"rows[].key{n}" for n in range(min(number, MAX_UNREAD - 1))),
    ], "rows that are not in the record come first"
    assert [parameters.get("more") for _, parameters in items] == [None] * (len(items) - 1) + [more or None]
    assert message.startswith("Completed without: feed. Could not be read: rows[].key999: missing in 1 of 2, not coll")
    assert message.endswith(f"; and {more} more." if more else f"key{number - 1}: missing in 1 of 2.")
    assert len(answer.headers["X-Partial"]) < 1_500
    assert answer.partial
