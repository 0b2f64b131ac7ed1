"""Warnings: the failure of each optional source of each platform appears in all outputs of crawls and the endpoint."""

from __future__ import annotations

import ast
import csv
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawler.reading.contract import Unread
from crawler.registry import scrapers, spider_for
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.sandbox.shortvideo.site import Site as ShortVideo
from crawler.sandbox.videosite.site import Site as VideoSite
from crawler.service.envelope import partial_header
from crawler.targets.warning import OutcomeWarning
from tests import forks
from tests.crawls import ROOT, comparable, crawl, options
from tests.service.client import Reply, call
from tests.service.conftest import Service, running
from tests.service.metrics_of import value
from tests.structured_fields import parse_list

SITES = {"microblog": Microblog(), "photoapp": PhotoApp(), "videosite": VideoSite(), "shortvideo": ShortVideo()}
SCRAPERS = {each.platform: spider_for(each).scrapers[0] for each in scrapers().values()}
"""The first scraper of each platform's spider."""
SETTINGS = ("PHOTOAPP_PLAY_COUNTS=1", "SOURCE_TIMEOUT=30", "DOWNLOAD_TIMEOUT=30", "RETRY_TIMES=1")


CUT = ("continuation", "EXTRACTION_FAILED", "incomplete")
"""The warning that the list of a tab is incomplete."""


@dataclass(frozen=True)
class Case:
    """A target with a fault of the sandbox, and the expected warnings as (source, code, reason)."""

    platform: str
    fault: str
    warnings: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return f"{self.platform} {self.fault}"

    @property
    def params(self) -> dict[str, Any]:
        if self.platform == "microblog":
            return {"username": next(handle for handle, name in Microblog().faults.items() if name == self.fault)}
        if self.platform == "photoapp":
            return {"url": PhotoApp().url_of_fault(self.fault)}
        if self.platform == "videosite":
            return {"username": self.fault, "include_about": self.fault != "no-playlist"}
        return {"keywords": self.fault}

    @property
    def failed(self) -> list[tuple[str, str, str]]:
        """The warnings about sources that failed, which are all but those about an incomplete listing."""
        return [each for each in self.warnings if each != CUT]

    @property
    def objects(self) -> list[dict[str, str]]:
        return [{"source": source, "code": code, "reason": reason} for source, code, reason in self.warnings]

    def expected_record(self) -> Any:
        plays = {"plays": "1"} if self.platform == "photoapp" else {}
        return comparable(SITES[self.platform].expected_record(self.params | plays))  # type: ignore[attr-defined]


BLOCKED = ("UPSTREAM_BLOCKED", "refused")
CASES = [
    Case("microblog", "page-off", (("page", *BLOCKED),)),
    Case("microblog", "embed-off", (("embed", *BLOCKED),)),
    Case("microblog", "timeline-off", (("timeline", *BLOCKED),)),
    Case("microblog", "stale-ids", (("timeline", "EXTRACTION_FAILED", "stale_query_id"),)),
    Case("microblog", "only-embed", (("page", *BLOCKED), ("timeline", *BLOCKED))),
    Case("microblog", "only-page", (("embed", *BLOCKED), ("user", *BLOCKED), ("timeline", *BLOCKED))),
    Case("photoapp", "embed-forbidden", (("embed", *BLOCKED),)),
    Case("photoapp", "reels-forbidden", (("reels", *BLOCKED),)),
    Case("photoapp", "page-walled", (("page", "UPSTREAM_BLOCKED", "login_wall"),)),
    Case("videosite", "no-feed", (("feed", "UPSTREAM_ERROR", "no_feed"),)),
    Case("videosite", "no-player", (("video", *BLOCKED),)),
    Case("videosite", "no-about", (("about", *BLOCKED),)),
    Case("videosite", "no-playlist", (("playlist", *BLOCKED), CUT)),
    Case("videosite", "no-about-call", ()),  # the page of the about panel has the same data
    Case("shortvideo", "repeated-page", (("search", "UPSTREAM_RATE_LIMITED", "repeated_results"),)),
    Case("shortvideo", "captcha-later", (("search", "UPSTREAM_BLOCKED", "challenge"),)),
    Case("shortvideo", "results-empty-later", (("search", "UPSTREAM_BLOCKED", "challenge"),)),
]
PARTIAL = [case for case in CASES if case.warnings]


