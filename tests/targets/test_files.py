"""Realistic targets files: each is read correctly, or rejected with a message that names the line."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.outputs.feed_files import failure_line
from crawler.platforms.links import cleaned
from crawler.registry import spiders
from crawler.targets.files.json import _Elements, read_json_array
from crawler.targets.files.rows import COMMAND, damaged, replaced_value
from crawler.targets.files.source import FileSource
from crawler.targets.files.tables import _APOSTROPHE, _FORMULA
from crawler.targets.files.text import CHUNK_BYTES, TextFile
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetsUnavailableError, WrongTargetsError
from crawler.targets.target import InvalidTarget, Outcome, Target
from tests import forks
from tests.crawls import command
from tests.targets.reading import all_of

FOOD = {"cat_id": "976759"}
TWO = [FOOD, {"query": "Müsli"}]
TABLE = "id,cat_id,query\na,976759,\nb,,Müsli\n"
SEARCH = "retail-search-v4"


@dataclass(frozen=True)
class Broken:
    """A row that becomes a failed target. Its message contains ``text``."""

    text: str


@dataclass(frozen=True)
class Refused:
    """A file that ends the run before its first target. The message contains ``text``."""

    text: str


@dataclass(frozen=True)
class Cut:
    """A file that cannot be read to its end: after ``targets``, the run ends with an error."""

    targets: list[dict[str, Any]]
    text: str


@dataclass(frozen=True)
class Case:
    name: str
    content: bytes | str
    expected: list[dict[str, Any] | Broken] | Refused | Cut
    scraper: str | None = None
    encoding: str | None = None
    spider: str = "retail"


def read(folder: Path, case: Case) -> list[Target | InvalidTarget]:
    """Write the file of a case, and read its targets."""
    content = case.content.encode() if isinstance(case.content, str) else case.content
    (folder / case.name).write_bytes(content)
    parser = TargetParser(spiders()[case.spider].scrapers, case.scraper)
    return all_of(FileSource(parser, str(folder / case.name), encoding=case.encoding))


def params(target: Target | InvalidTarget) -> dict[str, Any]:
    assert isinstance(target, Target), target
    return target.params.model_dump(exclude_none=True, exclude_defaults=True)


UTF_32 = Refused("line 1: the file is UTF-32, which is not read: save it as UTF-8.")

ENCODINGS = {
    "utf-8": Case("t.csv", TABLE, [*TWO]),
    "utf-8 with a BOM": Case("t.csv", TABLE.encode("utf-8-sig"), [*TWO]),
    "utf-16 le with a BOM": Case("t.csv", codecs.BOM_UTF16_LE + TABLE.encode("utf-16-le"), [*TWO]),
    "utf-16 be with a BOM": Case("t.csv", codecs.BOM_UTF16_BE + TABLE.encode("utf-16-be"), [*TWO]),
    "utf-32 le with a BOM": Case("t.csv", codecs.BOM_UTF32_LE + TABLE.encode("utf-32-le"), UTF_32),
    "utf-32 be with a BOM": Case("t.csv", codecs.BOM_UTF32_BE + TABLE.encode("utf-32-be"), UTF_32),
    "utf-16 without a BOM": Case("t.csv", TABLE.encode("utf-16-le"), Refused("line 1: not UTF-8")),
    "utf-16 without a BOM, named": Case("t.csv", TABLE.encode("utf-16-le"), [*TWO], encoding="utf-16-le"),
    "latin-1": Case("t.csv", TABLE.encode("latin-1"), Refused("t.csv, line 3: not valid UTF-8 (byte 0xfc)")),
    "cp1252, named": Case("t.csv", TABLE.encode("cp1252"), [*TWO], encoding="cp1252"),
    "cp1252 with an undefined byte": Case(
        "t.csv", TABLE.encode("cp1252") + b"c,,caf\x81\n", Refused("line 4: not valid CP1252"), encoding="cp1252"
    ),
    "shift_jis, named": Case(
        "t.csv", "query\nマスタード\n".encode("shift_jis"), [{"query": "マスタード"}], encoding="shift_jis"
    ),
    "utf-8, but another is named": Case("t.csv", TABLE, Refused("line 1: the file is UTF-8"), encoding="cp1252"),
    "utf-8 with a BOM, and another is named": Case("t.csv", TABLE.encode("utf-8-sig"), [*TWO], encoding="cp1252"),
    "utf-16 is named, but it is not": Case("t.csv", TABLE, Refused("line 1: the file is UTF-8"), encoding="utf-16"),
    "a bad byte after the start": Case(
        "t.csv",
        b"query\n" + b"mustard\n" * 10_000 + b"M\xfcsli\n",
        [*[{"query": "mustard"}] * 10_000, Broken("byte 0xfc")],
    ),
    "characters that another program lost": Case(
        "t.csv", "query\nM\ufffdsli\n", [Broken("Line 2 of t.csv contains U+FFFD")]
    ),
    "iso-2022-jp": Case(
        "t.csv", "query\nマスタード\n".encode("iso2022_jp"), [Broken("Line 2 of t.csv contains the character U+001B")]
    ),
    "a list in latin-1": Case("t.txt", "Müsli\n".encode("latin-1"), Refused("line 1: not valid"), scraper=SEARCH),
    "json lines in utf-16": Case("t.jsonl", '{"query": "Müsli"}\r\n'.encode("utf-16"), [TWO[1]]),
    "json lines with a BOM": Case("t.jsonl", '\ufeff{"query": "Müsli"}\n', [TWO[1]]),
    "json lines in latin-1": Case(
        "t.jsonl", '{"query": "a"}\n{"query": "Müsli"}\n'.encode("latin-1"), [{"query": "a"}, Broken("byte 0xfc")]
    ),
    "json lines in cp1252, named": Case(
        "t.jsonl", '{"query": "Müsli"}\n'.encode("cp1252"), [TWO[1]], encoding="cp1252"
    ),
    "json in utf-8, but another is named": Case(
        "t.json", '[{"query": "Müsli"}]', Refused("line 1: the file is UTF-8"), encoding="cp1252"
    ),
    "a lone surrogate": Case("t.jsonl", '{"query": "\\ud83d"}\n', [Broken("U+D83D")]),
    "an escaped NUL": Case("t.jsonl", '{"query": "a\\u0000"}\n', [Broken("U+0000")]),
    "utf-16 that ends within a character": Case(
        "t.csv", "query\nab".encode("utf-16")[:-1], Refused("line 2: not valid")
    ),
}

TABLES = {
    "a row with totals": Case("t.csv", "query,cost\nx,2\n,2\n", [{"query": "x"}, Broken("do not identify a scraper")]),
    "semicolons": Case("t.csv", TABLE.replace(",", ";"), [*TWO]),
    "tabs in .csv": Case("t.csv", TABLE.replace(",", "\t"), [*TWO]),
    "tabs in .tsv": Case("t.tsv", TABLE.replace(",", "\t"), [*TWO]),
    "commas in .tsv": Case("t.TSV", TABLE, [*TWO]),
    "a line with the separator": Case("t.csv", "sep=;\r\n" + TABLE.replace(",", ";"), [*TWO]),
    "a separator that is not guessed": Case("t.csv", "sep=|\r\n" + TABLE.replace(",", "|"), [*TWO]),
    "Excel's Unicode text": Case("t.txt", TABLE.replace(",", "\t").replace("\n", "\r\n").encode("utf-16"), [*TWO]),
    "CRLF": Case("t.csv", TABLE.replace("\n", "\r\n"), [*TWO]),
    "CR": Case("t.csv", TABLE.replace("\n", "\r"), [*TWO]),
    "no line end at the end": Case("t.csv", TABLE.rstrip(), [*TWO]),
    "quoted cells": Case("t.csv", '"cat_id","query"\n"976759",""\n"","Müsli"\n', [*TWO]),
    "a cell with separators and quotation marks": Case(
        "t.csv", 'query\n"5"" pipe, steel; new"\n', [{"query": '5" pipe, steel; new'}]
    ),
    "a cell with several lines": Case(
        "t.csv", 'id,query\na,"red\r\ngreen"\nb,blue\n', [{"query": "red\r\ngreen"}, {"query": "blue"}]
    ),
    "columns without a name at the end": Case("t.csv", "cat_id,query,,\n976759,,,\n,Müsli\n", [*TWO]),
    "cells without content at the end": Case("t.csv", "cat_id,query\n976759,,,\n,Müsli,\n", [*TWO]),
    "rows without content": Case("t.csv", "\n,,\ncat_id,query\n,\n976759,\n\n \t,\u00a0\n,Müsli\n,\n,\n", [*TWO]),
    "spaces around the columns' names": Case("t.csv", "\u00a0cat_id , query\u00a0\u200b\n976759,\n,Müsli\n", [*TWO]),
    "a number as a formula": Case("t.csv", 'cat_id\n="976759"\n"=""976759"""\n', [FOOD, FOOD]),
    "an apostrophe before a number": Case(
        "t.csv", "cat_id,query\n'976759,\n,'90s hits\n", [FOOD, {"query": "'90s hits"}]
    ),
    "an apostrophe before a handle": Case(
        "t.csv", "username\n'@harborlights\n", [{"username": "@harborlights"}], spider="videosite"
    ),
    "an index of pandas": Case("t.csv", ",cat_id\n0,976759\n", Refused("line 2: the row has a value in column 1")),
    "a column without a name and content": Case("t.csv", ",cat_id\n,976759\n", [FOOD]),
    "a value without a name": Case(
        "t.csv", "cat_id,,query\n976759,,\n,x,a\n", [FOOD, Broken("has a value in column 2")]
    ),
    "a misspelt column": Case(
        "t.csv", "id,Cat_IDs\na,976759\n", Refused("line 1: unknown column 'Cat_IDs' (did you mean 'cat_id'?)")
    ),
    "other spaces and letters in the columns' names": Case("t.csv", "CAT ID,Query\n976759,\n,Müsli\n", [*TWO]),
    "a column twice, written differently": Case(
        "t.csv", "query,Query\nmustard,ketchup\n", Refused("line 1: several columns have the name 'query'")
    ),
    "columns in another language": Case(
        "t.csv", "kategorie;seite\n976759;2\n", Refused("line 1: unknown columns 'kategorie'")
    ),
    "a column of the user's own": Case("t.csv", "cat_id,notes\n976759,x\n", [FOOD]),
    "a column that is hardly the user's own": Case("t.csv", "cat_id,Pages\n976759,2\n", [FOOD]),
    "a misspelt column after the separator": Case(
        "t.csv", "sep=;\ncat;quer\n1;2\n", Refused("line 2: unknown columns 'cat'")
    ),
    "a column of another scraper": Case(
        "t.csv", "cat_id\n976759\n", Refused("unknown column 'cat_id'"), scraper=SEARCH
    ),
    "a column twice": Case("t.csv", "query,query\nmustard,ketchup\n", Refused("line 1: several columns have the name")),
    "no column that identifies a target": Case(
        "t.csv", "id,page\na,2\n", Refused("line 1: the columns id, page identify no target")
    ),
    "no header": Case("t.csv", "976759,price_low\n", Refused("line 1: unknown columns '976759'")),
    "a thousand unknown columns": Case(
        "t.csv",
        ",".join(f"c{number}" for number in range(1_000)) + "\n1\n",
        Refused("line 1: unknown columns 'c0', 'c1', 'c2', 'c3', 'c4' and 995 more. Known columns: id, "),
    ),
    "an unknown separator": Case("t.csv", TABLE.replace(",", "|"), Refused("line 1: unknown column 'id|cat_id|query'")),
    "JSON with the name of a table": Case("t.csv", '{"cat_id": "976759"}\n', Refused("line 1: unknown column")),
    "HTML with the name of a table": Case(
        "t.csv", "<html><table><tr><td>cat_id</td></tr>\n", Refused("line 1: unknown column")
    ),
    "a spreadsheet": Case("t.csv", b"PK\x03\x04\x14\x00\x06\x00", Refused("line 1: the file is a spreadsheet")),
    "an old spreadsheet": Case("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", Refused("line 1: the file is a spreadsheet")),
    "gzip without its suffix": Case("t.csv", gzip.compress(TABLE.encode()), Refused("line 1: the file is compressed")),
    "gzip": Case("t.csv.gz", gzip.compress(TABLE.encode()), [*TWO]),
    "too few and too many cells": Case(
        "t.csv",
        "id,cat_id,query\na,976759\nb,976759,,x\n",
        [Broken("Line 2 of t.csv has 2 cells"), Broken("Line 3 of t.csv has 4")],
    ),
    "an open quotation mark": Case(
        "t.csv", 'id,query\na,"red\nb,green\nc,"blue"\nd,grey\n', [Broken("it extends to line 4"), {"query": "grey"}]
    ),
    "a quotation mark that is never closed": Case(
        "t.csv", 'query\n"red\nblue\n', [Broken("Line 2 of t.csv is not valid CSV")]
    ),
    "a line of more than a megabyte": Case(
        "t.csv",
        f"query\n{'x' * 2_000_000}\nred\n",
        [Broken("a line is longer than 1048576 characters"), {"query": "red"}],
    ),
    "two byte order marks": Case("t.csv", ("\ufeff" + TABLE).encode("utf-8-sig"), [*TWO]),
    "an index of pandas with a name": Case("t.csv", "Unnamed: 0,cat_id\n0,976759\n", [FOOD]),
    "a tab in a cell": Case("t.csv", "query\nred\tgreen\n", [{"query": "red\tgreen"}]),
    "the header again": Case(
        "t.csv",
        "id,query\na,red\nid,query\nb,blue\n",
        [{"query": "red"}, Broken("repeats the header"), {"query": "blue"}],
    ),
    "a shortened number": Case("t.csv", "query\n1.23457E+11\n", [Broken("contains 1.23457E+11")]),
    "values that a spreadsheet replaced": Case(
        "t.csv",
        "query\n#N/A\n######\n\\N\n#mustard\n",
        [*map(Broken, ["#N/A", "######", "\\N"]), {"query": "#mustard"}],
    ),
    "a decimal comma": Case("t.csv", "query;min_price\nred;1,50\n", [Broken("min_price")]),
    "a float as an id": Case("t.csv", "cat_id\n976759.0\n", [Broken("cat_id")]),
    "a header of a megabyte": Case(
        "t.csv", b"x" * 2_000_000 + b"\n1\n", Refused("line 1: the header is not valid CSV")
    ),
    "a header without rows": Case("t.csv", "cat_id\n", []),
    "an empty file": Case("t.csv", "", []),
    "an empty file with a BOM": Case("t.csv", codecs.BOM_UTF8, []),
    "an unknown scraper": Case("t.csv", TABLE, Refused("Unknown scraper 'search'"), scraper="search"),
}

