"""The rows of targets files, which the modules of all formats yield."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MAX_LINE_CHARACTERS = 1024 * 1024
"""Maximum length of a line or of an element of an array, in characters. A longer line is an invalid target and is not
parsed. After a longer element, the rest of the file is not read."""
MAX_CELL_CHARACTERS = 32_767
"""Maximum characters of a cell in a workbook: Excel's own limit."""
MAX_SHOWN_CHARACTERS = 1_000
"""Maximum characters of a malformed row that are written to the failures feed."""

UNDECODABLE = re.compile("[\udc00-\udcff]")
"""Matches the mark of a byte that is not valid in the file's encoding: the character U+DC00 plus the byte's value."""
_DAMAGED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd\ud800-\udfff]")
"""Matches characters that no param contains: they show that a text was damaged, or decoded with a wrong encoding."""


class UnreadableFileError(ValueError):
    """Raised when a file, or the rest of it, cannot be read as targets. The message names the line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file: an object, or an entry of a plain list.

    If the row is malformed, ``cells`` is None, ``raw`` is its text, and ``problem`` is the error message.
    """

    line: int
    """Number of the row's first line, starting with 1."""
    cells: dict[str, Any] | str | None
    raw: str = ""
    problem: str = ""
    is_text: bool = True
    """Whether all values are texts, which are converted to the types of the params. Otherwise they have JSON types."""
    columns: Sequence[str] = ()
    """The names of a table's columns, including those whose cell in this row is empty."""
    element: int | None = None
    """Number of the element in a JSON array, starting with 1: several elements may be on the same line."""

    @property
    def characters(self) -> int:
        """The approximate number of characters of the row."""
        texts = self.cells.values() if isinstance(self.cells, dict) and not self.raw else ()
        return len(self.raw) + sum(len(text) for text in texts if isinstance(text, str))


_REPLACED = re.compile(r"\d(?:[.,]\d+)?E[+-]\d+|#(?:N/A|NAME\?|REF!|VALUE!|DIV/0!|NULL!|NUM!)|#{3,}|\\N")
"""Matches what spreadsheets write instead of long numbers (9.77E+05), failed formulas and values in narrow columns, and
databases instead of null."""


def replaced_value(texts: Iterable[str]) -> str | None:
    """Return an error message if a spreadsheet or database has written one of the texts instead of a value, or None."""
    found = next(filter(_REPLACED.fullmatch, texts), None)
    if found is None:
        return None
    return f"contains {found}, which a spreadsheet or database writes instead of the value: export it as text"


def damage(values: Iterable[Any]) -> str | None:
    """Return an error message if one of the values is a text with a character that no param contains, or None."""
    for value in values:
        found = _DAMAGED.search(value) if isinstance(value, str) else None
        if found:
            return _description(found[0])
    return None


def _description(character: str) -> str:
    if UNDECODABLE.match(character):
        byte = ord(character) - 0xDC00
        return (
            f"contains the byte 0x{byte:02x}, which is not valid in the file's encoding: save the file as UTF-8, or "
            "name its encoding, such as encoding=cp1252"
        )
    if character == "\ufffd":
        return "contains U+FFFD: the program that wrote the file has replaced a character that it could not convert"
    return f"contains the character U+{ord(character):04X}, which no param may contain"


def shown(raw: str) -> str:
    r"""Return the text of a malformed row for the failures feed: shortened, and undecodable bytes as ``\xfc``."""
    text = UNDECODABLE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", raw[:MAX_SHOWN_CHARACTERS])
    return text.rstrip("\r\n").encode(errors="backslashreplace").decode()
