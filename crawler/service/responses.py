"""Sends responses: compressed with gzip where that helps, and large ones in pieces, as their clients read them.

Static content is compressed once, and not sent to clients that already have it.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.interfaces import IPushProducer
from twisted.web.server import GzipEncoderFactory
from zope.interface import implementer

from crawler.jobs.job import logged
from crawler.service.envelope import Answer, Call, StreamedAnswer, raw_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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


PIECE_BYTES = 16_384
MAX_WHOLE_BYTES = 65_536
"""Larger responses are sent in pieces, as the client reads them."""
SEND_SECONDS = 5.0
"""Seconds for which responses may still be sent when the service shuts down."""
WITHOUT_BODY = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
"""Statuses of responses without a body, and so without Content-Length."""
MIN_COMPRESSED_BYTES = 2_048
"""Smaller responses are not compressed: they fit into two packets."""


class QuickGzip(GzipEncoderFactory):
    """Twisted's gzip, if the client accepts it, with a level that takes a third of the time of the usual one.

    It is used for one response at a time: ``EncodingResourceWrapper`` would also write the end of an empty gzip stream
    after a response that has no body (to HEAD, or with status 204 or 304).
    """

    compressLevel = 1  # noqa: N815  # Twisted's


@implementer(IPushProducer)
class _Gate:
    """A gate that is open while the transport's buffer has room."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()

    def pauseProducing(self) -> None:  # noqa: N802  # Twisted's
        self.is_open.clear()

    def resumeProducing(self) -> None:  # noqa: N802  # Twisted's
        self.is_open.set()

    def stopProducing(self) -> None:  # noqa: N802  # Twisted's
        """Do nothing: the task that sends is cancelled when the client disconnects."""


async def send_pieces(request: Request, pieces: AsyncIterator[bytes]) -> None:
    """Send the pieces of a response. At most one piece is made before the client has read enough of the former ones."""
    gate = _Gate()
    request.registerProducer(gate, True)  # noqa: FBT003  # Twisted's: a push producer
    try:
        async with aclosing(cast("Any", pieces)):
            async for piece in pieces:
                for start in range(0, len(piece), PIECE_BYTES):
                    await gate.is_open.wait()
                    request.write(piece[start : start + PIECE_BYTES])
    finally:
        if request.channel is not None:  # else the client has disconnected
            request.unregisterProducer()
    request.finish()


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _encoded(pieces: AsyncIterator[bytes], encoder: Any) -> AsyncIterator[bytes]:
    """Compress the pieces of a response, each in a small part of the time that the event loop may take."""
    async with aclosing(cast("Any", pieces)):
        async for piece in pieces:
            for start in range(0, len(piece), PIECE_BYTES):
                yield encoder.encode(piece[start : start + PIECE_BYTES])
                await asyncio.sleep(0)
    yield encoder.finish()


class ResponseWriter:
    """Sends the responses of a service."""

    def __init__(self) -> None:
        self.streams: set[asyncio.Task[None]] = set()
        """The tasks that send responses piece by piece."""
        self._gzip = QuickGzip()

    async def finish(self) -> None:
        """Wait at most ``SEND_SECONDS`` until the responses in progress are sent, and interrupt the rest."""
        if self.streams:
            _, late = await asyncio.wait(self.streams, timeout=SEND_SECONDS)
            for each in late:
                each.cancel()

    def send(self, request: Request, answer: Answer) -> AsyncIterator[bytes] | None:
        """Send the head of a response, and its body if it is small.

        Return the pieces that ``stream`` must send. None: the response is complete, or the client has disconnected.
        """
        if request.finished or request.channel is None:
            return None
        request.setResponseCode(answer.status, HTTPStatus(answer.status).phrase.encode())
        request.responseHeaders.removeHeader(b"Server")  # the server's version would help only attackers
        for name, value in answer.headers.items():
            request.setHeader(name, value)
        encoder = self._encoder(request, answer)
        if isinstance(answer, StreamedAnswer) and answer.pieces is not None:
            return _encoded(answer.pieces, encoder) if encoder else answer.pieces
        body = answer.body
        if encoder and isinstance(answer, StaticAnswer):
            body, encoder = answer.gzipped, None
        is_whole = len(body) <= MAX_WHOLE_BYTES or request.method == b"HEAD"
        if encoder and not is_whole:
            return _encoded(_whole(body), encoder)
        if encoder:
            body = encoder.encode(body) + encoder.finish()
        if answer.status not in WITHOUT_BODY and not isinstance(answer, StreamedAnswer):
            request.setHeader("Content-Length", str(len(body)))
        if not is_whole:
            return _whole(body)
        request.write(body)
        request.finish()
        return None

    def _encoder(self, request: Request, answer: Answer) -> Any:
        """Return what compresses a response. None: it is small, not text, or the client does not accept gzip."""
        media_type = answer.headers.get("Content-Type", "")
        is_text = media_type.startswith(("text/", "image/svg")) or "json" in media_type
        is_small = not isinstance(answer, StreamedAnswer) and len(answer.body) < MIN_COMPRESSED_BYTES
        if not is_text or is_small or request.method == b"HEAD":
            return None
        if not request.responseHeaders.hasHeader(b"Vary"):
            request.setHeader("Vary", "Accept-Encoding")
        return self._gzip.encoderForRequest(request)

    async def stream(self, request: Request, pieces: AsyncIterator[bytes]) -> None:
        """Send the pieces of a response. After an error, the connection is closed, so that the client notices it."""
        self.streams.add(_current_task())
        is_sent = False
        try:
            with logged("response_interrupted"):
                await send_pieces(request, pieces)
                is_sent = True
        finally:
            self.streams.discard(_current_task())
        if not is_sent:
            cast("Any", request.transport).abortConnection()


def _current_task() -> asyncio.Task[None]:
    """Return the current task. A local variable of ``stream`` would form a cycle with a cancellation's traceback."""
    task = asyncio.current_task()
    assert task is not None
    return task
