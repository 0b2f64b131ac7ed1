"""Evidence that a key in a payload is the new name of another key: similar names, and equal forms or values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SYNONYMS = {
    "average": ("avg",),
    "count": ("cnt", "num", "number"),
    "description": ("desc",),
    "image": ("img", "photo", "pic", "picture"),
    "thumbnail": ("thumb",),
    "url": ("link", "uri"),
}
_SAME = {word: meaning for meaning, words_ in _SYNONYMS.items() for word in words_}
"""Words in keys, and the words with the same meaning by which they are replaced."""
_EMPTY = frozenset({"data", "field", "info", "legacy", "new", "obj", "object", "of", "the", "v", "value"})
"""Words in keys that have no meaning of their own."""
_GENERAL = re.compile(
    r"amount|code|count|description|display|height|id|image|key|kind|label|name|size|state|status|text|thumbnail|time"
    r"|title|total|type|url|user|width"
)
"""Matches keys that many objects have. Such a key at another level may belong to a different object."""
_FORMS = (
    ("address", re.compile(r"(?:https?:)?//(?:[^/?#]*\.)?([^/?#.]+\.[^/?#.]+)")),
    ("path", re.compile(r"/\S*")),
    ("date", re.compile(r"\d{4}-\d\d-\d\d")),
    ("digits", re.compile(r"\d+\Z")),
)
LONG = 8
MIN_AGREEING = 2
MIN_COMPARED = 3


def words(key: str) -> frozenset[str]:
    """Return the meaningful words in a key, each in a standard spelling.

    >>> sorted(words("averageRatingV2")), words("avg_rating") == words("averageRating"), words("reviews")
    (['average', 'rating'], True, frozenset({'review'}))
    """
    found = (each.lower() for each in _WORD.findall(key))
    singular = (
        each[:-1] if each.endswith("s") and not each.endswith("ss") and len(each) > 3 else each for each in found
    )
    return frozenset(_SAME.get(each, each) for each in singular) - _EMPTY


def alike(one: str, other: str) -> bool:
    """Whether two keys have the same words.

    >>> alike("usItemId", "us_item_id"), alike("averageRating", "sellerRating"), alike("likes", "views")
    (True, False, False)
    """
    return bool(words(one)) and words(one) == words(other)


def is_general(key: str) -> bool:
    """Whether many objects have a key with this name, such as ``id`` and ``url``."""
    return len(words(key)) < 2 and all(map(_GENERAL.fullmatch, words(key)))


def form(value: Any) -> str:
    """Return the type and the form of a value.

    >>> form("https://a.example/x"), form("2026-01-01T00:00"), form(4), form(4.5), form("1234"), form("Two words")
    ('address a.example', 'date', 'whole number', 'number', 'digits', 'text')
    """
    if isinstance(value, str):
        for name, pattern in _FORMS:
            if found := pattern.match(value):
                return f"{name} {found[1]}" if pattern.groups else name
        return "text"
    if isinstance(value, bool) or value is None:
        return str(type(value).__name__)
    if isinstance(value, int | float):
        return "whole number" if float(value).is_integer() else "number"
    return type(value).__name__


def has_forms(values: Iterable[Any], before: Iterable[Any]) -> bool:
    """Whether each value has the form of an earlier value. True if there are no earlier values.

    A whole number also fits earlier decimal numbers.
    """
    known = {form(each) for each in before if each not in (None, "")}
    known |= {"whole number"} if "number" in known else set()
    return not known or all(form(each) in known for each in values if each not in (None, ""))


def are_known(values: Iterable[Any], before: Iterable[Any]) -> bool:
    """Whether all texts occur among earlier texts, such as the names of states, and are enough to rule out a
    coincidence.

    >>> are_known(["sort", "price", "brand"], ["brand", "sort", "price", "size"]), are_known(["1", "2"], ["1", "2"])
    (True, False)
    """
    found = {each for each in values if isinstance(each, str) and each}
    are_long = len(found) >= MIN_AGREEING and all(len(each) >= LONG for each in found)
    return (len(found) >= MIN_COMPARED or are_long) and found <= {each for each in before if isinstance(each, str)}


class Agreement(NamedTuple):
    """How many values agree with the values of the same rows on a good page."""

    compared: int
    """The number of rows that have a value on both pages."""
    matching: int
    """The number of rows with equal values."""
    equal: int
    """``matching``; or, if fewer than ``MIN_AGREEING`` different values occur in these rows, their number."""

    @property
    def is_proof(self) -> bool:
        """Whether the values agree in at least 90 % of the rows, and different values occur, so not by coincidence."""
        return self.equal >= MIN_AGREEING and self.equal >= 0.9 * self.compared

    @property
    def is_refutation(self) -> bool:
        """Whether the values differ in more than half of the rows, of which there are at least ``MIN_COMPARED``."""
        return self.compared >= MIN_COMPARED and self.matching < 0.5 * self.compared


def agreement(values: Mapping[Any, Any], before: Mapping[Any, Any]) -> Agreement:
    """Compare the values of rows by the rows' ids."""
    both = [(value, before[key]) for key, value in values.items() if before.get(key) is not None and value is not None]
    equal = [value for value, earlier in both if value == earlier]
    distinct = len({str(each) for each in equal})
    return Agreement(len(both), len(equal), len(equal) if distinct >= MIN_AGREEING else distinct)
