"""Makes Excel workbooks for tests, both normal and malicious ones."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import openpyxl
import pytest

from crawler.targets.files import tables as reader
from crawler.targets.files import workbook_child

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OPEN = f'<worksheet xmlns="{MAIN}"><sheetData>'.encode()
_CLOSE = b"</sheetData></worksheet>"
HEADER = b'<row r="1"><c r="A1" t="inlineStr"><is><t>cat_id</t></is></c></row>'
SHEET = "xl/worksheets/sheet1.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_WITH_STRINGS = b"""<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Target="worksheets/sheet1.xml" Type="x/worksheet"/>
<Relationship Id="rId2" Target="/xl/styles.xml" Type="x/styles"/>
<Relationship Id="rId3" Target="sharedStrings.xml" Type="x/sharedStrings"/></Relationships>"""


def workbook(*rows: list[Any], change: Callable[[openpyxl.Workbook], object] | None = None) -> bytes:
    """Return a workbook written by openpyxl. ``change`` is called before it is saved."""
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    if change:
        change(book)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_parts(**parts: bytes | None) -> bytes:
    """Return a workbook with the rows (``sheet``) or the XML of ``strings``, ``styles`` or ``book`` replaced.

    None removes the part from the file.
    """
    paths = {"strings": "xl/sharedStrings.xml", "styles": "xl/styles.xml", "book": "xl/workbook.xml", "sheet": SHEET}
    if parts.get("sheet") is not None:
        parts["sheet"] = _OPEN + (parts["sheet"] or b"") + _CLOSE
    replaced = {paths[name]: content for name, content in parts.items()}
    if "strings" in parts:  # openpyxl writes every text into its cell, not into the shared strings
        replaced[_RELATIONS] = _WITH_STRINGS
    return _rewritten(_template(), replaced)


def raw_sheet(xml: bytes) -> bytes:
    """Return a workbook whose sheet is the given XML."""
    return _rewritten(_template(), {SHEET: xml})


def with_info(content: bytes, change: Callable[[zipfile.ZipInfo], object]) -> bytes:
    """Return a workbook with changed entries in the ZIP directory."""
    out = io.BytesIO(content)
    with zipfile.ZipFile(out, "a") as archive:
        for info in archive.infolist():
            change(info)
        archive.comment = b"changed"  # a change that makes zipfile write the directory
    return out.getvalue()


@cache
def _template() -> bytes:
    return workbook(["cat_id"])


def _rewritten(content: bytes, replaced: dict[str, bytes | None]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in dict.fromkeys([*old.namelist(), *replaced]):
            part = replaced[name] if name in replaced else old.read(name)
            if part is not None:
                new.writestr(name, part)
    return out.getvalue()


@contextmanager
def read_here() -> Iterator[None]:
    """Read workbooks in the test's process, which takes a tenth of the time."""

    def run(command: list[str], *, stdout: IO[bytes] | None = None, **_: Any) -> subprocess.CompletedProcess[bytes]:
        code: Any = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workbook_child, "_limit", lambda: None)
            patch.setattr(sys, "stdout", SimpleNamespace(buffer=stdout))
            try:
                workbook_child.main(Path(command[-1]))
            except SystemExit as ended:
                code = ended.code
            except Exception:  # noqa: BLE001  # Python's exit code for any
                code = 1
        return subprocess.CompletedProcess(command, code if isinstance(code, int) else 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "has_limits", lambda: True)
        patch.setattr(
            reader, "subprocess", SimpleNamespace(run=run, DEVNULL=None, TimeoutExpired=subprocess.TimeoutExpired)
        )
        yield
