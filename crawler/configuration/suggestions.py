"""Suggests known names for unknown ones, in the messages of commands, the endpoint and tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MAX_NAMED = 5
"""Maximum number of names that a message lists."""


def nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """Return the known name that is most similar to a name, regardless of case. None: none is similar.

    ``similarity``: the minimum similarity, from 0 to 1, as ``difflib`` computes it.

    >>> nearest("Catid", ["cat_id", "url"])
    'cat_id'
    """
    forms = {each.casefold(): each for each in known}
    found = get_close_matches(name.casefold(), forms, 1, similarity)
    return forms[found[0]] if found else None


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a message about an unknown name: the most similar known name, or else ``otherwise``.

    >>> hint("catid", ["cat_id", "url"], "the params are cat_id, url")
    'did you mean cat_id?'
    >>> hint("colour", ["cat_id", "url"], "the params are cat_id, url")
    'the params are cat_id, url'
    """
    found = nearest(name, known)
    return otherwise if found is None else f"did you mean {found}?"


def name_unknown(names: Sequence[str], known: Iterable[str]) -> str:
    """Quote the first unknown names, each with the most similar known name: ``'Cat_ID' (did you mean 'cat_id'?)``."""
    known = list(known)
    similar = [(name, nearest(name, known)) for name in names[:MAX_NAMED]]
    return first_of(
        [f"{name!r} (did you mean {found!r}?)" if found else repr(name) for name, found in similar], len(names)
    )


def first_of(texts: Sequence[str], total: int | None = None) -> str:
    """Return the first texts of a list, and how many more it has: ``a, b, c, d, e and 995 more``.

    ``total``: the length of the list, if ``texts`` is only its beginning.
    """
    shown = texts[:MAX_NAMED]
    more = (len(texts) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
