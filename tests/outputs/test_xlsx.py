"""Excel feeds. Values have types, no text becomes a formula or a link, and cut cells end with a note."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.outputs.xlsx import MAX_NAME, MAX_ROWS, XlsxBook, XlsxExporter
from crawler.registry import scrapers, spiders
from crawler.targets.files.rows import MAX_CELL_CHARACTERS
from crawler.targets.files.tables import read_sheet
from crawler.targets.sources import TargetSource
from tests.outputs.test_csv import record_of, table
from tests.targets.workbooks import read_here

NAMES = sorted({scraper.name for scraper in scrapers().values()})


def written(columns: list[str], *rows: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    book = XlsxBook(out)
    table = book.table("records", columns)
    for row in rows:
        table.write(row)
    book.close()
    return out.getvalue()


def sheet(content: bytes | Path, name: str = "records") -> Any:
    return openpyxl.load_workbook(io.BytesIO(content) if isinstance(content, bytes) else content)[name]


@pytest.mark.parametrize(
    ("value", "kind", "cell"),
    [
        ("plain", "s", "plain"),
        ("=1+1", "s", "=1+1"),
        ('=HYPERLINK("https://www.example.com/")', "s", '=HYPERLINK("https://www.example.com/")'),
        ("{=1+1}", "s", "{=1+1}"),
        ("https://www.example.com/a?b=c&d", "s", "https://www.example.com/a?b=c&d"),
        ("00123", "s", "00123"),
        ("@x", "s", "@x"),
        ("", "s", ""),
        (" two\nlines ", "s", " two\nlines "),
        ("<r><t>x</t></r>", "s", " <r><t>x</t></r>"),
        ("\ud83d", "s", "\ufffd"),
        (42, "n", 42),
        (-1.5, "n", -1.5),
        (999_999_999_999_999, "n", 999_999_999_999_999),
        (1_234_567_890_123_456_789, "s", "1234567890123456789"),
        (-1_234_567_890_123_456_789, "s", "-1234567890123456789"),
        (True, "b", True),
        ([{"a": 1}], "s", '[{"a":1}]'),
        (datetime(2026, 11, 23, 10, 30, tzinfo=UTC), "d", datetime(2026, 11, 23, 10, 30)),  # noqa: DTZ001
        (None, "n", None),
    ],
)
def test_values_have_their_type(value: Any, kind: str, cell: Any) -> None:
    found = sheet(written(["a"], {"a": value}))["A2"]
    assert found.value == cell
    assert found.data_type == kind or cell is None
    assert found.hyperlink is None


@pytest.mark.parametrize(("character", "length"), [("a", 40_000), ("\U0001f600", 20_000)])
def test_a_text_that_is_too_long_is_cut_and_says_so(character: str, length: int) -> None:
    out = io.BytesIO()
    book = XlsxBook(out)
    table = book.table("records", ["a"])
    table.write({"a": character * 10})
    table.write({"a": character * length})
    book.close()
    text = sheet(out.getvalue())["A3"].value
    assert table.cut == 1
    assert text.endswith(f"{character} … [cut: {length:,} characters]")
    assert len(text.encode("utf-16-le")) // 2 in {32_767, 32_766}, "Excel's own limit"


def test_the_header_stays_visible_and_filters() -> None:
    found = sheet(written(["a", "b.c"], {"a": 1, "b.c": 2}, {"b.c": 3, "unknown": 4}))
    assert [[cell.value for cell in row] for row in found.rows] == [["a", "b.c"], [1, 2], [None, 3]]
    assert (found.freeze_panes, found.auto_filter.ref, found["A1"].font.bold) == ("A2", "A1:B3", True)


def test_columns_are_as_wide_as_their_names_within_limits() -> None:
    found = sheet(written(["a", "b" * 20, "c" * 99, "fetched_at"]))
    narrow, name, widest, time = (found.column_dimensions[letter].width for letter in "ABCD")
    assert narrow < name < widest < 99
    assert abs(name - 24) < 1
    assert time > narrow


def test_a_table_without_rows_has_a_header() -> None:
    assert [[cell.value for cell in row] for row in sheet(written(["a", "b"])).rows] == [["a", "b"]]


def test_the_limits_are_those_of_excel() -> None:
    assert (MAX_ROWS, MAX_NAME, MAX_CELL_CHARACTERS) == (1_048_576, 31, 32_767)


def test_further_rows_are_on_further_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.outputs.xlsx.MAX_ROWS", 3)
    content = written(["a"], *({"a": n} for n in range(5)))
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert {each.title: [cell.value for cell in each["A"]] for each in book.worksheets} == {
        "records": ["a", 0, 1],
        "records 2": ["a", 2, 3],
        "records 3": ["a", 4],
    }


def test_sheets_have_distinct_names_that_excel_accepts() -> None:
    out = io.BytesIO()
    book = XlsxBook(out)
    for name in ("a" * 40, "A" * 40, "b"):
        book.table(name, ["x"]).write({"x": name})
    book.close()
    found = openpyxl.load_workbook(io.BytesIO(out.getvalue()))
    assert {each.title: each["A2"].value for each in found.worksheets} == {
        "a" * 31: "a" * 40,
        "A" * 27 + " 2": "A" * 40,
        "b": "b",
    }


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"), min_size=1)


@given(st.lists(_TEXT, min_size=1))
def test_any_text_is_read_back(texts: list[str]) -> None:
    with read_here():
        rows = list(read_sheet(io.BytesIO(written(["a"], *({"a": text} for text in texts)))))
    expected = {number: text for number, text in enumerate(texts, 2) if text.strip()}
    assert {row.line: row.cells[1] for row in rows[1:]} == expected


def exported(*items: Any, name: str, batch: bool, **options: Any) -> list[list[Any]]:
    its = spiders()[scrapers()[name].platform].scrapers
    spider = SimpleNamespace(
        scrapers=its, row_path=None, batch=batch, sliced=False, selection=None, source=TargetSource()
    )
    out = io.BytesIO()
    crawler: Any = SimpleNamespace(spider=spider)
    exporter = XlsxExporter.from_crawler(crawler, out, **options)
    exporter.start_exporting()
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    return [[cell.value for cell in row] for row in sheet(out.getvalue()).rows]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_columns_are_those_of_csv(name: str, batch: bool) -> None:  # noqa: FBT001
    record = record_of(scrapers()[name], batch=batch)
    header, row = exported(record, name=name, batch=batch)
    csv_header, csv_row = table(record, scraper=scrapers()[name], batch=batch)
    assert header == csv_header
    assert [cell is None or cell == "" for cell in row] == [not cell for cell in csv_row]
    if batch:
        assert row[header.index("fetched_at")] == datetime(2026, 11, 1)  # noqa: DTZ001


def test_the_option_fields_selects_and_names_columns() -> None:
    item = {"a": {"b": 1}, "c": "x"}
    options: dict[str, Any] = {"name": "retail-category-v4", "batch": False}
    assert exported(item, fields_to_export=["c"], **options) == [["c"], ["x"]]
    assert exported(item, fields_to_export={"c": "Letter"}, **options) == [["Letter"], ["x"]]


def test_a_workbook_may_be_added_to_an_empty_file(tmp_path: Path) -> None:
    with (tmp_path / "out.xlsx").open("ab") as file:  # as ``-o`` opens it
        book = XlsxBook(file)
        book.table("records", ["a"]).write({"a": 1})
        book.close()
        assert not file.closed
    assert sheet(tmp_path / "out.xlsx")["A2"].value == 1
