"""Targets in Excel workbooks of different programs are read correctly, or rejected with a clear message."""

from __future__ import annotations

import io
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.worksheet.hyperlink import Hyperlink
from structlog.testing import capture_logs

from crawler.errors import UnsupportedMediaType
from crawler.registry import spiders
from crawler.service.jobs.uploads import Upload
from crawler.targets.files import tables as reader
from crawler.targets.files import workbook_child
from crawler.targets.files.rows import Row, UnreadableFileError
from crawler.targets.files.source import READ_ERRORS, read_rows
from crawler.targets.parser import TargetParser
from tests.targets.workbooks import HEADER, raw_sheet, read_here, with_info, with_parts, workbook

PARSER = TargetParser(spiders()["retail"].scrapers)


def rows(content: bytes, name: str = "t.xlsx") -> list[Row]:
    return list(read_rows(io.BytesIO(content), name, PARSER))


def cells(content: bytes) -> list[list[str]]:
    with read_here():
        return [list(row.cells.values()) for row in reader.read_sheet(io.BytesIO(content))]


def below_header(xml: bytes) -> bytes:
    """Return a workbook with rows below the header ``cat_id``."""
    return with_parts(sheet=HEADER + xml)


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


def hidden_rows(book: openpyxl.Workbook) -> None:
    book.worksheets[0].row_dimensions[2].hidden = True


def empty_columns(book: openpyxl.Workbook) -> None:
    for column in range(3, 10_003):
        for row in (1, 2, 3):
            book.worksheets[0].cell(row, column).number_format = "0.00"


READ: dict[str, tuple[Callable[[], bytes], list[dict[str, str]]]] = {
    "numbers": (
        lambda: workbook(["cat_id", "page"], [976759, 2.0], ["976759", None]),
        [{"cat_id": "976759", "page": "2"}, {"cat_id": "976759"}],
    ),
    "spaces around a name": (lambda: workbook(["\u00a0cat_id "], [1]), [{"cat_id": "1"}]),
    "empty rows and columns": (lambda: workbook([], [None, "cat_id"], [], [None, 1], [None, " "]), [{"cat_id": "1"}]),
    "texts with quotes and formulas": (
        lambda: workbook(["query"], ["'a"], ['"b"']),
        [{"query": "'a"}, {"query": '"b"'}],
    ),
    "a link": (lambda: workbook(["cat_id"], ["7"], change=link), [{"cat_id": "7"}]),
    "merged cells": (
        lambda: workbook(["cat_id", "page"], [1, 1], [None, 2], change=merged),
        [{"cat_id": "1", "page": "1"}, {"page": "2"}],
    ),
    "the first visible sheet with content": (
        lambda: workbook(["query"], ["hidden"], change=second_sheet),
        [{"cat_id": "1"}],
    ),
    "10,000 empty columns": (
        lambda: workbook(["cat_id"], [1], [2], change=empty_columns),
        [{"cat_id": "1"}, {"cat_id": "2"}],
    ),
    "an empty workbook": (workbook, []),
    "only a header": (lambda: workbook(["cat_id"]), []),
    "rows without numbers": (
        lambda: with_parts(sheet=b"<row><c t='inlineStr'><is><t>cat_id</t></is></c></row><row><c><v>5</v></c></row>"),
        [{"cat_id": "5"}],
    ),
    "rich and phonetic text": (
        lambda: with_parts(
            sheet=b"<row><c t='inlineStr'><is><t>query</t></is></c></row><row><c t='inlineStr'><is>"
            b'<r><t>a</t></r><r><t xml:space="preserve"> b</t></r><rPh><t>x</t></rPh></is></c></row>'
        ),
        [{"query": "a b"}],
    ),
    "the result of a formula": (
        lambda: below_header(
            b'<row r="2"><c r="A2"><f>1+6</f><v>7</v></c></row>'
            b'<row r="3"><c r="A3" t="str"><f>"8"</f><v>8</v></c></row>'
        ),
        [{"cat_id": "7"}, {"cat_id": "8"}],
    ),
    "elements of other namespaces": (
        lambda: raw_sheet(
            b'<x:worksheet xmlns:x="http://purl.oclc.org/ooxml/spreadsheetml/main"><x:sheetData>'
            b'<x:row><x:c t="inlineStr"><x:is><x:t>cat_id</x:t></x:is></x:c>'
            b"</x:row><x:row><x:c><x:v>5</x:v></x:c></x:row></x:sheetData></x:worksheet>"
        ),
        [{"cat_id": "5"}],
    ),
    "shared texts": (
        lambda: with_parts(
            strings=b"<sst><si><t>query</t></si><si><r><t>M\xc3\xbc</t></r><r><t>sli</t></r><rPh><t>x</t></rPh></si></sst>",
            sheet=b'<row><c t="s"><v>0</v></c></row><row><c t="s"><v>1</v></c></row>',
        ),
        [{"query": "Müsli"}],
    ),
    "a hidden row": (lambda: workbook(["cat_id"], [1], [2], change=hidden_rows), [{"cat_id": "1"}, {"cat_id": "2"}]),
    "a formula whose result is an empty text": (
        lambda: below_header(b'<row r="2"><c r="A2" t="str"><f>""</f><v></v></c><c r="B2"/></row>'),
        [],
    ),
    "texts that look like XML": (
        lambda: workbook(["query"], ['<c r="A1" t="e">'], ["<c><f>1</f></c>"]),
        [{"query": '<c r="A1" t="e">'}, {"query": "<c><f>1</f></c>"}],
    ),
    "a gap of a million rows": (
        lambda: below_header(b'<row r="1048576"><c r="A1048576"><v>7</v></c></row>'),
        [{"cat_id": "7"}],
    ),
}

