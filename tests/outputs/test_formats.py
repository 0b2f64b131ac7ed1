"""The table of formats: everything that names a format takes it from there."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from crawler.components import COMPONENTS
from crawler.jobs.output import open_exporter
from crawler.outputs.columns import Struct
from crawler.outputs.exporters import CHANGE_KEYS, Table
from crawler.outputs.formats import FORMATS, NAMES, SERVED, Format, format_of
from crawler.outputs.selection import provenance_columns
from crawler.registry import scrapers
from crawler.targets.target import FAILURE_KEYS
from tests.crawls import ROOT
from tests.openapi import DOCUMENT, resolved
from tests.reference_tables import PARTS, written


@pytest.mark.parametrize("page", PARTS, ids=lambda page: page.name)
def test_the_documents_have_the_current_tables(page: Path) -> None:
    assert page.read_text() == written(page)


def test_names_of_formats_are_distinct() -> None:
    assert len(NAMES) == sum(1 + len(each.aliases) for each in FORMATS.values())
    assert set(COMPONENTS["FEED_EXPORTERS"]) == set(NAMES)


def test_the_routes_and_their_description_have_the_served_formats() -> None:
    route = DOCUMENT["paths"]["/v1/jobs/{job_id}/records"]["get"]
    (parameter,) = (each for each in map(resolved, route["parameters"]) if each["name"] == "format")
    assert parameter["schema"]["enum"] == list(SERVED)
    assert set(route["responses"]["200"]["content"]) == {each.media_type.split(";")[0] for each in SERVED.values()}


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("out.csv", "csv"),
        ("s3://bucket/out.jl.gz", "jsonl"),
        ("a/b.xlsx", "xlsx"),
        ("sqlite:///out.csv", "sql"),
        ("postgresql://me:a@b@[host/db", "sql"),
        ("mysql://host/db", None),
        ("out.sql", None),
        ("sqlite", None),
        ("out.JSON", None),
        ("out", None),
        ("out.tsv.gz", None),
    ],
)
def test_a_format_is_found_by_the_scheme_or_the_suffix(location: str, name: str | None) -> None:
    found = format_of(location)
    assert (found and found.name) == name


def test_the_columns_of_a_table_are_documented() -> None:
    """A column with another name than its key in the data would be empty in all rows."""
    lines = DOCUMENT["components"]["schemas"]
    own = provenance_columns([scrapers()["retail-category-v4"]], None, sliced=True).of
    assert {*FAILURE_KEYS} <= lines["FailureLine"]["properties"].keys()
    for columns, page in ((CHANGE_KEYS, "changes.md"), (own, "outputs.md")):
        documented = set(re.findall(r"`(\w+)`", (ROOT / "docs" / page).read_text()))
        assert [each for each in columns if each not in documented] == []


def test_the_media_types_are_the_registered_ones() -> None:
    assert {name: each.media_type for name, each in FORMATS.items()} == {
        "jsonl": "application/x-ndjson",  # not registered, but what clients know
        "json": "application/json",
        "csv": "text/csv; charset=utf-8",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "sql": "",
    }


@pytest.mark.parametrize("name", ["jsonl", "jsonlines", "jl", "gz", "json", "csv", "xlsx"])
def test_a_name_of_a_format_is_its_suffix(name: str) -> None:
    assert format_of(f"out.{name}") == NAMES[name]


@pytest.mark.parametrize("chosen", (each for each in FORMATS.values() if each.kind != "database"), ids=str)
def test_each_format_writes_rows_without_a_crawl(chosen: Format) -> None:
    file = io.BytesIO()
    exporter = open_exporter(chosen, file, Table(Struct({"name": "text"})), Settings())
    exporter.export_item({"name": "Müsli"})
    exporter.finish_exporting()
    assert isinstance(exporter, load_object(chosen.exporter))
    content = file.getvalue()
    if chosen.kind == "lines":
        assert [json.loads(line) for line in content.splitlines()] == [{"name": "Müsli"}]
    elif chosen.kind == "array":
        assert json.loads(content) == [{"name": "Müsli"}]
    elif chosen.kind == "table":
        assert content.decode().splitlines() == ["name", "Müsli"]
    else:
        assert content.startswith(b"PK")
