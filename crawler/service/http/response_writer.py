"""Compresses responses, and sends large ones in pieces, as their clients read them."""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import structlog
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from crawler.service.calls.envelope import Answer, Call, StreamedAnswer
from crawler.service.http.static import best_coding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from twisted.web.server import Request

    from crawler.service.http.cors import Cors
    from crawler.service.http.edge import CappedRequest

logger = structlog.get_logger(__name__)

PIECE_BYTES = 16_384
MAX_WHOLE_BYTES = 65_536
"""Larger responses are sent in pieces, as the client reads them."""
SEND_SECONDS = 5.0
"""Seconds for which responses may still be sent when the service shuts down."""
WITHOUT_BODY = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
"""Statuses of responses without a body, and so without Content-Length."""
MIN_COMPRESSED_BYTES = 2_048
"""Smaller responses are not compressed: they fit into two packets."""
MAX_LOOP_BYTES = 262_144
"""Larger responses are compressed in a thread."""
LEVEL = 1
"""The compression level, with which compression takes a third of the time of the default level."""
PACKERS: dict[str, Callable[[], Any]] = {
    "gzip": partial(zlib.compressobj, LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16),
    "zstd": partial(zstd.ZstdCompressor, level=LEVEL),
}
"""Content coding -> the function that makes a compressor for one body."""


async def compressed(answer: Answer, call: Call) -> Answer:
    """Return the response with a compressed body, if the body is large and the client accepts a coding.

    Responses that are encoded already, or have an ETag, are returned unchanged.
    """
    size = len(answer.body)
    if size < MIN_COMPRESSED_BYTES or "Content-Encoding" in answer.headers or "ETag" in answer.headers:
        return answer
    headers = {**answer.headers, "Vary": "Accept-Encoding"}
    coding = best_coding(call.request_headers.get("accept-encoding", ""))
    if not coding:
        return replace(answer, headers=headers)
    pack = partial(_packed, answer.body, coding)
    body = pack() if size <= MAX_LOOP_BYTES else await asyncio.to_thread(pack)
    return replace(answer, body=body, headers=headers | {"Content-Encoding": coding})


def _packed(body: bytes, coding: str) -> bytes:
    packer = PACKERS[coding]()
    return bytes(packer.compress(body) + packer.flush())


async def compressed_pieces(pieces: AsyncIterator[bytes], coding: str) -> AsyncIterator[bytes]:
    """Compress the pieces of a response. ``coding``: gzip or zstd."""
    packer = PACKERS[coding]()
    async for piece in pieces:
        if packed := await asyncio.to_thread(packer.compress, piece):
            yield packed
    yield packer.flush()


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


class ResponseWriter:
    """Sends the responses of a service."""

    def __init__(self, cors: Cors) -> None:
        self._cors = cors
        self.streams: set[asyncio.Task[None]] = set()
        """The tasks that send responses piece by piece."""

    async def finish(self) -> None:
        """Wait at most ``SEND_SECONDS`` until the responses in progress are sent, and interrupt the rest."""
        if self.streams:
            _, late = await asyncio.wait(self.streams, timeout=SEND_SECONDS)
            for each in late:
                each.cancel()

    def send(self, request: Request, call: Call, answer: Answer) -> AsyncIterator[bytes] | None:
        """Send the head of a response, and its body if it is small.

        Return the pieces that ``stream`` must send. None: the response is complete, or the client has disconnected.
        """
        if request.finished or cast("CappedRequest", request).is_disconnected:
            return None
        request.setResponseCode(answer.status, HTTPStatus(answer.status).phrase.encode())
        request.responseHeaders.removeHeader(b"Server")  # the server's version would help only attackers
        for name, value in answer.headers.items():
            request.setHeader(name, value)
        if self._cors.origins:
            for name, value in self._cors.headers(call.path, call.request_headers).items():
                request.responseHeaders.addRawHeader(name, value)
        if isinstance(answer, StreamedAnswer) and answer.pieces is not None:
            return answer.pieces
        if answer.status not in WITHOUT_BODY and not isinstance(answer, StreamedAnswer):
            request.setHeader("Content-Length", str(len(answer.body)))
        if len(answer.body) > MAX_WHOLE_BYTES and request.method != b"HEAD":
            return _whole(answer.body)
        request.write(answer.body)
        request.finish()
        return None

    async def stream(self, request: Request, pieces: AsyncIterator[bytes]) -> None:
        """Send the pieces of a response. After an error, the connection is closed, so that the client notices it."""
        self.streams.add(_current_task())
        try:
            await send_pieces(request, pieces)
        except Exception:
            logger.exception("response_interrupted")
            cast("CappedRequest", request).abort()
        finally:
            self.streams.discard(_current_task())


def _current_task() -> asyncio.Task[None]:
    """Return the current task. A local variable of ``stream`` would form a cycle with a cancellation's traceback."""
    task = asyncio.current_task()
    assert task is not None
    return task