NO_RESULT = "has a formula without a result in column A"
BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "a formula without a result": (lambda: workbook(["cat_id"], ["=1+1"]), NO_RESULT),
    "a number with too many digits": (
        lambda: workbook(["cat_id"], [1234567890123456789]),
        "has a number in column A whose last digits may be lost",
    ),
    "an error": (lambda: workbook(["cat_id"], ["#N/A"]), "contains #N/A, which a spreadsheet"),
    "an error of a formula": (
        lambda: below_header(b'<row r="2"><c r="A2" t="e" s="0"><f>1/0</f><v>#DIV/0!</v></c></row>'),
        "contains #DIV/0!, which a spreadsheet",
    ),
    "an error with a prefix": (
        lambda: raw_sheet(
            b'<x:worksheet xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><x:sheetData><x:row>'
            b'<x:c t="inlineStr"><x:is><x:t>cat_id</x:t></x:is></x:c></x:row><x:row><x:c r="A2" t="e"><x:v>#REF!</x:v>'
            b"</x:c></x:row></x:sheetData></x:worksheet>"
        ),
        "contains #REF!, which a spreadsheet",
    ),
    "a formula without a result in another form": (
        lambda: below_header(b'<row r="2"><c t="n" r="A2"><f t="shared" si="0"/> <v/></c></row>'),
        NO_RESULT,
    ),
    "the number after 2^53": (
        lambda: below_header(b'<row r="2"><c r="A2"><v>9007199254740994</v></c></row>'),
        "has a number in column A whose last digits may be lost",
    ),
    "a value without a name": (
        lambda: workbook(["cat_id"], [1], [2, "x"]),
        "has a value in column B, which has no name",
    ),
    "the header again": (lambda: workbook(["cat_id"], ["cat_id"]), "repeats the header"),
    "a long text": (
        lambda: below_header(b'<row r="2"><c r="A2" t="inlineStr"><is><t>' + b"a" * 40_000 + b"</t></is></c></row>"),
        "more than 32,767 characters",
    ),
    "infinity": (
        lambda: below_header(b'<row r="2"><c r="A2"><v>1e999</v></c></row>'),
        "has a number in column A whose last digits",
    ),
}

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
OTHER = "the file is not an Excel workbook (.xlsx)"
DAMAGED = "line 1: the workbook is too large or damaged: save the sheet as CSV (UTF-8)."
GOOD = workbook(["cat_id"], [976759])


def encrypted(info: Any) -> None:
    info.flag_bits |= 1


