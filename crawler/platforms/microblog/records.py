"""Microblog: nests the objects in a page. In some pages, the objects are flat records that refer to each other."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from crawler.reading.contract import Unread, invalid_error

MAX_OBJECTS = 20_000
"""Maximum number of objects and lists in the nested data, in which an object may occur several times. Real pages have
about 500 objects."""
MAX_DEPTH = 60
"""Objects that are nested deeper are left out, so that a post that quotes itself ends. Real pages have up to 25
levels."""
_REF, _REFS = "__ref", "__refs"


class Records:
    """The page's objects. An object with an id (``__id``) is a record, to which other objects refer by this id.

    ``keys``: the keys of objects that ``nested`` keeps.
    """

    def __init__(self, dicts: list[dict[str, Any]], keys: frozenset[str]) -> None:
        self._keys = keys
        self._left = MAX_OBJECTS
        self.by_id: dict[str, dict[str, Any]] = {}
        for each in dicts:
            record_id = each.get("__id")
            if isinstance(record_id, str):
                known = self.by_id.get(record_id)
                self.by_id[record_id] = each if known is None else known | each

    def nested(self, value: Any, depth: int = 0) -> Any:
        """Return a value in which references to records are replaced by the records.

        A reference to a post that the page lacks is replaced by an object with the post's id and no post. Any other
        reference to a missing record is replaced by None.

        Raises:
            ExtractionFailed: the value contains more objects and lists than any real page.
        """
        if type(value) is list:
            self._count()
            return None if depth > MAX_DEPTH else [self.nested(each, depth + 1) for each in value]
        if type(value) is not dict:
            return value
        if _REF in value:
            ref = value[_REF]
            value = self.get(ref) if isinstance(ref, str) else None
            if value is None:
                kind, _, number = plain_id(ref).partition(":") if isinstance(ref, str) else ("", "", "")
                return {"rest_id": number, "result": None} if kind == "TweetResults" else None
        elif _REFS in value:
            return [self.nested({_REF: ref}, depth + 1) for ref in value[_REFS]] if type(value[_REFS]) is list else None
        self._count()
        if depth > MAX_DEPTH:
            return None
        return {key: self.nested(value[key], depth + 1) for key in self._keys.intersection(value)}

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            message = f"The page's data contains more than {MAX_OBJECTS:,} objects and lists."
            raise invalid_error(message, ["script"], "Too many objects", "too_many", reason="too_large")

    def get(self, record_id: str) -> dict[str, Any] | None:
        """Return the page's record with an id, or None. A missing user record is rebuilt from its fields' records."""
        found = self.by_id.get(record_id)
        return found if found is not None else self._rebuilt(record_id)

    def lacking(self, keys: Mapping[str, Sequence[str]]) -> list[Unread]:
        """Return the keys that all records of a type lack. ``keys``: the keys by type.

        A record has each key that its query selects, null if empty. Fewer keys may be selected for a quoted post than
        for a post in the timeline.
        """
        by_type: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in self.by_id.values():
            if isinstance(kind := each.get("__typename"), str):
                by_type[kind].append(each)
        return [
            Unread(f"{kind}.{key}", "missing", len(records), len(records))
            for kind, expected in keys.items()
            if (records := [each for each in by_type[kind] if kind != "Tweet" or "details" in each])
            for key in expected
            if not any(key in each for each in records)
        ]

    @cached_property
    def _parts(self) -> dict[str, dict[str, Any]]:
        """The records that are fields of another record, by the other record's id and the field's name.

        Their own ids are ``client:<id>:<field>``.
        """
        parts: dict[str, dict[str, Any]] = defaultdict(dict)
        for record_id, record in self.by_id.items():
            head, _, rest = record_id.partition(":")
            owner, _, field = rest.partition(":")
            if head == "client" and field and ":" not in field:
                parts[owner][field] = record
        return parts

    def _rebuilt(self, record_id: str) -> dict[str, Any] | None:
        kind, _, number = plain_id(record_id).partition(":")
        if kind == "UserResults":
            user_id = b64encode(f"User:{number}".encode()).decode()
            user = self.get(user_id)
            return None if user is None else {"__typename": "UserResults", "result": user}
        if kind == "User" and record_id in self._parts:
            return {"__typename": "User", "rest_id": number, **self._parts[record_id]}
        return None


def plain_id(record_id: str) -> str:
    """Decode a record's id from base64 to a form such as ``Tweet:1``. An id that is not base64 is returned unchanged.

    >>> plain_id("VXNlcjox"), plain_id("TweetResults:1")
    ('User:1', 'TweetResults:1')
    """
    try:
        return b64decode(record_id, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return record_id
