"""Reads plain lists: one id, handle, URL or search text per line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel, ValidationError

from crawler.errors import InvalidRequest
from crawler.platforms.links import LinkError, is_host, is_link, read_link
from crawler.platforms.model import Params
from crawler.platforms.pasted import cleaned
from crawler.targets.files.rows import MAX_LINE_CHARACTERS, Row, replaced_value
from crawler.targets.files.text import TextFile
from crawler.targets.parser import TargetParser, required_params
from crawler.targets.target import Scraper

_COMMENT = re.compile(r"#(?:\s|#|$)")  # "#cats" is a hashtag, which may be searched for
_LINK_IN_BRACKETS = re.compile(r"[<\[(]+(?:https?:|www\.|[\w-]+(?:\.[\w-]+)+/)", re.IGNORECASE)
_ANY_TEXT = "Any text: 1 + 1?"
"""A text that is neither an id nor a handle nor a URL. A param that accepts it accepts any text."""


def read_list(text: TextFile) -> Iterator[Row]:
    """Yield the lines, cleaned (``pasted.cleaned``). Empty lines and comments, which begin with ``# ``, are left out.

    Raises:
        UnreadableFileError: the file is not text. Raised before the first row.
    """
    text.check()
    for line in text.lines():
        entry = cleaned(line.text)
        if line.is_cut:
            yield Row(line.number, None, entry, f"is longer than {MAX_LINE_CHARACTERS} characters")
        elif problem := _problem(entry):
            yield Row(line.number, None, entry, problem)
        elif entry and not _COMMENT.match(entry):
            yield Row(line.number, entry, entry)


def _problem(entry: str) -> str | None:
    if "\t" in entry or "\r" in entry:
        return "contains a tab or a line end: a table needs a header of column names"
    if entry.startswith(("{", "[", "<")) and not _LINK_IN_BRACKETS.match(entry):
        return "is JSON or HTML in a plain list: write one id, handle, URL or search text per line"
    return replaced_value([entry])


def params_of(entry: str, parser: TargetParser) -> dict[str, str]:
    """Return the scraper that accepts an entry, and the entry as its param: ``{"scraper": ..., "cat_id": "976759"}``.

    A param that accepts any text, such as the words of a search, is used only if no other scraper fits. If several
    scrapers of one platform accept the entry, the first of them is used.

    A link is never used as search words: its params are those of the linked page, for a scraper that reads this page.

    Raises:
        InvalidRequest: the entry has the form of no param, or of params of several platforms, or is a link that no
            scraper reads. The message continues a sentence that begins with the entry's line.
    """
    scrapers = parser.candidates
    if is_link(entry) or is_host(entry):
        return _params_of_link(entry, scrapers)
    found: dict[str, dict[str, str]] = {}
    for scraper in scrapers:
        for name in _single_params(scraper.params):
            if scraper.platform in found or (len(scrapers) > 1 and _takes_any_text(scraper.params, name)):
                continue
            if _accepts(scraper.params, name, entry):
                found[scraper.platform] = {"scraper": scraper.name, name: entry}
    if len(found) > 1:
        names = ", ".join(each["scraper"] for each in found.values())
        raise InvalidRequest(f"can be a target of {names}: name the scraper (scraper=)")
    if not found:
        forms = [f"{each.name} ({', '.join(_single_params(each.params))})" for each in scrapers]
        raise InvalidRequest(f"is not an id, handle or URL of {', '.join(forms)}{_hint(scrapers)}")
    return next(iter(found.values()))


def _params_of_link(entry: str, scrapers: tuple[Scraper, ...]) -> dict[str, str]:
    try:
        link = read_link(entry)
    except LinkError as error:
        raise InvalidRequest(f"is not a link to a target: {error}") from None
    found = next((each for each in scrapers if each.name in link.scrapers), None)
    if found is None:
        raise InvalidRequest(f"is a link to {link}, and not to a target of {', '.join(s.name for s in scrapers)}")
    return {"scraper": found.name} | {key: link.params[key] for key in link.params if key in found.params.model_fields}


def _hint(scrapers: tuple[Scraper, ...]) -> str:
    free = [s.name for s in scrapers if any(_takes_any_text(s.params, name) for name in _single_params(s.params))]
    return f"; for words to search for, name the scraper: scraper={free[0]}" if free and len(scrapers) > 1 else ""


def _accepts(params: type[BaseModel], name: str, entry: str) -> bool:
    """Whether an entry is valid as the only param."""
    given = {name: entry}
    try:
        params.model_validate_strings(params.clean(given) if issubclass(params, Params) else given)
    except ValidationError:
        return False
    return True


@cache
def _takes_any_text(params: type[BaseModel], name: str) -> bool:
    return _accepts(params, name, _ANY_TEXT)


@cache
def _single_params(params: type[BaseModel]) -> list[str]:
    """Return the params that are sufficient as a target's only param."""
    return [name for needed in required_params(params) if len(needed) == 1 for name in needed]