def compressed_otherwise(info: Any) -> None:
    info.compress_type = 14


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "an old workbook, or one with a password": (
        lambda: OLE,
        "line 1: the file is an Excel workbook of the old format (.xls), or protected",
    ),
    "not a workbook": (lambda: b"cat_id\n976759\n", OTHER),
    "nothing": (lambda: b"", OTHER),
    "an archive": (lambda: with_parts(book=None), DAMAGED),
    "truncated": (lambda: GOOD[:-30], DAMAGED),
    "truncated in the middle": (lambda: GOOD[: len(GOOD) // 2], DAMAGED),
    "an encrypted part": (lambda: with_info(GOOD, encrypted), "line 1: the workbook is protected by a password"),
    "an unknown compression": (lambda: with_info(GOOD, compressed_otherwise), DAMAGED),
    "XML that ends": (lambda: raw_sheet(b"<worksheet><sheetData><row>"), DAMAGED),
    "not XML": (lambda: raw_sheet(b"\x00\x01"), DAMAGED),
    "no such text": (lambda: below_header(b'<row r="2"><c r="A2" t="s"><v>9</v></c></row>'), DAMAGED),
    "an unknown column": (
        lambda: workbook(["Cat_IDs"], [1]),
        "line 1: unknown column 'Cat_IDs' (did you mean 'cat_id'?)",
    ),
    "an index": (
        lambda: workbook([None, "cat_id"], [0, 976759]),
        "line 2: the row has a value in column A, which has no name",
    ),
    "a formula in the header": (lambda: workbook(["=A1"], [1]), f"line 1: the header {NO_RESULT}"),
}


@pytest.mark.parametrize("name", READ)
def test_workbooks_are_read(name: str) -> None:
    make, expected = READ[name]
    with read_here():
        found = rows(make())
    assert [row.cells for row in found] == expected
    assert all(row.is_text for row in found)


@pytest.mark.parametrize("name", BROKEN)
def test_rows_that_cannot_be_read_have_a_sentence(name: str) -> None:
    make, problem = BROKEN[name]
    with read_here():
        row = rows(make())[-1]
    assert row.cells is None
    assert problem in row.problem


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_cannot_be_read_have_a_sentence(name: str) -> None:
    make, problem = REFUSED[name]
    with read_here(), pytest.raises(UnreadableFileError) as raised:
        rows(make())
    assert problem in str(raised.value)


def test_workbooks_with_macros_are_recognised_by_their_suffix() -> None:
    assert [row.cells for row in rows(GOOD, "t.XLSM")] == [{"cat_id": "976759"}]


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
        (1.5, "[h]:mm", "36:00:00"),
        (1, "yyyy-mm-dd", "1900-01-01"),
        (2958465, "yyyy-mm-dd", "9999-12-31"),
        (2958466, "yyyy-mm-dd", "2958466"),
        (1.50, None, "1.5"),
        (True, None, "true"),
        (123456789012345, None, "123456789012345"),
        (2**53, None, "9007199254740992"),
        (0.1, None, "0.1"),
        (1e-7, None, "1e-07"),
        ("00123", None, "00123"),
    ],
)
def test_values_have_the_text_that_people_read(value: Any, number_format: str | None, text: str) -> None:
    def show(book: openpyxl.Workbook) -> None:
        if number_format:
            book.worksheets[0]["A1"].number_format = number_format

    assert cells(workbook([value], change=show)) == [[text]]


@pytest.mark.parametrize(("value", "text"), [(date(2026, 11, 23), "2026-11-23"), (2958465, "2958465")])
def test_dates_may_be_counted_from_1904(value: Any, text: str) -> None:
    """The last number is after the last day."""

    def show(book: openpyxl.Workbook) -> None:
        dates_from_1904(book)
        book.worksheets[0]["A1"].number_format = "yyyy-mm-dd"

    assert cells(workbook([value], change=show)) == [[text]]


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
    with read_here(), suppress(UnreadableFileError, *READ_ERRORS):  # ``FileSource`` names the file and the error
        rows(GOOD[:start] + junk + GOOD[start + length :])


def _cell(row: int, column: bytes) -> bytes:
    return b'<row r="%d"><c r="%b%d"><v>1</v></c></row>' % (row, column, row)


def _entities() -> bytes:
    declared = b"".join(b'<!ENTITY %c "%b">' % (c + 1, b"&%c;" % c * 10) for c in range(97, 108))
    return raw_sheet(
        b'<!DOCTYPE a [<!ENTITY a "' + b"a" * 1_000 + b'">' + declared + b"]><worksheet><sheetData>"
        b'<row><c t="inlineStr"><is><t>&l;</t></is></c></row></sheetData></worksheet>'
    )


