"""Reads an Excel workbook in a process of its own, which a hostile workbook may crash. Imports nothing of the project.

Usage: python -I workbook_child.py FOLDER (or no folder)

The folder contains ``book.xlsx``. Writes the rows with content of the first visible sheet that has any, each as a JSON
array in a line: its number as the spreadsheet shows it, its cells (pairs of a column's number, starting with 1, and the
text), and its cells that cannot be read (pairs of a column's number and ``FORMULA`` or ``NUMBER``). Without a folder,
the exit code is 0 if the memory of a process can be limited on this system.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import secrets
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

MEMORY_BYTES = 1024**3
CPU_SECONDS = 20
OUTPUT_BYTES = 1024**3
EXACT = 2**53
"""Floats represent integers up to this number exactly."""
FORMULA, NUMBER = "formula", "number"
"""Why a cell cannot be read: a formula without a result; a number whose last digits may be lost."""
PASSWORD = 3
"""Exit code for a workbook that is protected by a password."""

# calamine reads an error such as #N/A, and a formula without a result, as an empty cell. So they become texts first.
_ERROR = re.compile(rb"""(<(?:\w+:)?c\s(?:[^<>]*\s)?t=["'])e(["'])""")
_FORMULA = re.compile(
    rb"<((?:\w+:)?)c((?:\s[^<>]*)?)>\s*+<\1f(?:\s[^<>]*)?(?:/>|>[^<>]*+</\1f>)\s*+(?:<\1v\s*/>|<\1v>\s*+</\1v>)?\s*+</\1c>"
)
_MARKS = (b't="e"', b"t='e'", b"<f", b":f")
"""At least one of them is in a sheet with an error or a formula. Searching them is faster than the patterns."""
_IS_TEXT = re.compile(rb"""\st=["']str["']""")
_REFERENCE = re.compile(rb"""\sr=["'][A-Z]+[0-9]+["']""")
_NO_RESULT = f"formula {secrets.token_hex(16)}"
"""The text of a formula without a result. No workbook can contain it."""


def main(folder: Path | None) -> None:
    """Write the rows of the workbook in the folder."""
    _limit()
    if folder is None:
        try:
            bytes(2 * MEMORY_BYTES)
        except MemoryError:
            return
        sys.exit("the memory of a process cannot be limited")
    import orjson  # noqa: PLC0415
    from python_calamine import (  # noqa: PLC0415  # the limits hold for it, too
        PasswordError,
        SheetTypeEnum,
        SheetVisibleEnum,
        ZipError,
        load_workbook,
    )

    try:
        book = load_workbook(str(_with_texts(folder)))
    except (PasswordError, ZipError, RuntimeError) as error:  # RuntimeError: zipfile's
        sys.exit(PASSWORD if "password" in str(error).casefold() else str(error))
    if not book.sheets_metadata:
        sys.exit("this is another archive than a workbook")
    for sheet in book.sheets_metadata:
        if sheet.visible is SheetVisibleEnum.Visible and sheet.typ is SheetTypeEnum.WorkSheet:
            has_content = False
            for number, values in enumerate(book.get_sheet_by_name(sheet.name).iter_rows(), 1):
                cells, unread = _row(values)
                if cells or unread:
                    has_content = True
                    sys.stdout.buffer.write(orjson.dumps([number, cells, unread], option=orjson.OPT_APPEND_NEWLINE))
            if has_content:
                return


def _limit() -> None:
    """Set the limits of this process that the system has, and let other processes go first."""
    with suppress(ImportError):
        import resource  # noqa: PLC0415  # Windows does not have it

        os.nice(10)  # so that an endpoint answers its calls while it reads an upload
        for kind, most in (
            (resource.RLIMIT_AS, MEMORY_BYTES),
            (resource.RLIMIT_CPU, CPU_SECONDS),
            (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(OSError, ValueError):  # macOS refuses some
                resource.setrlimit(kind, (most, most))


def _with_texts(folder: Path) -> Path:
    """Return the path of the workbook, or of a copy in which errors, and formulas without a result, are texts."""
    book, copy = folder / "book.xlsx", folder / "copy.xlsx"
    with ZipFile(book) as old:
        parts = {}
        for name in old.namelist():
            if name.startswith("xl/worksheets/"):
                part = old.read(name)
                if any(mark in part for mark in _MARKS):
                    parts[name] = _FORMULA.sub(_as_text, _ERROR.sub(rb"\1str\2", part))
        if not parts:
            return book
        with ZipFile(copy, "w", ZIP_DEFLATED, compresslevel=1) as new:
            for name in old.namelist():
                new.writestr(name, parts[name] if name in parts else old.read(name))
    return copy


def _as_text(cell: re.Match[bytes]) -> bytes:
    prefix, attributes = cell[1], cell[2]
    if _IS_TEXT.search(attributes):  # the formula's result is an empty text
        return cell[0]
    reference = _REFERENCE.search(attributes)
    start = b"<" + prefix + b"c" + (reference[0] if reference else b"") + b' t="str"><' + prefix + b"v>"
    return start + _NO_RESULT.encode() + b"</" + prefix + b"v></" + prefix + b"c>"


def _row(values: Iterable[object]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the texts of a row's cells, and of the cells that cannot be read, the reason."""
    cells, unread = [], []
    for column, value in enumerate(values, 1):
        if value == "":
            continue
        if value == _NO_RESULT:
            unread.append((column, FORMULA))
        elif isinstance(value, float) and not -EXACT <= value <= EXACT:
            unread.append((column, NUMBER))
        elif (text := value if isinstance(value, str) else _text(value)).strip():
            cells.append((column, text))
    return cells, unread


def _text(value: object) -> str:
    """Return the text that people read in a cell."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
        case _:
            return str(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)
