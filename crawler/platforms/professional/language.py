"""Tells counts of followers, counts of connections and other texts apart, in the languages of the platform's pages.

The platform writes its pages in the language of the visitor or of the country edition. The words of six languages are
known. In other languages, a text's place decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FOLLOWERS = re.compile(r"follower|abonn[ée]|seguidor|volger", re.IGNORECASE)
_CONNECTIONS = re.compile(r"connection|kontakt|relation|contact|conexi[oó]n|conex[õã]|connecties", re.IGNORECASE)
_STARTS_WITH_NUMBER = re.compile(r"\d")


def is_english(locale: str) -> bool:
    """Whether a page's locale, such as "en_US", is English. A page without a locale counts as English.

    >>> is_english("en_US"), is_english(""), is_english("de_DE")
    (True, True, False)
    """
    return not locale or locale.startswith("en")


def is_followers(text: str) -> bool:
    """Whether a text names followers.

    >>> is_followers("41M followers"), is_followers("12.345 Follower:innen"), is_followers("500+ Kontakte")
    (True, True, False)
    """
    return bool(_FOLLOWERS.search(text))


def is_connections(text: str) -> bool:
    """Whether a text names connections.

    >>> is_connections("500+ conexões"), is_connections("17 mil seguidores")
    (True, False)
    """
    return bool(_CONNECTIONS.search(text))


def counts(texts: Iterable[str]) -> tuple[str, str, list[str]]:
    """Return the text about followers, the text about connections, and the texts with numbers that may be either.

    If neither of two texts with numbers has a known word, the first is about followers.

    >>> counts(["12.345 Follower:innen", "500+ Kontakte"])
    ('12.345 Follower:innen', '500+ Kontakte', [])
    >>> counts(["1.2万 关注者", "500+ 位好友"]), counts(["500+ 位好友"])
    (('1.2万 关注者', '500+ 位好友', []), ('', '', ['500+ 位好友']))
    """
    given = [text for text in dict.fromkeys(texts) if text]
    followers = next(filter(is_followers, given), "")
    connections = next((text for text in given if is_connections(text) and text != followers), "")
    numbers = [t for t in given if t not in {followers, connections} and _STARTS_WITH_NUMBER.match(t)]
    if len(numbers) == 2 and not followers and not connections:
        return numbers[0], numbers[1], []
    if len(numbers) == 1 and bool(followers) != bool(connections):
        return followers or numbers[0], connections or numbers[0], []
    return followers, connections, numbers