LISTS = {
    "ids": Case("t.txt", "976759\n\n 3944\u00a0\r\n", [FOOD, {"cat_id": "3944"}]),
    "ids without a suffix": Case("targets", "976759\n", [FOOD]),
    "ids and URLs": Case(
        "t.txt",
        "976759\nhttps://www.walmart.com/browse/food/976759\n",
        [FOOD, FOOD],
    ),
    "handles": Case(
        "t.txt",
        "quiet_harbor\n@quiet_harbor\n",
        [{"username": "quiet_harbor"}, {"username": "@quiet_harbor"}],
        spider="microblog",
    ),
    "names and URLs of members": Case(
        "t.txt",
        "https://www.linkedin.com/in/jane-doe\njane-doe\n",
        [{"url": "https://www.linkedin.com/in/jane-doe"}, {"username": "jane-doe"}],
        spider="professional",
    ),
    "searches": Case(
        "t.txt",
        "mustard\n4711\nsalt, pepper\n",
        [{"query": "mustard"}, {"query": "4711"}, {"query": "salt, pepper"}],
        scraper=SEARCH,
    ),
    "searches of the only scraper": Case("t.txt", "whales\n", [{"keywords": "whales"}], spider="shortvideo"),
    "searches without the scraper": Case("t.txt", "976759\nmustard\n", [FOOD, Broken(f"scraper={SEARCH}")]),
    "a list with a header": Case("t.txt", "cat_id\n976759\n", [FOOD]),
    "a table with a misspelt column": Case(
        "t.txt", "Cat_Idd;sort\n976759;price_low\n", Refused("line 1: unknown column 'Cat_Idd'")
    ),
    "a table without a known column": Case(
        "t.txt", "kategorie\tseite\n", [Broken("a table needs a header")], scraper=SEARCH
    ),
    "a shortened number": Case("t.txt", "9.77E+05\n", [Broken("9.77E+05")], scraper=SEARCH),
    "JSON after another line": Case(
        "t.txt", 'x\n{"query": "a"}\n', [{"query": "x"}, Broken("is JSON or")], scraper=SEARCH
    ),
    "a list in JSON": Case("t.json", '["976759", 3944]', [FOOD, {"cat_id": "3944"}]),
}

