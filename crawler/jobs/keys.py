"""The keys of targets. This module does not import the store, because targets outside of jobs have keys, too."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

KEY_BYTES = 16


def target_key(scraper: str, params: Mapping[str, Any]) -> bytes:
    """Return the key of a target. Equal params of the same scraper give the same key, in any order of the params."""
    return _digest(orjson.dumps([scraper, params], option=orjson.OPT_SORT_KEYS))


def followup_key(parent: bytes, part: str) -> bytes:
    """Return the key of a follow-up. ``part``: text that differs for each follow-up of a parent, such as its params."""
    return _digest(parent + part.encode())


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()
