"""Targets written to a file in any format are read back unchanged."""

from __future__ import annotations

import asyncio
import codecs
import csv
import gzip
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.platforms.links import cleaned, is_link
from crawler.registry import spiders
from crawler.targets.files.rows import damage, replaced_value
from crawler.targets.files.source import FileSource
from crawler.targets.files.tables import _APOSTROPHE, _FORMULA
from crawler.targets.parser import TargetParser
from crawler.targets.target import Target

RETAIL = TargetParser(spiders()["retail"].scrapers)
BOMS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}

TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
    .map(cleaned)
    .filter(lambda text: bool(text) and damage([text]) is None and replaced_value([text]) is None)
)
# Python's csv.writer does not quote a carriage return if its line terminator is a line feed.
CELLS = TEXTS.filter(lambda text: "\r" not in text and not _APOSTROPHE.fullmatch(text) and not _FORMULA.fullmatch(text))
LIST_ENTRIES = TEXTS.filter(
    lambda text: (
        not set(text) & set("\t\r\n")
        and not re.match(r"#(\s|#|$)", text)  # a comment
        and not text.startswith(("{", "[", "<"))
        and not is_link(text)  # tests/targets/test_links.py has the lines that are links, such as "//"
    )
)


def rows(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return a strategy for lists of targets with unique ids."""
    target = st.fixed_dictionaries({"query": texts}, optional={"page": st.integers(2, 99), "min_price": st.just(1.5)})
    return st.lists(target, min_size=1, max_size=8).map(
        lambda found: [{"id": f"t{number}", **each} for number, each in enumerate(found)]
    )


def read(name: str, content: bytes, encoding: str | None = None, scraper: str | None = None) -> list[dict[str, Any]]:
    parser = TargetParser(RETAIL.scrapers, scraper)

    async def take(location: str) -> list[dict[str, Any]]:
        source = FileSource(parser, location, encoding=encoding)
        await source.open()
        found = []
        async for each in source:
            assert isinstance(each, Target), each
            found.append({"id": each.id, **each.params.model_dump(exclude_none=True, exclude_defaults=True)})
        return found

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return asyncio.run(take(str(path)))


@given(
    targets=rows(CELLS),
    separator=st.sampled_from([",", ";", "\t"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    encoding=st.sampled_from([*BOMS]),
    has_bom=st.booleans(),
    name=st.sampled_from(["t.csv", "t.csv.gz", "t.tsv", "t.txt"]),
    first_line=st.booleans(),
)
def test_a_table_reads_back_equal(  # noqa: PLR0913, PLR0917  # the dimensions of a table
    targets: list[dict[str, Any]],
    separator: str,
    line_end: str,
    quoting: Any,
    encoding: str,
    has_bom: bool,  # noqa: FBT001
    name: str,
    first_line: bool,  # noqa: FBT001
) -> None:
    out = io.StringIO(newline="")
    if first_line:
        out.write(f"sep={separator}{line_end}")
    table = csv.DictWriter(
        out, ["id", "query", "page", "min_price"], delimiter=separator, lineterminator=line_end, quoting=quoting
    )
    table.writeheader()
    table.writerows(targets)
    content = (BOMS[encoding] if has_bom else b"") + out.getvalue().encode(encoding)
    assert read(name, content, None if has_bom or encoding == "utf-8" else encoding) == targets


@pytest.mark.parametrize("indent", [None, 2])
@given(
    targets=rows(TEXTS),
    escaped=st.booleans(),
    encoding=st.sampled_from([*BOMS]),
    name=st.sampled_from(["t.json", "t.json.gz", "targets"]),
)
def test_a_json_array_reads_back_equal(
    indent: int | None,
    targets: list[dict[str, Any]],
    escaped: bool,  # noqa: FBT001
    encoding: str,
    name: str,
) -> None:
    text = json.dumps(targets, indent=indent, ensure_ascii=escaped)
    assert read(name, BOMS[encoding] + text.encode(encoding)) == targets


@given(
    entries=st.lists(LIST_ENTRIES, min_size=1, max_size=8),
    line_end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from([*BOMS]),
)
def test_a_plain_list_reads_back_equal(entries: list[str], line_end: str, encoding: str) -> None:
    content = BOMS[encoding] + line_end.join(["", "first", *entries]).encode(encoding)
    found = read("t.txt", content, scraper="retail-search-v4")
    assert [each["query"] for each in found] == ["first", *entries]