def of(platform: str) -> dict[str, Case]:
    return {case.fault: case for case in CASES if case.platform == platform}


def settings(*more: str) -> list[str]:
    return options(*SETTINGS, *more)


WARNING = {"get_optional", "_optional", "optional", "warn", "collect"}
"""The methods that add a warning. Their argument is the source or its page class."""


def optional_sources() -> set[tuple[str, str]]:
    """Return (platform, source) of each optional source, found by the calls in the platforms' code that add warnings.

    Warnings about incomplete listings also name a source, but it did not fail; tests/test_completeness.py covers them.
    """
    names = {(name, page.__name__): page.source for name, scraper in SCRAPERS.items() for page in scraper.pages}
    found: set[tuple[str, str]] = set()
    for platform in SCRAPERS:
        folder = ROOT / "crawler"
        for file in (folder / "spiders" / f"{platform}.py", *(folder / "platforms" / platform).glob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WARNING:
                    arguments = [part for each in node.args for part in ast.walk(each)]
                    if any(isinstance(each, ast.Attribute) and each.attr == "of_coverage" for each in arguments):
                        continue
                    classes = {(platform, each.id) for each in arguments if isinstance(each, ast.Name)}
                    found |= {(platform, names[each]) for each in classes & names.keys()}
                    if node.func.attr == "collect":
                        found |= {(platform, str(each.value)) for each in node.args if isinstance(each, ast.Constant)}
    return found


def test_each_optional_source_has_a_case() -> None:
    assert optional_sources() == {(case.platform, source) for case in CASES for source, *_ in case.failed}


# Crawls


@pytest.mark.parametrize("platform", ["microblog", "videosite"])
def test_a_crawl_writes_the_warnings_to_all_outputs(tmp_path: Path, platform: str) -> None:
    cases = of(platform)
    targets, database = tmp_path / "targets.jsonl", tmp_path / "out.db"
    targets.write_text("".join(json.dumps({"id": name, **case.params}) + "\n" for name, case in cases.items()))
    sink = ("-O", f"sqlite:///{database}")
    code, out, failures, log = crawl(tmp_path, "-a", f"targets={targets}", *settings(), *sink, spider=platform)
    assert (code, failures) == (4 if any(CUT in case.warnings for case in cases.values()) else 0, []), log
    assert {line["id"]: parts(line["warnings"]) for line in out} == {name: case.objects for name, case in cases.items()}
    assert list(out[0]) == ["id", "scraper", "params", "fetched_at", "warnings", "note", "data"]
    for line in out:
        assert comparable(line["data"]) == cases[line["id"]].expected_record(), line["id"]
    stored = [parts(each) for each in stored_warnings(database)]
    assert all(case.objects in stored for case in cases.values())
    partial = [case for case in cases.values() if case.warnings]
    assert re.search(rf"event=targets_done .*total={len(cases)} partial={len(partial)} ", log)
    assert f"'targets/partial': {len(partial)}" in log
    failed = [(source, reason) for case in partial for source, _, reason in case.failed]
    for source, reason in failed:
        assert f"'sources/failed/{source}/{reason}': {failed.count((source, reason))}," in log


def parts(warnings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return warnings with the keys that all of them have."""
    return [{name: each[name] for name in ("source", "code", "reason")} for each in warnings]


def stored_warnings(database: Path) -> list[Any]:
    """Return the warnings in all rows of records."""
    connection = sqlite3.connect(database)
    query = "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE c.name = 'warnings'"
    queries = [f"SELECT warnings FROM {name}" for (name,) in connection.execute(query)]  # noqa: S608
    return [json.loads(text) for query in queries for (text,) in connection.execute(query)]


def test_a_single_targets_line_has_the_data_only(tmp_path: Path) -> None:
    case = of("photoapp")["embed-forbidden"]
    code, out, _, log = crawl(tmp_path, "-a", f"url={case.params['url']}", *settings(), spider="photoapp")
    assert code == 0, log
    assert out == [case.expected_record()]
    assert "event=optional_source_failed" in log
    assert re.search(r"event=targets_done .*partial=1 ", log)


def test_rows_of_a_list_have_the_warnings(tmp_path: Path) -> None:
    cases, rows = of("photoapp"), "data.xdt_shortcode_media.edge_media_to_caption.edges"
    targets, table = tmp_path / "targets.jsonl", tmp_path / "out.csv"
    targets.write_text("".join(json.dumps({"id": name, **case.params}) + "\n" for name, case in cases.items()))
    arguments = ("-a", f"targets={targets}", "-a", f"explode={rows}", "-O", str(table))
    code, out, _, log = crawl(tmp_path, *arguments, *settings(), spider="photoapp")
    assert code == 0, log
    with table.open(newline="") as file:
        cells = [{**row, "warnings": json.loads(row["warnings"])} for row in csv.DictReader(file)]
    for found in (out, cells):
        assert {row["target_id"] for row in found} == cases.keys()
        assert all(row["warnings"] == cases[row["target_id"]].objects for row in found)


def test_probe_prints_the_warnings() -> None:
    case = next(case for case in PARTIAL if len(case.warnings) > 1)
    params = [part for name, value in case.params.items() for part in ("-a", f"{name}={value}")]
    name = SCRAPERS[case.platform].name
    command = [sys.executable, "-m", "scrapy", "probe", name, *params, *settings("SANDBOX=1")]
    run = forks.run(command)
    assert run.returncode == 0, run.stderr
    printed = [line for line in run.stdout.splitlines() if line.startswith("WARNING")]
    assert printed == [f"WARNING    without {source}: {code} ({reason})" for source, code, reason in case.warnings]


# The endpoint


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("warnings") / "log", *SETTINGS) as started:
        yield started


def ask(service: Service, case: Case) -> Reply:
    name = SCRAPERS[case.platform].name
    return call(service.url, f"/v1/scrapers/{name}", case.params)


def usage(service: Service, platform: str) -> dict[str, Any]:
    entries = call(service.url, "/v1/usage", method="GET").body["usage"]
    zero = {"calls": 0, "billable": 0, "partial": 0}
    return next((entry for entry in entries if entry["scraper"] == SCRAPERS[platform].name), zero)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_response_names_the_missing_sources(service: Service, case: Case) -> None:
    before = usage(service, case.platform)
    reply = ask(service, case)
    assert reply.code == "OK", reply.body
    assert comparable(reply.body["data"]) == case.expected_record()
    named = [{"source": source, **of_source} for source, of_source in parse_list(reply.headers.get("x-partial", ""))]
    assert parts(named) == case.objects
    sources = ", ".join(source for source, *_ in case.failed)
    message = f"Completed without: {sources}." if sources else "The scrape is complete."
    if CUT in case.warnings:
        message = f"Incomplete: continuation, 15 collected (no_end). {message}"
    assert reply.body["status"] == {"code": "OK", "message": message, "retryable": False}
    assert reply.body["meta"]["billable"]
    after = usage(service, case.platform)
    assert [after[key] - before[key] for key in ("calls", "partial", "billable")] == [1, bool(case.warnings), 1]
    for source, _, reason in case.failed:
        labels = {"platform": case.platform, "source": source, "reason": reason}
        assert value(service.url, "crawler_source_failures_total", **labels) >= 1


@pytest.mark.parametrize(
    "text", ["timeline", "web results", "", "9lives", 'a"b\\c', "a,b;c=d", "rows[].b", "line\r\nX-Other: 1", "é"]
)
def test_the_header_is_a_valid_list_for_any_text(text: str) -> None:
    unread = OutcomeWarning.of_unread("web results", Unread(text, "unknown", names=("\r\nX: y",)))
    warnings = [OutcomeWarning(text, "UPSTREAM_BLOCKED", text), OutcomeWarning("feed", "UPSTREAM_ERROR", "no_feed")]
    header = partial_header([unread, *warnings])
    *failed, (source, parameters) = parse_list(header)
    found = re.sub(r"[^ -~]", "?", text)
    assert failed == [
        (found, {"reason": found, "code": "UPSTREAM_BLOCKED"}),
        ("feed", {"reason": "no_feed", "code": "UPSTREAM_ERROR"}),
    ]
    assert (source, parameters["path"]) == ("web results", found)
    assert '; path="' in header, "always a string, so that clients need only one type"
