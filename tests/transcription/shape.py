"""The structure of captures and fixtures: key paths, and lists reduced to one row of each kind."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.transcription import words

MAX_SCALARS = 3
CONFIGURATION = {"bootstrapData", "runtimeConfig", "EXPERIMENT_FLAGS"}
"""Keys of site settings, which no page object reads. Each part of them is kept only in one fixture of a platform."""
SMALL_ROW = 3000
"""A last row with fewer characters is always kept, because it can be the continuation of the list."""
NEW_PATHS = 12
"""A row with at least this many new key paths is kept, even if their last keys occurred elsewhere before."""
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
CONTENT = "*"
"""Replaces a key that is content, such as an id, in a path."""


@cache
def is_name(key: str) -> bool:
    """Return whether a key is a name. Other keys (ids, URLs, texts) are content."""
    mixed = re.search(r"\d", key) and re.search(r"[a-z]", key) and re.search(r"[A-Z]", key) and len(key) >= 10
    plain = re.fullmatch(r"[\w$@.:/-]{0,60}", key, re.ASCII) and not re.search(r"\d{5}", key)
    return bool(plain and not mixed and base64_text(key) is None)


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the key paths of a JSON value, such as ``a.b[].c``, including those of JSON in texts."""
    match value:
        case dict():
            for key, each in value.items():
                below = f"{path}.{key if is_name(key) else CONTENT}"
                yield below
                yield from paths(each, below)
        case list():
            for each in value:
                yield from paths(each, f"{path}[]")
        case str():
            if (nested := json_of(value)) is not None:
                yield from paths(nested, f"{path}>")


def json_of(text: str) -> Any:
    """Return the JSON object or list that a text contains, or None."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, (dict, list)) and found else None


@cache
def base64_text(token: str) -> str | None:
    """Return the text (such as JSON or "name:number") that a token encodes in base64, or None."""
    if not BASE64.fullmatch(token):
        return None
    plain = token.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if text.isprintable() and re.search(r"[:{\"]", text) else None


class Pruner:
    """Reduces lists to the rows with a key, a kind of value or an enumerated word that no earlier row has.

    The captures of a platform share ``seen``, so each kind of row is kept only in the newest capture that has it.
    The first row of each list is always kept, and so is a last row of less than ``SMALL_ROW`` characters.
    """

    def __init__(self, platform: str, seen: set[str]) -> None:
        self.platform = platform
        self.seen = seen

    def __call__(self, value: Any, path: str = "") -> Any:
        """Return the value with reduced lists. Objects whose keys are content are reduced like lists."""
        match value:
            case dict():
                others = {key: each for key, each in value.items() if not is_name(key)}
                rows = dict(self._rows(list(others.items()), f"{path}.{CONTENT}"))
                named = {key: self._part(key, each, path) for key, each in value.items() if is_name(key)}
                return {key: named.get(key, rows.get(key)) for key in value if key in named or key in rows}
            case list():
                if not any(isinstance(each, (dict, list)) for each in value):
                    return value[:MAX_SCALARS]
                return [each for _, each in self._rows([("", each) for each in value], f"{path}[]")]
            case str() if (nested := json_of(value)) is not None:
                return json.dumps(self(nested, f"{path}>"), ensure_ascii=False, separators=(",", ":"))
        return value

    def _part(self, key: str, value: Any, path: str) -> Any:
        cut = self(value, f"{path}.{key}")
        return self._unseen(cut, f"{path}.{key}") if key in CONFIGURATION else cut

    def _unseen(self, value: Any, path: str) -> Any:
        """Return site settings without the parts that an earlier fixture has."""
        if not isinstance(value, dict):
            return value
        found = {key: (each, f"{path}.{key if is_name(key) else CONTENT}") for key, each in value.items()}
        new = {
            key: (each, below) for key, (each, below) in found.items() if {below, *self._paths(each, below)} - self.seen
        }
        self.seen |= {below for _, below in new.values()}
        return {key: self._unseen(each, below) for key, (each, below) in new.items()}

    def _paths(self, value: Any, path: str) -> Iterator[str]:
        return (kind for kind in self._kinds(value, path) if kind.startswith("."))

    def _rows(self, rows: list[tuple[str, Any]], path: str) -> list[tuple[str, Any]]:
        """Return the rows to keep (see the class), each with its own lists reduced."""
        kept: list[tuple[str, Any]] = []
        for number, (key, row) in enumerate(rows):
            new = {kind for kind in self._kinds(row, path) if kind not in self.seen}
            small_end = number == len(rows) - 1 and len(json.dumps(row)) < SMALL_ROW
            if number == 0 or small_end or len(new) >= NEW_PATHS or any(not kind.startswith(".") for kind in new):
                cut = self(row, path)
                kept.append((key, cut))
                self.seen.update(self._kinds(cut, path))
        return kept

    def _kinds(self, value: Any, path: str) -> Iterator[str]:
        """Yield the key paths (they begin with a dot), and the last key of each path with the kind of its value."""
        match value:
            case dict():
                for key, each in value.items():
                    below = f"{path}.{key if is_name(key) else CONTENT}"
                    yield below
                    yield from self._kinds(each, below)
            case list():
                for each in value:
                    yield from self._kinds(each, f"{path}[]")
            case str() if (nested := json_of(value)) is not None:
                yield from self._kinds(nested, f"{path}>")
            case _:
                end = ".".join(path.split(".")[-2:])
                enumerated = (
                    isinstance(value, str) and words.CONSTANT.fullmatch(value) and not re.search(r"\d{3}", value)
                )
                yield f"{end}={value}" if enumerated else f"{end}:{type(value).__name__}"
