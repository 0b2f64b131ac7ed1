"""Static content: compressed once, and not sent to clients that already have it."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from crawler.service.calls.envelope import Answer, Call, raw_response
from crawler.service.http.body import header

if TYPE_CHECKING:
    from twisted.web.server import Request

REVALIDATE = "no-cache"
"""``Cache-Control`` of content that may be stored, but must be validated (by its ETag) each time it is used."""
ONE_DAY = "public, max-age=86400"
"""``Cache-Control`` of content that changes only with the version of the service."""
MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
"""Suffix of a file -> its media type."""


@dataclass(frozen=True)
class StaticContent:
    """A file or document, with an ETag and a gzipped copy."""

    media_type: str
    body: bytes
    cache_control: str = REVALIDATE
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_file(cls, name: str, body: bytes, cache_control: str = REVALIDATE) -> StaticContent:
        """Return the content of a file. The suffix determines the media type."""
        return cls(MEDIA_TYPES[name.rpartition(".")[2]], body, cache_control)

    @cached_property
    def gzipped(self) -> bytes:
        """The compressed body."""
        return gzip.compress(self.body, mtime=0)

    @cached_property
    def digest(self) -> str:
        """The body's hash, which identifies it in ETags."""
        return hashlib.sha256(self.body).hexdigest()[:32]

    def answer(self, request: Request, call: Call) -> Answer:
        """Return the response to a request: the content, or the status 304 if the client already has it."""
        compressed = accepts_gzip(header(request, "Accept-Encoding"))
        etag = f'"{self.digest}-gzip"' if compressed else f'"{self.digest}"'
        headers = {"ETag": etag, "Cache-Control": self.cache_control, "Vary": "Accept-Encoding", **self.headers}
        known = {each.strip().removeprefix("W/") for each in (header(request, "If-None-Match") or "").split(",")}
        if known & {etag, "*"}:
            return raw_response(call, self.media_type, b"", headers, status=304)
        if compressed:
            headers["Content-Encoding"] = "gzip"
        return raw_response(call, self.media_type, self.gzipped if compressed else self.body, headers)


def accepts_gzip(accepted: str | None) -> bool:
    """Whether a value of ``Accept-Encoding`` allows gzip.

    >>> [accepts_gzip(value) for value in ("br, GZIP;q=0.5", "gzip;q=0", "*", "deflate", None)]
    [True, False, True, False, False]
    """
    weights = _weights(accepted)
    return weights.get("gzip", weights.get("*", False))


def best_coding(accepted: str | None) -> str:
    """Return the content coding for a large response: zstd, else gzip, else "".

    >>> [best_coding(value) for value in ("gzip, zstd", "zstd;q=0, gzip", "*", "br", None)]
    ['zstd', 'gzip', 'gzip', '', '']
    """
    return "zstd" if _weights(accepted).get("zstd", False) else "gzip" if accepts_gzip(accepted) else ""


@lru_cache(256)
def _weights(accepted: str | None) -> dict[str, bool]:
    """Return whether each coding in a value of ``Accept-Encoding`` is acceptable."""
    return {
        coding.strip().lower(): not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", parameters)
        for coding, _, parameters in (each.partition(";") for each in (accepted or "").split(","))
    }