JSON = {
    "numbers as ids": Case(
        "t.jsonl",
        '{"cat_id": 976759}\n{"query": 12345678901234567890123}\n',
        [FOOD, {"query": "12345678901234567890123"}],
    ),
    "floats as ids": Case("t.jsonl", '{"cat_id": 976759.0}\n{"query": 1e6}\n', [Broken("cat_id"), Broken("query")]),
    "a float as text beside an integer": Case("t.jsonl", '{"query": 1e6, "page": 2}\n', [Broken("query")]),
    "a float as the target's id": Case("t.jsonl", '{"id": 1e6, "query": "a"}\n', [Broken("has an id that is neither")]),
    "a boolean as text": Case("t.jsonl", '{"query": true}\n', [Broken("query")]),
    "NaN": Case("t.jsonl", '{"query": NaN}\n', [Broken("NaN is not a JSON value")]),
    "a key twice": Case("t.jsonl", '{"cat_id": "1", "cat_id": "2"}\n', [Broken("the key 'cat_id' occurs twice")]),
    "an unknown key": Case("t.jsonl", '{"cat_idd": "1"}\n', [Broken("'cat_idd' (did you mean 'cat_id'?)")]),
    "JSON Lines without a suffix": Case("targets", '\n{"cat_id": "976759"}\n', [FOOD]),
    "nested too deeply": Case("t.jsonl", '{"query": ' + "[" * 100_000 + "\n", [Broken("nested too deeply")]),
    "an array": Case("t.json", '[{"cat_id": 976759}, {"query": "Müsli"}]', [*TWO]),
    "an array over several lines": Case(
        "t.json", '\n[\n  {\n    "cat_id": "976759"\n  },\n  {"query": "Müsli"}\n]\n', [*TWO]
    ),
    "an array with a comma at the end": Case("t.json", '[{"cat_id": "976759"},]', [FOOD]),
    "an array with an invalid target": Case("t.json", '[{"query": ""}]', [Broken("Line 1 of t.json (element 1): ")]),
    "an integer of 5,000 digits": Case(
        "t.jsonl", f'{{"cat_id": {"9" * 5_000}}}', [Broken("an integer has 5,000 digits")]
    ),
    "an empty array": Case("t.json", "[ ]", []),
    "an array in utf-16": Case("t.json", '[{"query": "Müsli"}]'.encode("utf-16"), [TWO[1]]),
    "an array with other elements": Case(
        "t.json",
        '[{"cat_id": "976759"},\n[1],\n,\n{"query": }, null]',
        [FOOD, *map(Broken, ["Line 2 of t.json (element 2) is not", "Line 3", "Line 4", "element 5"])],
    ),
    "strings that look like structure": Case("t.json", '[{"query": "a]},{[\\""}]', [{"query": 'a]},{["'}]),
    "a truncated array": Case(
        "t.json", '[{"cat_id": "976759"},\n{"query": "a', Cut([FOOD], "line 2: the array is not closed")
    ),
    "text after an array": Case(
        "t.json", '[{"cat_id": "976759"}]\n[]', Cut([FOOD], "line 2: something follows the array")
    ),
    "an element that is not closed": Case(
        "t.json", '[{"cat_id": "976759"},\n"' + "x" * 2_000_000, Cut([FOOD], "line 2: the element is not closed")
    ),
}

