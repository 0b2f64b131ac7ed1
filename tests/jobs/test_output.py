"""The files of a job: the same rows in five formats, with users' own columns, selected fields and lists."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pytest
from scrapy.settings import Settings

from crawler.jobs.options import JobOptions
from crawler.jobs.outcomes import shapes_of
from crawler.jobs.output import open_exporter
from crawler.outputs.formats import SERVED
from tests.crawls import lines
from tests.jobs.test_collect import Commands, commands, searches, write

__all__ = ["commands"]

TABLE = """\
id,scraper,url,query,username,note,sku
a1,retail-search-v4,,mustard,,first,007
a2,,https://www.walmart.com/browse/food/976759?page=2,,,"Müller, 2",
a3,microblog-profile,,,quiet_harbor,,
a4,retail-search-v4,,mustard,,again,=1+1
a5,,https://www.example.com/x,,,no platform,
"""
BOOK = [
    ("id", "url", "note"),
    ("b1", "https://www.instagram.com/p/DaSandbox01/", "post"),
    ("b2", "www.linkedin.com/in/mara-lindqvist", None),
    ("b3", "https://www.walmart.com/search?q=mustard", "a1 as a link"),
    ("b4", "https://x.com/quiet_harbor", "a3 as a link"),
]
OBJECTS: list[Any] = [
    {"id": "c1", "scraper": "shortvideo-photo-search-v4", "keywords": "whales", "note": 5},
    {"id": "c2", "url": "https://www.youtube.com/@harborlights"},
    "rubbish",
    {"id": "c3", "scraper": "unknown", "query": "x"},
    [1, 2],
    {"id": "c4", "scraper": "retail-search-v4", "query": "", "note": "empty"},
]
MUSTARD = {"page": 1, "query": "mustard"}
EXPECTED: list[tuple[str, str, dict[str, Any] | None, dict[str, Any]]] = [
    ("a1", "retail-search-v4", {"note": "first", "sku": "007"}, MUSTARD),
    ("a2", "retail-category-v4", {"note": "Müller, 2"}, {"page": 2}),
    ("a3", "microblog-profile", None, {"username": "quiet_harbor"}),
    ("a4", "retail-search-v4", {"note": "again", "sku": "=1+1"}, MUSTARD),
    ("b1", "photoapp-post-v4", {"note": "post"}, {"url": "https://www.instagram.com/p/DaSandbox01/"}),
    ("b2", "professional-profile", None, {"url": "www.linkedin.com/in/mara-lindqvist"}),
    ("b3", "retail-search-v4", {"note": "a1 as a link"}, MUSTARD),
    ("b4", "microblog-profile", {"note": "a3 as a link"}, {"username": "quiet_harbor"}),
    ("c1", "shortvideo-photo-search-v4", {"note": 5}, {"keywords": "whales"}),
    ("c2", "videosite-profile-v3", None, {"url": "https://www.youtube.com/@harborlights"}),
]
FAILED = [
    ("a5", 6, "INVALID_REQUEST"),
    ("objects.jsonl:3", 3, "INVALID_REQUEST"),
    ("c3", 4, "SCRAPER_NOT_FOUND"),
    ("objects.jsonl:5", 5, "INVALID_REQUEST"),
    ("c4", 6, "INVALID_REQUEST"),
]
"""For each failed target: id, number of its line in its file, and code."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """A job of six platforms from three files, and its output in four formats (the first from the crawl itself)."""
    folder = tmp_path_factory.mktemp("mixed")
    commands = Commands(folder, str(folder / "jobs.sqlite3"))
    (folder / "table.csv").write_text(TABLE)
    book = openpyxl.Workbook()
    for row in BOOK:
        book.worksheets[0].append(row)
    book.save(folder / "book.xlsx")
    write(folder / "objects.jsonl", OBJECTS)
    files = [folder / name for name in ("table.csv", "book.xlsx", "objects.jsonl")]
    run = commands.run("collect", *files, "--job", "mixed", "-O", folder / "out.xlsx")
    assert run.returncode == 4, run.stderr
    for name in ("out.jsonl", "out.json", "%(scraper)s.csv", "again.xlsx"):
        run = commands.run("jobs", "export", "mixed", "-O", folder / name)
        assert (run.returncode, "Spider opened" in run.stderr) == (0, False), run.stderr
    return commands


def records(mixed: Commands) -> list[Any]:
    return lines(mixed.folder / "out.jsonl")


def test_links_and_rows_of_six_platforms_are_collected(mixed: Commands) -> None:
    found = records(mixed)
    assert [(each["id"], each["scraper"], each.get("columns")) for each in found] == [each[:3] for each in EXPECTED]
    for each, (*_, params) in zip(found, EXPECTED, strict=True):
        assert each["params"].items() >= params.items(), "a repeated target has the params of its first line"
        assert each["data"]
    counts = mixed.show("mixed")["targets"]
    assert (counts["done"], counts["failed"]) == (7, 5), "three lines repeat a target, two of them by a link"


def test_a_repeated_export_is_the_same_file(mixed: Commands) -> None:
    """After a kill between the upload and the next cursor, the same lines are written again with the same bytes."""
    assert json.loads((mixed.folder / "out.json").read_text()) == records(mixed)
    assert (mixed.folder / "again.xlsx").read_bytes() == (mixed.folder / "out.xlsx").read_bytes()
    assert not list(mixed.folder.glob("*.part"))


def test_wrong_lines_are_failures_with_their_line_and_code(mixed: Commands) -> None:
    found = lines(mixed.failures)
    assert [(each["id"], each["line"], each["code"]) for each in found] == FAILED
    assert found[0]["columns"] == {"note": "no platform"}


def value_of(line: dict[str, Any], column: str) -> Any:
    """The value of a column in the line of a record: dots separate the keys of objects."""
    found: Any = {"target_id": line["id"], **line, **line["data"]}
    for key in column.split("."):
        found = None if found is None else found.get(key)
    return found


def leaves(value: Any, name: str = "") -> Iterator[str]:
    """Yield the names of the columns that a file needs for the values of a line: of all leaves except null and {}."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, f"{name}.{key}" if name else key)
    elif value not in (None, {}):
        yield name


