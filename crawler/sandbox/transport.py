"""Sends the simulated platforms' responses as real platforms do: with a cookie, in an encoding that the client accepts.

Responses to different URLs have different encodings, so that a crawl receives all encodings that it accepts.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from functools import partial
from typing import TYPE_CHECKING

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable

    from twisted.web.server import Request

    from crawler.sandbox.protocol import FakeResponse

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "br": partial(brotli.compress, quality=1),
    "deflate": partial(zlib.compress, level=1),
    "gzip": partial(gzip.compress, compresslevel=1, mtime=0),
    "zstd": partial(zstd.compress, level=1),
}
COOKIE = "visitor=invented; Path=/; HttpOnly; SameSite=Lax"


def send(request: Request, answer: FakeResponse) -> None:
    """Send a response."""
    request.write(start(request, answer))
    request.finish()


def start(request: Request, answer: FakeResponse) -> bytes:
    """Set the status and the headers of a response, and return its encoded body."""
    status, headers, body = answer
    request.setResponseCode(status)
    encoding = _encoding(request) if body else ""
    if encoding:
        body = ENCODERS[encoding](body)
        request.setHeader("Content-Encoding", encoding)
    common = {"Content-Type": "text/html; charset=utf-8", "Set-Cookie": COOKIE, "Vary": "Accept-Encoding"}
    for name, value in {**common, **headers, "Content-Length": str(len(body))}.items():
        request.setHeader(name, value)
    return body


def _encoding(request: Request) -> str:
    """Return the encoding for a request: one of those that the client accepts, or "" if it accepts none of them."""
    accepted = {part.partition(";")[0].strip() for part in (request.getHeader("accept-encoding") or "").split(",")}
    known = sorted(accepted & ENCODERS.keys())
    return known[zlib.crc32(request.uri) % len(known)] if known else ""