OTHERS = {
    "Parquet": Case("t.parquet", b"PAR1" + bytes(60), Refused("line 1: the file is a Parquet file. Save it as CSV")),
    "bzip2": Case("t.csv.bz2", bz2.compress(TABLE.encode()), Refused("line 1: the file is compressed with bzip2")),
    "xz": Case("t.csv.xz", lzma.compress(TABLE.encode()), Refused("line 1: the file is compressed with xz")),
}

CASES = {
    f"{kind}: {name}": case
    for kind, cases in {"encoding": ENCODINGS, "table": TABLES, "list": LISTS, "json": JSON, "other": OTHERS}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_file_is_read_right_or_refused_with_its_line(tmp_path: Path, case: Case) -> None:
    if isinstance(case.expected, list):
        found = read(tmp_path, case)
        assert len(found) == len(case.expected), found
        for each, expected in zip(found, case.expected, strict=True):
            if isinstance(expected, Broken):
                assert isinstance(each, InvalidTarget), each
                assert expected.text in each.error.message
                json.dumps(each.raw).encode()  # the failures feed must be able to contain it
            else:
                assert params(each) == expected
        return
    error = WrongTargetsError if isinstance(case.expected, Refused) else TargetsUnavailableError
    with pytest.raises(error) as raised:
        read(tmp_path, case)
    assert case.expected.text in str(raised.value)
    assert isinstance(raised.value, WrongTargetsError) == isinstance(case.expected, Refused)


def test_a_file_that_is_not_utf_8_ends_the_run_before_a_feed_is_opened(tmp_path: Path) -> None:
    (tmp_path / "latin1.csv").write_bytes(b"id,query\nl1,M\xfcsli\n")
    (tmp_path / "keep.jsonl").write_text("yesterday's output\n")
    options = ["-O", str(tmp_path / "keep.jsonl"), "-s", "FAILURES_FEED="]
    start = command("retail", {"targets": tmp_path / "latin1.csv"}, {"SANDBOX": 1}, *options)
    run = forks.run(start)
    assert run.returncode == 2
    assert "latin1.csv, line 2: not valid UTF-8 (byte 0xfc)" in run.stderr
    assert (tmp_path / "keep.jsonl").read_text() == "yesterday's output\n"


def test_the_encoding_can_be_named() -> None:
    arguments = spiders()["retail"](targets="t.csv", encoding="windows-1252")
    assert isinstance(arguments.source, FileSource)
    assert arguments.source.encoding == "cp1252"


@pytest.mark.parametrize(
    "line",
    ["b4,976759", "b4,976759,price_low,1,extra", "b4,M\\xfcsli,price_low,1,extra", 'b4,"two words"x,price_low,1'],
    ids=["a cell too few", "a cell too many", "a byte of another encoding", "a quotation mark"],
)
def test_the_failures_feed_has_the_raw_line(tmp_path: Path, line: str) -> None:
    filler = "b3,976759,price_low,1\n" * 5_000  # beyond the part that is checked before the run
    start = f"id,cat_id,sort,page\n{filler}".encode()
    raw = line.replace("\\xfc", "\udcfc").encode(errors="surrogateescape") + b"\r\n"
    *_, invalid = read(tmp_path, Case("t.csv", start + raw, []))
    assert isinstance(invalid, InvalidTarget)
    written = failure_line(Outcome(invalid, None, invalid.error, 0))
    assert written["params"] == line
    assert written["line"] == 5_002


FORMS: dict[str, str | bytes] = {
    "t.jsonl": "".join(f'{{"cat_id": {number}}}\n\n' for number in range(1, 1_201)),
    "t.csv": "cat_id;page\n;\n" + "".join(f"{number};\n" for number in range(1, 1_201)),
    "t.tsv": "cat_id\n" + "\n".join(map(str, range(1, 1_201))),
    "t.txt": "\n".join(map(str, range(1, 1_201))),
    "t.json": json.dumps([{"cat_id": number} for number in range(1, 1_201)]),
    "list.json": json.dumps([*range(1, 1_201)], indent=1),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_row_has_its_own_id(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, Case(name, FORMS[name], []))
    assert len({each.id for each in found}) == len(found) == 1_200


def test_an_array_is_read_right_wherever_its_pieces_end() -> None:
    elements = '[{"query": "a]},{\\"é"},"b,"]'
    for spaces in range(CHUNK_BYTES - len(elements.encode()) - 1, CHUNK_BYTES):
        text = TextFile.of(io.BytesIO((" " * spaces + elements).encode()), None)
        assert [row.cells for row in read_json_array(text)] == [{"query": 'a]},{"é'}, "b,"]


def test_the_space_after_an_array_is_not_kept_in_memory() -> None:
    elements = _Elements(TextFile.of(io.BytesIO(b"[1]" + b" " * 9 * CHUNK_BYTES), None))
    assert (list(elements), elements._text) == ([(1, "1")], "")


CELLS = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
    .map(cleaned)
    .filter(lambda text: bool(text) and damaged([text], COMMAND) is None and replaced_value([text]) is None)
    .filter(lambda text: "//" not in text)  # a link
    # Python's csv.writer does not quote a carriage return if its line terminator is a line feed.
    .filter(lambda text: "\r" not in text and not _APOSTROPHE.fullmatch(text) and not _FORMULA.fullmatch(text))
)
BOMS = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@given(
    texts=st.lists(CELLS, min_size=1, max_size=8),
    separator=st.sampled_from([",", ";", "\t"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    encoding=st.sampled_from([*BOMS]),
    has_bom=st.booleans(),
    suffix=st.sampled_from(["csv", "tsv", "txt"]),
)
def test_any_texts_in_a_table_are_read_back(  # noqa: PLR0913, PLR0917  # the dimensions of a table
    texts: list[str],
    separator: str,
    line_end: str,
    quoting: Any,
    encoding: str,
    has_bom: bool,  # noqa: FBT001
    suffix: str,
) -> None:
    out = io.StringIO(newline="")
    table = csv.writer(out, delimiter=separator, lineterminator=line_end, quoting=quoting)
    table.writerows([["id", "query"], *enumerate(texts)])
    content = (BOMS[encoding] if has_bom else b"") + out.getvalue().encode(encoding)
    case = Case(f"t.{suffix}", content, [], encoding=None if has_bom or encoding == "utf-8" else encoding)
    with TemporaryDirectory() as folder:
        assert [params(each)["query"] for each in read(Path(folder), case)] == texts