def assert_has_all(columns: list[str], line: dict[str, Any]) -> None:
    provenance = {
        key: line[key] for key in ("scraper", "params", "columns", "fetched_at", "warnings", "note") if key in line
    }
    needed = {*leaves({"target_id": line["id"], **provenance, **line["data"]})}
    assert needed - set(columns) == set()


def of_scrapers(found: list[Any]) -> dict[str, list[Any]]:
    names = dict.fromkeys(each["scraper"] for each in found)
    return {name: [each for each in found if each["scraper"] == name] for name in names}


def test_csv_has_the_same_rows(mixed: Commands) -> None:
    for scraper, expected in of_scrapers(records(mixed)).items():
        with (mixed.folder / f"{scraper}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(expected)
        for row, line in zip(rows, expected, strict=True):
            assert_has_all(list(row), line)
            for column, cell in row.items():
                value = value_of(line, column)
                if isinstance(value, str):
                    assert cell in {value, f"'{value}"}
                else:
                    assert (json.loads(cell) if cell else None) == value
    with (mixed.folder / "retail-search-v4.csv").open(newline="", encoding="utf-8") as file:
        assert [row["columns.sku"] for row in csv.DictReader(file)] == ["007", "'=1+1", ""]


def test_a_workbook_has_a_sheet_for_each_scraper_and_one_of_failures(mixed: Commands) -> None:
    book = openpyxl.load_workbook(mixed.folder / "out.xlsx")
    expected = of_scrapers(records(mixed))
    assert set(book.sheetnames) == {*expected, "failures"}
    assert book.active.title in expected, "the sheet that is shown first"
    for scraper, its in expected.items():
        header, *rows = ([cell.value for cell in row] for row in book[scraper].rows)
        assert len(rows) == len(its)
        for cells, line in zip(rows, its, strict=True):
            assert_has_all(header, line)
            for column, cell in zip(header, cells, strict=True):
                value = value_of(line, column)
                if isinstance(cell, datetime):
                    found = datetime.fromisoformat(value)
                    assert abs(cell.replace(tzinfo=UTC) - found).total_seconds() < 0.01
                elif isinstance(value, list | dict):
                    assert "[cut: " in cell or json.loads(cell) == value
                else:
                    assert cell == value or cell == str(value) or (cell is None and value in (None, ""))
    header, *rows = ([cell.value for cell in row] for row in book["failures"].rows)
    names = [header.index(name) for name in ("id", "line", "code")]
    assert [tuple(row[index] for index in names) for row in rows] == FAILED
    assert [row[header.index("columns.note")] for row in rows] == ["no platform", None, None, None, "empty"]


def test_fields_and_lists_are_selected_as_in_feeds(commands: Commands) -> None:
    """The rows of the job's file are the same as those of a crawl with the same arguments."""
    targets = write(commands.folder / "targets.jsonl", [{**row, "note": row["id"]} for row in searches(2)])
    plain, out = commands.folder / "plain.jsonl", commands.folder / "out.jsonl"
    fields = "target_id,columns,position,item_id,price.current_price"
    crawl = commands.run(
        *("crawl", "retail", "-a", f"targets={targets}", "-O", plain),
        *("-a", "explode=products", "-a", f"fields={fields}"),
    )
    assert crawl.returncode == 0, crawl.stderr
    chosen = ("--explode", "products", "--fields", fields)
    run = commands.run("collect", targets, "--job", "chosen", "-O", out, *chosen)
    assert run.returncode == 0, run.stderr
    found = lines(out)
    assert sorted(found, key=json.dumps) == sorted(lines(plain), key=json.dumps)
    assert list(found[0]) == fields.replace("price.current_price", "price").split(",")
    for name in ("out.csv", "out.xlsx"):
        run = commands.run("jobs", "export", "chosen", "-O", commands.folder / name, *chosen)
        assert run.returncode == 0, run.stderr
    with (commands.folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["target_id"], row["item_id"]) for row in rows] == [(row["target_id"], row["item_id"]) for row in found]
    assert list(rows[0]) == fields.split(",")
    assert commands.run("jobs", "push", "worked", targets).returncode == 0
    run = commands.run("crawl", "retail", "-a", "job=worked", "-O", commands.folder / "worked.csv")
    assert run.returncode == 0, run.stderr
    with (commands.folder / "worked.csv").open(newline="") as file:
        assert all(row["columns.note"] == row["target_id"] for row in csv.DictReader(file)), "the feed of a worker"
    book = openpyxl.load_workbook(commands.folder / "out.xlsx")
    assert book.sheetnames == ["retail-search-v4", "failures"], "also without failures"
    sheet = book["retail-search-v4"]
    assert [cell.value for cell in sheet["D"]] == ["item_id", *(row["item_id"] for row in found)]


