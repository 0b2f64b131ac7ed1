"""Records as Scrapy items: third-party pipelines and Scrapy's own exporters."""

from __future__ import annotations

import copy
import csv
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from itemadapter import ItemAdapter

import crawler.items
from crawler.registry import scrapers
from crawler.targets.target import Record, Target
from tests.crawls import crawl
from tests.service.client import SEARCH, call
from tests.service.conftest import running

PIPELINE = 'ITEM_PIPELINES={"tests.third_party.Mixed": 400}'
QUERIES = ("dict", "none", "object", "no item", "drop", "raise", "slow", "field", "plain")
CODES = {"none": "INTERNAL_ERROR", "no item": "INTERNAL_ERROR", "drop": "ITEM_DROPPED", "raise": "INTERNAL_ERROR"}
NOTES = {"dict": "a dict", "object": "another class", "field": "FIELD"}


def test_each_target_of_a_crawl_has_one_outcome_with_any_pipeline(tmp_path: Path) -> None:
    targets = tmp_path / "targets.jsonl"
    targets.write_text("".join(json.dumps({"id": query, "query": query}) + "\n" for query in QUERIES))
    status, lines, failures, log = crawl(tmp_path, "-a", f"targets={targets}", "-s", PIPELINE)
    assert status == 4, log
    assert {line["id"]: line["data"].get("note") for line in lines} == {
        query: NOTES.get(query) for query in QUERIES if query not in CODES
    }
    assert {line["id"]: line["code"] for line in failures} == CODES
    messages = {line["id"]: line["message"] for line in failures}
    assert messages["drop"] == "The item was dropped: seen before"
    assert "NoneType" in messages["none"]
    assert "int" in messages["no item"]
    assert not any("secret" in message for message in messages.values())


def test_each_call_has_one_outcome_with_any_pipeline(tmp_path: Path) -> None:
    with running(tmp_path / "log", PIPELINE) as service, ThreadPoolExecutor(len(QUERIES)) as threads:
        replies = dict(
            zip(QUERIES, threads.map(lambda query: call(service.url, SEARCH, {"query": query}), QUERIES), strict=True)
        )
    assert {query: reply.code for query, reply in replies.items() if reply.code != "OK"} == CODES
    assert {q: r.body["data"].get("note") for q, r in replies.items() if r.code == "OK" and q in NOTES} == NOTES
    assert replies["drop"].status == 422
    assert replies["drop"].body["error"]["message"] == "The item was dropped: seen before"
    assert replies["drop"].body["status"]["retryable"] is False


def test_a_crawl_of_one_target_ends(tmp_path: Path) -> None:
    status, lines, failures, log = crawl(tmp_path, "-a", "query=none", "-s", PIPELINE)
    assert (status, lines, [line["code"] for line in failures]) == (4, [], [CODES["none"]]), log


def test_scrapys_own_formats_have_the_same_data(tmp_path: Path) -> None:
    argument = ("-a", "cat_id=976759")
    formats = ("out.json", "out.csv", "out.xml")
    outputs = [part for name in formats for part in ("-O", str(tmp_path / name))]
    status, (line,), _, log = crawl(tmp_path, *argument, *outputs)
    assert status == 0, log
    assert json.loads((tmp_path / "out.json").read_text()) == [line]
    with (tmp_path / "out.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row.pop("query") == "", "a column of the platform's other scraper"
    assert list(row) == list(line)
    assert {name: row[name] for name in ("cat_id", "heading", "page", "has_more")} == {
        "cat_id": line["cat_id"],
        "heading": line["heading"],
        "page": str(line["page"]),
        "has_more": json.dumps(line["has_more"]),
    }
    assert json.loads(row["products"]) == line["products"]
    (item,) = ET.parse(tmp_path / "out.xml").getroot()  # noqa: S314  # written by this test's own crawl
    assert [child.tag for child in item] == list(line)
    assert item.findtext("heading") == line["heading"]
    assert len(item.findall("products/value")) == len(line["products"])


@pytest.mark.parametrize("name", sorted({scraper.name for scraper in scrapers().values()}))
def test_items_gives_each_scrapers_item_and_data_model(name: str) -> None:
    scraper = scrapers()[name]
    words = "".join(word.capitalize() for word in name.split("-"))
    assert getattr(crawler.items, f"{words}Data") is scraper.data
    assert getattr(crawler.items, f"{words}Item") is scraper.item
    assert {f"{words}Data", f"{words}Item"} <= set(crawler.items.__all__)
    visible = f"from {scraper.data.__module__} import {scraper.data.__name__} as {words}Data"
    assert visible in Path(crawler.items.__file__).read_text(), "editors and type checkers see the data model"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="NoSuchItem"):
        _ = crawler.items.NoSuchItem


def test_a_record_is_a_mapping_of_its_scrapers_class() -> None:
    scraper = scrapers()["retail-search-v4"]
    target = Target("1", scraper, scraper.params.model_validate({"query": "x"}), batch=True)
    record: Record = scraper.item({"page": 1}, target, datetime(2026, 1, 2, tzinfo=UTC))
    adapter = ItemAdapter(record)
    adapter["note"] = "ours"
    assert (record["page"], record["note"], adapter.asdict()) == (1, "ours", {"page": 1, "note": "ours"})
    line = record.as_line()
    expected: dict[str, Any] = {
        "id": "1",
        "scraper": "retail-search-v4",
        "params": {"query": "x", "page": 1, "sort": "best_match"},
        "fetched_at": "2026-01-02T00:00:00+00:00",
        "warnings": [],
        "note": "",
        "data": {"page": 1, "note": "ours"},
    }
    assert (type(line), dict(line), line.data) == (scraper.item, expected, record)
    assert type(copy.copy(record)) is scraper.item
    assert type(record.copy()) is dict
    assert pickle.loads(pickle.dumps(scraper.item)) is scraper.item  # noqa: S301  # its own pickle
