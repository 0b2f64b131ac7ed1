"""Reads the rows of tables by the names of the columns in their first row, for text tables and workbooks.

A table whose columns fit no scraper is refused before its first target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

from pydantic import BaseModel

from crawler.targets.files.rows import Row, UnreadableFileError, replaced_value
from crawler.targets.parser import TargetParser, first_of, name_unknown
from crawler.targets.target import OWN_KEYS, Scraper

MISSPELT_FROM = 0.66
"""Minimum similarity (by ``difflib``) to a known column at which an unknown name counts as misspelt."""
_INVISIBLE = "\u200b\ufeff"


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
    names = {number: name for number, cell in header.cells.items() if (name := clean_name(cell))}
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


def clean_name(cell: str) -> str:
    """Return the column's name in a cell of the header, without the spaces around it, also non-breaking ones."""
    return cell.strip().strip(_INVISIBLE).strip()


def candidates(parser: TargetParser) -> tuple[Scraper, ...]:
    """Return the scrapers to which a row without a scraper's name may belong: the default one, or else all of them."""
    return (parser.scraper(parser.default, {}),) if parser.default else parser.scrapers


def known_names(names: Iterable[str], parser: TargetParser) -> tuple[str, ...]:
    """Return the names of columns or keys that are not the user's own. ``names``: those in the row."""
    scrapers = parser.scrapers if "scraper" in names else candidates(parser)
    return tuple(dict.fromkeys([*OWN_KEYS, *(name for each in scrapers for name in each.params.model_fields)]))


@lru_cache(1_000)
def is_misspelt(name: str, known: tuple[str, ...]) -> bool:
    """Whether an unknown name is probably a misspelt known name, and not a column of the user.

    >>> is_misspelt("Cat_ID", ("cat_id",)), is_misspelt("sku", ("cat_id",))
    (True, False)
    """
    return bool(get_close_matches(name.casefold(), known, 1, MISSPELT_FROM))


def check_columns(columns: Sequence[str], parser: TargetParser, line: int = 1) -> None:
    """Check that the columns of a table are distinct, and that a scraper can be identified by them.

    Columns that are neither known nor similar to a known one are the user's own. ``columns``: the names, "" for columns
    without one. ``line``: the line of the header.

    Raises:
        UnreadableFileError: the check failed. For unknown columns, the message names the most similar known ones.
    """
    names = [name for name in columns if name]
    known = known_names(names, parser)
    scrapers = parser.scrapers if "scraper" in names else candidates(parser)
    identified = any(needed <= set(names) for each in scrapers for needed in required_params(each.params))
    unknown = [name for name in names if name not in known and (not identified or is_misspelt(name, known))]
    if unknown:
        column = "column" if len(unknown) == 1 else "columns"
        raise UnreadableFileError(
            line, f"unknown {column} {name_unknown(unknown, known)}. Known columns: {', '.join(known)}."
        )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UnreadableFileError(line, f"several columns have the name {twice[0]!r}.")
    if not identified:
        forms = "; ".join(
            f"{each.name}: {' or '.join(', '.join(sorted(needed)) for needed in required_params(each.params))}"
            for each in scrapers
        )
        raise UnreadableFileError(
            line, f"the columns {first_of(names, len(names))} identify no target. Add the columns of one of {forms}."
        )


def required_params(params: type[BaseModel]) -> list[set[str]]:
    """Return sets of params, such as ``{"cat_id"}`` and ``{"url"}``. A target must have all params of one of them."""
    always = {name for name, field in params.model_fields.items() if field.is_required()}
    alternatives: tuple[str, ...] = getattr(params, "exactly_one_of", ())
    return [always | {name} for name in alternatives] or [always]
