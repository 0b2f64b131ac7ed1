"""Microblog: classes that read nested objects, including objects that refer to a page's records by id."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections import defaultdict
from functools import cached_property
from typing import Any

from crawler.reading.json import dicts

MAX_REFERENCES = 8
"""Maximum number of references that are followed in a row. Payloads so far have no reference to another reference."""


class Records:
    """The page's normalised JSON objects by id. Other objects in the page refer to such an object by its id."""

    def __init__(self, dicts: list[dict[str, Any]]) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}
        for each in dicts:
            record_id = each.get("__id")
            if isinstance(record_id, str):
                known = self.by_id.get(record_id)
                self.by_id[record_id] = each if known is None else known | each

    def get(self, record_id: str) -> dict[str, Any] | None:
        """Return the page's record with this id, or None. A missing user record is rebuilt from its parts' records."""
        found = self.by_id.get(record_id)
        return found if found is not None else self._rebuilt(record_id)

    @cached_property
    def _parts(self) -> dict[str, dict[str, Any]]:
        """The page's records that are fields of another record, by that record's id and the field's name.

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


class Node:
    """An object in a payload. Its methods take a path of keys."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: dict[str, Any] = value if type(value) is dict else {}

    def __bool__(self) -> bool:
        return bool(self.value)

    def get(self, *path: str) -> Any:
        """Return the value at a path of keys, or None."""
        value: Any = self.value
        for key in path:
            if type(value) is not dict:
                return None
            value = value.get(key)
        return value

    def node(self, *path: str) -> Node:
        """Return the object at a path, or an empty node."""
        return Node(self.get(*path))

    def nodes(self, *path: str) -> list[Node]:
        """Return the objects in the list at a path. Other elements of the list are skipped."""
        value = self.get(*path)
        return [Node(each) for each in dicts(value)] if value else []

    def reference(self, *_path: str) -> str:
        """Return "", because a plain object contains no references."""
        return ""


class LinkedNode(Node):
    """An object whose values may refer to the page's records. The methods follow these references."""

    __slots__ = ("records",)

    def __init__(self, value: Any, records: Records) -> None:
        self.value = value if type(value) is dict else {}
        self.records = records

    def get(self, *path: str) -> Any:
        value: Any = self.value
        if "__ref" in value:  # most objects are not references
            value = self._follow(value)
        for key in path:
            if type(value) is not dict:
                return None
            value = value.get(key)
            if type(value) is dict and "__ref" in value:
                value = self._follow(value)
        return value

    def node(self, *path: str) -> Node:
        return LinkedNode(self.get(*path), self.records)

    def nodes(self, *path: str) -> list[Node]:
        value = self.get(*path)
        if not value:
            return []
        if isinstance(value, dict) and isinstance(value.get("__refs"), list):
            value = [{"__ref": ref} for ref in value["__refs"]]
        found = (self._follow(each) if "__ref" in each else each for each in dicts(value))
        return [LinkedNode(each, self.records) for each in found if each is not None]

    def reference(self, *path: str) -> str:
        """Return the id of the record to which the value at a path refers, even if the page lacks the record.

        Return "" if the value is not a reference.
        """
        value = self.get(*path[:-1])
        value = value.get(path[-1]) if isinstance(value, dict) else None
        ref = value.get("__ref") if isinstance(value, dict) else None
        return plain_id(ref) if isinstance(ref, str) else ""

    def _follow(self, value: dict[str, Any]) -> dict[str, Any] | None:
        """Return the record to which an object refers, None if the page lacks it. Other objects are returned as is."""
        found: dict[str, Any] | None = value
        for _ in range(MAX_REFERENCES):
            ref = found.get("__ref") if found is not None else None
            if not isinstance(ref, str):
                break
            found = self.records.get(ref)
        return found
