"""The rows of targets files: those of all formats, and those of tables, whose first row names the columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from crawler.configuration.names import first_of, name_unknown, nearest
from crawler.platforms.links import cleaned
from crawler.platforms.model import DAMAGED, damage
from crawler.targets.parser import TargetParser, heading, required_params
from crawler.targets.target import OWN_KEYS

MAX_LINE_CHARACTERS = 1024 * 1024
"""Maximum length of a line or of an element of an array, in characters. A longer line is an invalid target and is not
parsed. After a longer element, the rest of the file is not read."""
MAX_CELL_CHARACTERS = 32_767
"""Maximum characters of a cell in a workbook: Excel's own limit."""
MAX_SHOWN_CHARACTERS = 1_000
"""Maximum characters of a malformed row that are written to the failures feed."""

UNDECODABLE = re.compile("[\udc00-\udcff]")
"""Matches the mark of a byte that is not valid in the file's encoding: the character U+DC00 plus the byte's value."""


@dataclass(frozen=True, slots=True)
class Words:
    """What messages about targets files advise the caller that has given them."""

    encoding: str
    """The start of the option that names the encoding of a file."""
    compressed: str
    """A sentence: how files may be compressed."""
    workbook: str
    """The start of a sentence: how to mark an Excel workbook as one."""
    file: str | None = None
    """The name of the file in messages and ids. None: its own name."""


COMMAND = Words("encoding=", "Only gzip is read, with the suffix .gz.", "Give an Excel workbook the suffix .xlsx")
"""The words for callers that name files by their paths."""


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


def damaged(values: Iterable[Any], words: Words) -> str | None:
    """Return an error message if one of the values is a text with a character that no param contains, or None."""
    for value in values:
        if isinstance(value, str) and (found := DAMAGED.search(value)):
            return _undecoded(found[0], words) if UNDECODABLE.match(found[0]) else damage(found[0])
    return None


def _undecoded(mark: str, words: Words) -> str:
    return (
        f"contains the byte 0x{ord(mark) - 0xDC00:02x}, which is not valid in the file's encoding: save the file as"
        f" UTF-8, or name its encoding, such as {words.encoding}cp1252"
    )


def shown(raw: str) -> str:
    r"""Return the text of a malformed row for the failures feed: shortened, and undecodable bytes as ``\xfc``."""
    text = UNDECODABLE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", raw[:MAX_SHOWN_CHARACTERS])
    return text.rstrip("\r\n").encode(errors="backslashreplace").decode()


logger = structlog.get_logger(__name__)

MISSPELT_FROM = 0.84
"""Minimum similarity (by ``difflib``) to a param at which a column may be misspelt. Above that of country to count."""


class TableRow(NamedTuple):
    """A row of a table."""

    line: int
    """Number of the row's first line, or the number that the spreadsheet shows, starting with 1."""
    cells: dict[int, str]
    """Number of a column, starting with 1 -> the text of its cell. Cells without content are left out."""
    raw: str = ""
    problem: str = ""
    """Why the row cannot be read, as the end of a sentence that begins with the row. "" if it can be read."""


def read_columns(table: Iterator[TableRow], parser: TargetParser, place: Callable[[int], str] = str) -> Iterator[Row]:
    """Yield the rows below the first row, which names the columns.

    ``place``: returns what people call the column with a number.

    Raises:
        UnreadableFileError: the columns do not fit, or the first row has a value in a column without a name, such as
            an exported index.
    """
    header = next(table, None)
    if header is None:
        return
    if header.problem:
        raise UnreadableFileError(header.line, f"the header {header.problem}.")
    names = {number: name for number, cell in header.cells.items() if (name := cleaned(cell))}
    columns = list(names.values())
    check_columns(columns, parser, header.line)
    for position, row in enumerate(table):
        problem = row.problem
        unnamed = next((number for number in row.cells if number not in names), None)
        if unnamed is not None:
            problem = f"has a value in column {place(unnamed)}, which has no name"
            if not position:
                raise UnreadableFileError(row.line, f"the row {problem}: name the column, or remove it.")
        elif not problem and row.cells == header.cells:
            problem = "repeats the header"
        problem = problem or replaced_value(row.cells.values()) or ""
        cells = None if problem else {names[number]: text for number, text in row.cells.items()}
        yield Row(row.line, cells, row.raw, problem, columns=columns)


def check_columns(columns: Sequence[str], parser: TargetParser, line: int = 1) -> None:
    """Check that the columns of a table are distinct, and that a scraper can be identified by them.

    A column that is similar to a param, but is none, is logged as a warning: it may be misspelt.

    ``columns``: the names, "" for columns without one. ``line``: the line of the header.

    Raises:
        UnreadableFileError: the check failed. For unknown columns, the message names the most similar known ones.
    """
    names = [name for name in columns if name]
    headings = [heading(name) for name in names]
    scrapers = parser.scrapers if "scraper" in headings else parser.candidates
    forms = {heading(name): name for each in scrapers for name in each.params.model_fields}
    params = [parser.by_heading.get(each) for each in headings]
    if not any(needed.issubset(params) for each in scrapers for needed in required_params(each.params)):
        valid = (*OWN_KEYS, *forms.values())
        unknown = [name for name, param in zip(names, params, strict=True) if param not in valid]
        if unknown:
            column = "column" if len(unknown) == 1 else "columns"
            raise UnreadableFileError(
                line, f"unknown {column} {name_unknown(unknown, valid)}. Known columns: {', '.join(valid)}."
            )
        wanted = "; ".join(
            f"{each.name}: {' or '.join(', '.join(sorted(needed)) for needed in required_params(each.params))}"
            for each in scrapers
        )
        raise UnreadableFileError(
            line, f"the columns {first_of(names)} identify no target. Add the columns of one of {wanted}."
        )
    twice = next((name for name, each in zip(names, headings, strict=True) if headings.count(each) > 1), None)
    if twice:
        raise UnreadableFileError(line, f"several columns have the name {twice!r}.")
    for name, each in zip(names, headings, strict=True):
        if each not in parser.by_heading and (similar := nearest(each, forms, MISSPELT_FROM)):
            logger.warning("column_maybe_misspelt", column=name, did_you_mean=forms[similar])
