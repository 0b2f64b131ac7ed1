"""Reads the rows of tables by the names of the columns in their first row, for text tables and workbooks.

A table whose columns fit no scraper is refused before its first target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import structlog

from crawler.configuration.suggestions import first_of, name_unknown, nearest
from crawler.platforms.pasted import cleaned
from crawler.targets.files.rows import Row, UnreadableFileError, replaced_value
from crawler.targets.parser import TargetParser, heading, required_params
from crawler.targets.target import OWN_KEYS

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