def test_scrapers_with_equal_columns_or_chosen_fields_share_one_table(commands: Commands) -> None:
    targets = [{"id": "s", "query": "mustard"}, {"id": "c", "cat_id": "976759"}]
    shop = write(commands.folder / "shop.jsonl", targets)
    mixed = write(commands.folder / "mixed.jsonl", [*targets, {"id": "p", "url": "x.com/quiet_harbor"}])
    out = commands.folder / "out.csv"
    run = commands.run("collect", shop, "--job", "shop", "-O", out, "--explode", "products")
    assert run.returncode == 0, run.stderr
    with out.open(newline="") as file:
        assert {row["target_id"] for row in csv.DictReader(file)} == {"s", "c"}
    run = commands.run("collect", mixed, "--job", "mixed", "-O", out)
    assert run.returncode == 2, run.stderr
    assert "microblog-profile, retail-category-v4, retail-search-v4, whose columns differ" in run.stderr
    run = commands.run("collect", mixed, "--job", "chosen", "-O", out, "--fields", "target_id,nextCursor,total_results")
    assert run.returncode == 0, run.stderr
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["target_id", "nextCursor", "total_results"]
    assert {row["target_id"]: (bool(row["nextCursor"]), bool(row["total_results"])) for row in rows} == {
        "s": (False, True),
        "c": (False, True),
        "p": (True, False),
    }


@pytest.mark.parametrize("names", [["retail-search-v4"], ["retail-search-v4", "retail-category-v4"]])
@pytest.mark.parametrize(("fields", "header"), [(None, "own"), ("name,rating", "rating.review_count")])
def test_a_table_has_the_keys_of_pipelines_unless_its_fields_are_chosen(
    tmp_path: Path, names: list[str], fields: str | None, header: str
) -> None:
    job: Any = SimpleNamespace(options=JobOptions())
    first, *_ = shapes_of(job, names, (), "products", fields, in_one_table=True).values()
    with (tmp_path / "out.csv").open("w+b") as file:
        exporter = open_exporter(SERVED["csv"], file, first.table, Settings())
        exporter.export_item({"name": "Mustard", "own": 1})
        exporter.finish_exporting()
        file.seek(0)
        assert file.readline().decode().rstrip().split(",")[-1] == header


def test_a_workbook_opens_with_the_records_also_if_the_first_target_failed(commands: Commands) -> None:
    targets = write(commands.folder / "targets.jsonl", ["rubbish", *searches(1)])
    run = commands.run("collect", targets, "-O", commands.folder / "out.xlsx")
    assert run.returncode == 4, run.stderr
    book = openpyxl.load_workbook(commands.folder / "out.xlsx")
    assert (book.sheetnames[0], book.active.title) == ("failures", "retail-search-v4")


def test_an_export_goes_on_after_a_cursor(commands: Commands) -> None:
    found: list[Any] = []
    cursor = "0"
    out = commands.folder / "new.jsonl.gz"
    for rows in (searches(5)[:3], [*searches(5)[3:], "rubbish"], []):
        if rows:
            commands.run("jobs", "push", "job", write(commands.folder / "targets.jsonl", rows))
            assert commands.run("work", "--drain").returncode == 0
        run = commands.run(
            *("jobs", "export", "job", "-O", out, "--after", cursor), *("--failures", commands.folder / "failed.jsonl")
        )
        assert run.returncode == 0, run.stderr
        cursor = run.stdout.strip()
        assert out.read_bytes()[4:8] == bytes(4), "no time, so that repeated files are equal"
        new = [json.loads(line)["id"] for line in gzip.decompress(out.read_bytes()).splitlines()]
        assert len(new) == len([row for row in rows if isinstance(row, dict)])
        assert len(lines(commands.folder / "failed.jsonl")) == ("rubbish" in rows)
        found += new
    assert sorted(found) == [f"t{number}" for number in range(5)]
    for wrong, message in (("x", "is not a cursor"), ("99.1", "belongs to a different job")):
        run = commands.run("jobs", "export", "job", "-O", out, "--after", wrong)
        assert (run.returncode, message in run.stderr) == (2, True)
