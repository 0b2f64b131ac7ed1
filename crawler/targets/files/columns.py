"""Checks the columns of tables: a table whose columns fit no scraper is refused before its first target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

from pydantic import BaseModel

from crawler.targets.files.rows import UnreadableFileError
from crawler.targets.parser import TargetParser, name_unknown
from crawler.targets.target import OWN_KEYS, Scraper

MISSPELT_FROM = 0.66
"""Minimum similarity (by ``difflib``) to a known column at which an unknown name counts as misspelt."""


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
            line, f"the columns {', '.join(names)} identify no target. Add the columns of one of {forms}."
        )


def required_params(params: type[BaseModel]) -> list[set[str]]:
    """Return sets of params, such as ``{"cat_id"}`` and ``{"url"}``. A target must have all params of one of them."""
    always = {name for name, field in params.model_fields.items() if field.is_required()}
    alternatives: tuple[str, ...] = getattr(params, "exactly_one_of", ())
    return [always | {name} for name in alternatives] or [always]
