"""Continuation cursors of ours: opaque to the caller, checked when they come back.

A cursor is URL-safe base64 of a checksum and JSON: ``[kind, payload]``. It carries no secret and is no signature; the
checksum tells a copy that was cut or mistyped from one that was not. Whether the payload suits the params it comes
with is for the platform to say.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, urlsafe_b64encode
from typing import Any

import orjson

MAX_LENGTH = 16_384
"""No cursor of ours is as long; longer text is not even decoded."""


def encode(kind: str, payload: dict[str, Any]) -> str:
    """A cursor for the caller to send back. ``kind`` says whose it is: a scraper's name and a version.

    >>> decode("videos-1", encode("videos-1", {"tab": "live"}))
    {'tab': 'live'}
    """
    body = orjson.dumps([kind, payload])
    return urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).decode().rstrip("=")


def decode(kind: str, text: str) -> dict[str, Any]:
    """The payload of a cursor that ``encode`` made for the same kind.

    Raises:
        ValueError: not a cursor of this kind, cut, or changed.
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