EMPTY = b'<c s="1"/>' * 1_000
HOSTILE: dict[str, tuple[Callable[[], bytes], int | str]] = {
    "the last cell of the grid": (lambda: below_header(_cell(1_048_576, b"XFD")), DAMAGED),
    "a cell far away": (lambda: below_header(_cell(1_048_576, b"CV")), DAMAGED),
    "a cell outside of the grid": (lambda: below_header(_cell(99_999_999, b"ZZZZ")), DAMAGED),
    "five million empty cells": (
        lambda: below_header(b"".join(b'<row r="%d">%b</row>' % (n, EMPTY) for n in range(2, 5_002))),
        0,
    ),
    "entities": (_entities, DAMAGED),
    "1 GB of text in a cell": (
        lambda: below_header(b'<row><c t="inlineStr"><is><t>' + b"a" * 2**30 + b"</t></is></c></row>"),
        DAMAGED,
    ),
    "1 GB of text that cells share": (
        lambda: with_parts(
            strings=b"<sst><si><t>cat_id</t></si><si><t>" + b"a" * 32_000 + b"</t></si></sst>",
            sheet=b'<row><c t="s"><v>0</v></c></row>' + b'<row><c t="s"><v>1</v></c></row>' * 33_000,
        ),
        DAMAGED,
    ),
}


SLOW = {"1 GB of text in a cell", "1 GB of text that cells share", "five million empty cells"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name in SLOW else ()) for name in HOSTILE]
)
def test_hostile_workbooks_have_a_count_of_rows_or_a_sentence(name: str) -> None:
    make, expected = HOSTILE[name]
    content = make()
    before = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    found: int | str
    try:
        found = len(rows(content))
    except UnreadableFileError as error:
        found = str(error)
    after = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    assert found == expected
    child, own = (late.ru_utime - early.ru_utime for early, late in zip(before, after, strict=True))
    assert child <= workbook_child.CPU_SECONDS
    assert own < 1, "the work is done in the other process"


def test_100_001_rows_are_read() -> None:
    cells_of_rows = (b'<row r="%d"><c r="A%d"><v>%d</v></c></row>' % (n, n, n) for n in range(2, 100_003))
    found = rows(below_header(b"".join(cells_of_rows)))
    assert len(found) == 100_001
    assert [(row.line, row.cells) for row in (found[0], found[-1])] == [
        (2, {"cat_id": "2"}),
        (100_002, {"cat_id": "100002"}),
    ]


LIMITED = """
import os, resource as r, runpy, sys
runpy.run_path(sys.argv[1])["_limit"]()
print(os.nice(0), *(r.getrlimit(each)[1] for each in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_CORE)))
"""


def test_the_other_process_has_limits_and_lets_the_endpoint_go_first() -> None:
    limits = subprocess.check_output([sys.executable, "-I", "-c", LIMITED, workbook_child.__file__])
    assert [int(each) for each in limits.split()] == [min(os.nice(0) + 10, 19), 1024**3, 20, 1024**3, 0]


def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SECONDS", 0.001)
    with pytest.raises(UnreadableFileError, match="too large or damaged"):
        rows(GOOD)


def test_a_file_beyond_the_limit_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_FILE_BYTES", len(GOOD) - 1)
    with pytest.raises(UnreadableFileError, match="too large or damaged"):
        rows(GOOD)


def test_without_limits_a_workbook_is_read_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "has_limits", lambda: False)
    with capture_logs() as logs:
        assert [row.cells for row in rows(GOOD)] == [{"cat_id": "976759"}]
    assert [(each["event"], each["log_level"]) for each in logs] == [("workbook_without_limits", "warning")]


def test_without_limits_an_upload_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload(io.BytesIO(GOOD), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
    upload.check()
    monkeypatch.setattr("crawler.service.jobs.uploads.has_limits", lambda: False)
    with pytest.raises(UnsupportedMediaType, match="send the sheet as CSV"):
        upload.check()
    Upload(io.BytesIO(), "text/csv").check()


def test_the_other_process_imports_nothing_of_the_project() -> None:
    text = Path(workbook_child.__file__).read_text(encoding="utf-8")
    assert not re.search(r"^\s*(from|import) crawler", text, re.MULTILINE)
