"""Static content: compressed once, and not sent to clients that already have it."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from crawler.service.calls.envelope import Answer, Call, raw_response

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

    def answer(self, call: Call) -> Answer:
        """Return the response to a request: the content, or the status 304 if the client already has it."""
        etag = f'W/"{self.digest}"'  # weak: the content is the same with and without compression
        headers = {"ETag": etag, "Cache-Control": self.cache_control, "Vary": "Accept-Encoding", **self.headers}
        if has_copy(call, etag):
            return raw_response(call, self.media_type, b"", headers, status=304)
        whole = raw_response(call, self.media_type, self.body, headers)
        return StaticAnswer(whole.status, whole.headers, self.body, gzipped=self.gzipped)


@dataclass(frozen=True)
class StaticAnswer(Answer):
    """A response with static content."""

    gzipped: bytes = b""
    """The compressed body."""


def has_copy(call: Call, etag: str) -> bool:
    """Whether the client already has the content with this ETag, by ``If-None-Match``."""
    known = {each.strip().removeprefix("W/") for each in call.request_headers.get("if-none-match", "").split(",")}
    return not known.isdisjoint({etag.removeprefix("W/"), "*"})
