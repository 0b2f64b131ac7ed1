"""Checks the columns of tables: a table whose columns fit no scraper is refused before its first target."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from crawler.targets.files.rows import UnreadableFileError
from crawler.targets.target import OWN_KEYS, Scraper, TargetParser, name_unknown


def candidates(parser: TargetParser) -> tuple[Scraper, ...]:
    """Return the scrapers of rows that do not name one: the default scraper, or else any scraper of the parser."""
    return (parser.scraper(parser.default, {}),) if parser.default else parser.scrapers


def check_columns(columns: Sequence[str], parser: TargetParser, line: int = 1) -> None:
    """Check that the columns of a table are distinct and known, and that a scraper can be identified by them.

    ``columns``: the names, "" for columns without one. ``line``: the line of the header.

    Raises:
        UnreadableFileError: they are not. For unknown columns, the message names the most similar known ones.
    """
    names = [name for name in columns if name]
    scrapers = parser.scrapers if "scraper" in names else candidates(parser)
    known = [*OWN_KEYS, *dict.fromkeys(name for each in scrapers for name in each.params.model_fields)]
    unknown = [name for name in names if name not in known]
    if unknown:
        column = "column" if len(unknown) == 1 else "columns"
        raise UnreadableFileError(
            line, f"unknown {column} {name_unknown(unknown, known)}. Known columns: {', '.join(known)}."
        )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UnreadableFileError(line, f"several columns have the name {twice[0]!r}.")
    if not any(needed <= set(names) for each in scrapers for needed in required_params(each.params)):
        forms = "; ".join(
            f"{each.name}: {' or '.join(', '.join(sorted(needed)) for needed in required_params(each.params))}"
            for each in scrapers
        )
        raise UnreadableFileError(
            line, f"the columns {', '.join(names)} identify no target. Add those of one of {forms}."
        )


def required_params(params: type[BaseModel]) -> list[set[str]]:
    """Return the sets of params of which a target needs one, such as ``{"cat_id"}`` and ``{"url"}``."""
    always = {name for name, field in params.model_fields.items() if field.is_required()}
    alternatives: tuple[str, ...] = getattr(params, "exactly_one_of", ())
    return [always | {name} for name in alternatives] or [always]
