"""US3-17: targets in Excel workbooks of different programs are read correctly, or rejected with a clear message."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.worksheet.hyperlink import Hyperlink

from crawler.registry import spiders
from crawler.targets.files.find import READ_ERRORS
from crawler.targets.files.formats import read_rows
from crawler.targets.files.rows import Row, UnreadableFileError
from crawler.targets.files.workbook import Workbook, column_name, column_number
from crawler.targets.parser import TargetParser
from tests.targets.workbooks import HEADER, raw_sheet, with_info, with_parts, workbook

PARSER = TargetParser(spiders()["retail"].scrapers)


def rows(content: bytes, name: str = "t.xlsx") -> list[Row]:
    return list(read_rows(io.BytesIO(content), name, PARSER))


def cells(content: bytes) -> list[list[str]]:
    return [list(row.cells.values()) for row in Workbook(io.BytesIO(content)).rows()]


def merged(book: openpyxl.Workbook) -> None:
    sheet = book.worksheets[0]
    sheet.merge_cells("A2:A3")


def second_sheet(book: openpyxl.Workbook) -> None:
    book.worksheets[0].sheet_state = "hidden"
    book.create_sheet("empty")
    book.create_sheet("targets").append(["cat_id"])
    book["targets"].append(["1"])


def link(book: openpyxl.Workbook) -> None:
    book.worksheets[0]["A2"].hyperlink = Hyperlink(ref="A2", target="https://www.example.com/")


def dates_from_1904(book: openpyxl.Workbook) -> None:
    book.epoch = datetime(1904, 1, 1)  # noqa: DTZ001  # Excel's times have no time zone


def empty_columns(book: openpyxl.Workbook) -> None:
    for column in range(3, 10_003):
        for row in (1, 2, 3):
            book.worksheets[0].cell(row, column).number_format = "0.00"


READ: dict[str, tuple[bytes, list[dict[str, str]]]] = {
    "numbers": (
        workbook(["cat_id", "page"], [976759, 2.0], ["976759", None]),
        [{"cat_id": "976759", "page": "2"}, {"cat_id": "976759"}],
    ),
    "spaces around a name": (workbook(["\u00a0cat_id "], [1]), [{"cat_id": "1"}]),
    "empty rows and columns": (workbook([], [None, "cat_id"], [], [None, 1], [None, " "]), [{"cat_id": "1"}]),
    "texts with quotes and formulas": (workbook(["query"], ["'a"], ['"b"']), [{"query": "'a"}, {"query": '"b"'}]),
    "a link": (workbook(["cat_id"], ["7"], change=link), [{"cat_id": "7"}]),
    "merged cells": (
        workbook(["cat_id", "page"], [1, 1], [None, 2], change=merged),
        [{"cat_id": "1", "page": "1"}, {"page": "2"}],
    ),
    "the first visible sheet with content": (workbook(["query"], ["hidden"], change=second_sheet), [{"cat_id": "1"}]),
    "10,000 empty columns": (workbook(["cat_id"], [1], [2], change=empty_columns), [{"cat_id": "1"}, {"cat_id": "2"}]),
    "an empty workbook": (workbook(), []),
    "only a header": (workbook(["cat_id"]), []),
    "rows without numbers": (
        with_parts(sheet=b"<row><c t='inlineStr'><is><t>cat_id</t></is></c></row><row><c><v>5</v></c></row>"),
        [{"cat_id": "5"}],
    ),
    "rich and phonetic text": (
        with_parts(
            sheet=b"<row><c t='inlineStr'><is><t>query</t></is></c></row><row><c t='inlineStr'><is>"
            b"<r><t>a</t></r><r><t> b</t></r><rPh><t>x</t></rPh></is></c></row>"
        ),
        [{"query": "a b"}],
    ),
    "the result of a formula": (
        with_parts(
            sheet=HEADER
            + b'<row r="2"><c r="A2"><f>1+6</f><v>7</v></c></row>'
            + b'<row r="3"><c r="A3" t="str"><f>"8"</f><v>8</v></c></row>'
        ),
        [{"cat_id": "7"}, {"cat_id": "8"}],
    ),
    "elements of other namespaces": (
        raw_sheet(
            b'<x:worksheet xmlns:x="http://purl.oclc.org/ooxml/spreadsheetml/main"><x:sheetData>'
            b'<x:row><x:c t="inlineStr"><x:is><x:t>cat_id</x:t></x:is></x:c>'
            b"</x:row><x:row><x:c><x:v>5</x:v></x:c></x:row></x:sheetData></x:worksheet>"
        ),
        [{"cat_id": "5"}],
    ),
    "shared texts": (
        with_parts(
            strings=b"<sst><si><t>query</t></si><si><r><t>M\xc3\xbc</t></r><r><t>sli</t></r><rPh><t>x</t></rPh></si></sst>",
            sheet=b'<row><c t="s"><v>0</v></c></row><row><c t="s"><v>1</v></c></row>',
        ),
        [{"query": "Müsli"}],
    ),
    "a gap of a million rows": (
        with_parts(sheet=HEADER + b'<row r="1048576"><c r="A1048576"><v>7</v></c></row>'),
        [{"cat_id": "7"}],
    ),
}

NO_RESULT = "has a formula without a result in column A"
BROKEN: dict[str, tuple[bytes, str]] = {
    "a formula without a result": (workbook(["cat_id"], ["=1+1"]), NO_RESULT),
    "a number with too many digits": (
        workbook(["cat_id"], [1234567890123456789]),
        "column A that cannot be read: it is a number whose last digits",
    ),
    "an error": (workbook(["cat_id"], ["#N/A"]), "contains #N/A, which a spreadsheet"),
    "a value without a name": (workbook(["cat_id"], [1], [2, "x"]), "has a value in column B, which has no name"),
    "the header again": (workbook(["cat_id"], ["cat_id"]), "repeats the header"),
    "a long text": (
        with_parts(
            sheet=HEADER + b'<row r="2"><c r="A2" t="inlineStr"><is><t>' + b"a" * 40_000 + b"</t></is></c></row>"
        ),
        "more than 32,767 characters",
    ),
    "not a number": (
        with_parts(sheet=HEADER + b'<row r="2"><c r="A2"><v>{x}</v></c></row>'),
        "column A that cannot be read",
    ),
    "no such text": (
        with_parts(sheet=HEADER + b'<row r="2"><c r="A2" t="s"><v>9</v></c></row>'),
        "column A that cannot be read",
    ),
    "infinity": (
        with_parts(sheet=HEADER + b'<row r="2"><c r="A2"><v>1e999</v></c></row>'),
        "column A that cannot be read",
    ),
}

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
OTHER = "the file is not an Excel workbook (.xlsx)"
GOOD = workbook(["cat_id"], [976759])


def encrypted(info: Any) -> None:
    info.flag_bits |= 1


def compressed_otherwise(info: Any) -> None:
    info.compress_type = 14


REFUSED: dict[str, tuple[bytes, str]] = {
    "an old workbook, or one with a password": (
        OLE,
        "line 1: the file is an Excel workbook of the old format (.xls), or protected",
    ),
    "not a workbook": (b"cat_id\n976759\n", OTHER),
    "nothing": (b"", OTHER),
    "an archive": (with_parts(book=None), OTHER),
    "truncated": (GOOD[:-30], "the workbook is damaged or truncated"),
    "truncated in the middle": (GOOD[: len(GOOD) // 2], "the workbook is damaged or truncated"),
    "an encrypted part": (with_info(GOOD, encrypted), "the workbook is protected by a password"),
    "an unknown compression": (with_info(GOOD, compressed_otherwise), OTHER),
    "XML that ends": (raw_sheet(b"<worksheet><sheetData><row>"), "the workbook is damaged"),
    "not XML": (raw_sheet(b"\x00\x01"), "the workbook is damaged"),
    "entities": (raw_sheet(b'<!DOCTYPE a [<!ENTITY x "y">]><worksheet>&x;</worksheet>'), "the workbook is damaged"),
    "rows in disorder": (with_parts(sheet=HEADER + b'<row r="1"/>'), "line 2: the workbook is damaged"),
    "a row that no sheet has": (
        with_parts(sheet=HEADER + b'<row r="99999999"/>'),
        "line 2: the sheet has more than 1,048,576 rows",
    ),
    "a column that no sheet has": (
        with_parts(sheet=HEADER + b'<row r="2"><c r="ZZZ2"/></row>'),
        "line 2: the sheet has more than 16,384 columns",
    ),
    "an unknown column": (workbook(["Cat_ID"], [1]), "line 1: unknown column 'Cat_ID' (did you mean 'cat_id'?)"),
    "an index": (workbook([None, "cat_id"], [0, 976759]), "line 2: the row has a value in column A, which has no name"),
    "a formula in the header": (workbook(["=A1"], [1]), f"line 1: the header {NO_RESULT}"),
}


@pytest.mark.parametrize("name", READ)
def test_workbooks_are_read(name: str) -> None:
    content, expected = READ[name]
    found = rows(content)
    assert [row.cells for row in found] == expected
    assert all(row.is_text for row in found)


@pytest.mark.parametrize("name", BROKEN)
def test_rows_that_cannot_be_read_have_a_sentence(name: str) -> None:
    content, problem = BROKEN[name]
    row = rows(content)[-1]
    assert row.cells is None
    assert problem in row.problem


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_cannot_be_read_have_a_sentence(name: str) -> None:
    content, problem = REFUSED[name]
    with pytest.raises(UnreadableFileError) as raised:
        rows(content)
    assert problem in str(raised.value)


@pytest.mark.parametrize("suffix", ["xlsx", "XLSM"])
def test_workbooks_are_recognised_by_their_suffix(suffix: str) -> None:
    assert [row.cells for row in rows(GOOD, f"t.{suffix}")] == [{"cat_id": "976759"}]


def test_the_lines_are_the_numbers_of_the_spreadsheet() -> None:
    assert [row.line for row in rows(workbook([], ["cat_id"], [], [1], [2]))] == [4, 5]


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (date(2026, 11, 23), None, "2026-11-23"),
        (datetime(2026, 11, 23, 10, 30, 15), None, "2026-11-23T10:30:15"),  # noqa: DTZ001
        (time(1, 2), None, "01:02:00"),
        (46349, "dd.mm.yyyy", "2026-11-23"),
        (46349, '"day" 0', "46349"),
        (46349, "[Red]0.00", "46349"),
        (1.5, "[h]:mm", "1900-01-01T12:00:00"),
        (-5, "yyyy", "-5"),
        (1, "yyyy-mm-dd", "1900-01-01"),
        (2958465, "yyyy-mm-dd", "9999-12-31"),
        (2958466, "yyyy-mm-dd", "2958466"),
        (2958465.9999999, "yyyy-mm-dd", "2958465.9999999"),
        (1.50, None, "1.5"),
        (True, None, "true"),
        (123456789012345, None, "123456789012345"),
    ],
)
def test_values_have_the_text_that_people_read(value: Any, number_format: str | None, text: str) -> None:
    def show(book: openpyxl.Workbook) -> None:
        if number_format:
            book.worksheets[0]["A1"].number_format = number_format

    assert cells(workbook([value], change=show)) == [[text]]


def test_dates_may_be_counted_from_1904() -> None:
    assert cells(workbook([date(2026, 11, 23)], change=dates_from_1904)) == [["2026-11-23"]]


def test_a_number_after_the_last_day_from_1904_is_not_a_date() -> None:
    def show(book: openpyxl.Workbook) -> None:
        dates_from_1904(book)
        book.worksheets[0]["A1"].number_format = "yyyy-mm-dd"

    assert cells(workbook([2958465], change=show)) == [["2958465"]]


@given(
    st.lists(
        st.lists(
            st.text(
                st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff"), min_size=1
            ),
            min_size=1,
        ),
        min_size=1,
    )
)
def test_any_text_is_read_as_it_was_written(texts: list[list[str]]) -> None:
    def typed(book: openpyxl.Workbook) -> None:
        for cell in (each for row in book.worksheets[0] for each in row):
            cell.data_type = "s"

    content = workbook(*[[each.replace("_x", "x") for each in row] for row in texts], change=typed)
    expected = [[each.replace("_x", "x") for each in row if each.strip()] for row in texts]
    assert cells(content) == [row for row in expected if row]


@given(st.binary(max_size=400), st.integers(0, len(GOOD)), st.integers(0, 400))
def test_any_damage_ends_with_rows_or_a_sentence(junk: bytes, start: int, length: int) -> None:
    content = GOOD[:start] + junk + GOOD[start + length :]
    try:
        rows(content)
    except UnreadableFileError as error:
        assert str(error)  # noqa: PT017
    except READ_ERRORS:
        pass  # ``FileSource`` names the file and the error


@pytest.mark.parametrize("number", [1, 26, 27, 702, 703, 16_384])
def test_columns_have_a_name_and_a_number(number: int) -> None:
    assert column_number(column_name(number)) == number


BOMBS = {
    "a long cell": lambda: with_parts(
        sheet=HEADER + b'<row r="2"><c r="A2" t="inlineStr"><is><t>' + b"a" * 300_000_000
    ),
    "a long tag": lambda: with_parts(sheet=HEADER + b'<row r="2" x="' + b"a" * 300_000_000),
    "a comment": lambda: with_parts(sheet=HEADER + b"<!--" + b"a" * 300_000_000),
    "cells outside of rows": lambda: with_parts(sheet=HEADER + b"<c/>" * 10_000_000),
    "unknown elements": lambda: with_parts(sheet=HEADER + b"<z/>" * 10_000_000),
    "deep elements": lambda: with_parts(sheet=HEADER + b"<z>" * 10_000_000),
    "many texts": lambda: with_parts(strings=b"<sst>" + b"<si/>" * 20_000_000 + b"</sst>"),
    "a long shared text": lambda: with_parts(strings=b"<sst><si><t>" + b"a" * 120_000_000 + b"</t></si></sst>"),
    "many formats": lambda: with_parts(styles=b"<s><cellXfs>" + b"<xf/>" * 20_000_000),
    "many sheets": lambda: with_parts(book=b"<workbook><sheets>" + b'<sheet r:id="1"/>' * 6_000_000),
    "more bytes than allowed": lambda: with_parts(strings=bytes(200_000_000)),
    "many rows": lambda: with_parts(sheet=HEADER + b"<row/>" * 20_000_000),
    "a wide row": lambda: with_parts(sheet=HEADER + b'<row r="2">' + b"<c><v>1</v></c>" * 5_000_000),
}
_READ_ONE = """
import io, json, re, sys, time
from tests.targets.test_xlsx import rows
from tests.targets.workbooks import *
content = open(sys.argv[1], "rb").read()
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
before, start = peak(), time.process_time()
try:
    problem = f"{len(rows(content))} rows"
except Exception as error:
    problem = str(error)
print(json.dumps([problem, peak() - before, round(time.process_time() - start, 1)]))
"""


@pytest.mark.soak
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_bounded_memory(name: str, tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_bytes(BOMBS[name]())
    out = subprocess.run(
        [sys.executable, "-c", _READ_ONE, str(tmp_path / "t.xlsx")], check=True, capture_output=True, text=True
    ).stdout
    problem, megabytes, _ = json.loads(out)
    assert problem.startswith("line ") or problem.endswith(" rows")
    assert megabytes < 200
