"""Continuation cursors: opaque to the client, validated when they are sent back.

A cursor is URL-safe base64 of a checksum and JSON: ``[kind, payload]``. It contains no secret and is not signed; the
checksum detects truncated and mistyped copies. The platform checks whether the payload matches the params.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, urlsafe_b64encode
from typing import Any

import orjson

MAX_LENGTH = 16_384
"""Longer text is refused without being decoded. Valid cursors are much shorter."""


def encode(kind: str, payload: dict[str, Any]) -> str:
    """Return a cursor for the client to send back. ``kind``: a scraper's name and a version.

    >>> decode("videos-1", encode("videos-1", {"tab": "live"}))
    {'tab': 'live'}
    """
    body = orjson.dumps([kind, payload])
    return urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).decode().rstrip("=")


def decode(kind: str, text: str) -> dict[str, Any]:
    """Return the payload of a cursor of this kind.

    Raises:
        ValueError: the text is not a cursor, is of another kind, or was truncated or changed.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError("not a cursor: too long")
    try:
        raw = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError("not a cursor: expected the value of a previous answer, unchanged") from error
    checksum, body = raw[:4], raw[4:]
    if zlib.crc32(body).to_bytes(4, "big") != checksum:
        raise ValueError("not a cursor: expected the value of a previous answer, unchanged")
    try:
        found, payload = orjson.loads(body)
    except (ValueError, TypeError) as error:
        raise ValueError("not a cursor: expected the value of a previous answer, unchanged") from error
    if found != kind or not isinstance(payload, dict):
        raise ValueError("a cursor of another kind: expected the value of a previous answer of the same scraper")
    return payload
