"""Opaque cursors: a client sends the cursor of one page to get the next page. Received cursors are validated.

A cursor is a checksum and the JSON array ``[kind, payload]``, encoded as URL-safe base64. A cursor contains no secrets
and is not signed. The checksum detects cursors that were not copied correctly. Each platform's code checks whether the
payload matches the params.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, urlsafe_b64encode
from typing import Any

import orjson

MAX_LENGTH = 16_384
"""Maximum number of characters of a cursor. Valid cursors are shorter."""


_CHANGED = "not a cursor: expected the value of a previous answer, unchanged"


def encode(kind: str, payload: dict[str, Any]) -> str:
    """Return the cursor for a payload. ``kind``: the listing and the version of the payload's format, such as
    "videos-1".

    >>> decode("videos-1", encode("videos-1", {"tab": "live"}))
    {'tab': 'live'}
    """
    body = orjson.dumps([kind, payload])
    return urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).decode().rstrip("=")


def decode(kind: str, text: str) -> dict[str, Any]:
    """Return the payload of a cursor.

    Raises:
        ValueError: the text is not a cursor, was changed, or is a cursor of another kind.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError("not a cursor: too long")
    try:
        raw = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found, payload = orjson.loads(raw[4:])
    except (ValueError, TypeError) as error:
        raise ValueError(_CHANGED) from error
    if zlib.crc32(raw[4:]).to_bytes(4, "big") != raw[:4]:
        raise ValueError(_CHANGED)
    if found != kind or not isinstance(payload, dict):
        raise ValueError("a cursor of another kind: expected the value of a previous answer of the same scraper")
    return payload
