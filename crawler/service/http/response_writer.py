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

from crawler.service.calls.envelope import Answer, StreamedAnswer
from crawler.service.http.body import header
from crawler.service.http.static import best_coding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from twisted.internet.defer import Deferred
    from twisted.web.server import Request

    from crawler.service.http.body import CappedRequest
    from crawler.service.http.cors import Cors

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
"""The compression level. It takes a third of the time of the default level."""
PACKERS: dict[str, Callable[[], Any]] = {
    "gzip": partial(zlib.compressobj, LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16),
    "zstd": partial(zstd.ZstdCompressor, level=LEVEL),
}
"""Content coding -> the function that makes a compressor for one body."""


async def compressed(answer: Answer, request: Request) -> Answer:
    """Return the response with a compressed body, if it is large and the client accepts it."""
    size = len(answer.body)
    if size < MIN_COMPRESSED_BYTES or "Content-Encoding" in answer.headers or "ETag" in answer.headers:
        return answer
    headers = {**answer.headers, "Vary": "Accept-Encoding"}
    coding = best_coding(header(request, "Accept-Encoding"))
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


async def send_pieces(request: Request, pieces: AsyncIterator[bytes] | None) -> None:
    """Send the pieces of a response. Each piece is made when the client has read enough of the former pieces."""
    if pieces is not None:
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


@implementer(IPushProducer)
class Sender:
    """Writes a body until the transport's buffer is full, and continues when the client has read it.

    Twisted's ``FileSender`` would do the same, but it forms a reference cycle with the connection. The connection's
    buffers would then stay in memory until the garbage collector runs, which is seldom.
    """

    def __init__(self, request: Request, body: bytes) -> None:
        self.request = request
        self.body = body
        self._sent = 0
        self._is_paused = False

    def start(self) -> None:
        """Begin to write. The request is finished after the last piece."""
        self.request.registerProducer(self, True)  # noqa: FBT003  # Twisted's: a push producer
        self.resumeProducing()

    def resumeProducing(self) -> None:  # noqa: N802  # Twisted's
        self._is_paused = False
        while not self._is_paused and self._sent < len(self.body):
            piece = self.body[self._sent : self._sent + PIECE_BYTES]
            self._sent += len(piece)
            self.request.write(piece)  # may pause this producer
        if not self._is_paused:
            self.request.unregisterProducer()
            self.request.finish()

    def pauseProducing(self) -> None:  # noqa: N802  # Twisted's
        self._is_paused = True

    def stopProducing(self) -> None:  # noqa: N802  # Twisted's
        """Break the reference cycle with the request, because the client has disconnected."""
        self._is_paused = True
        self.request.unregisterProducer()


class ResponseWriter:
    """Sends the responses of a service."""

    def __init__(self, cors: Cors) -> None:
        self._cors = cors
        self._unread: set[Deferred[None]] = set()
        """For each large response that is being sent, a deferred that fires when it has been sent."""
        self.streams: set[asyncio.Task[None]] = set()
        """The tasks that send responses of unknown length."""

    async def finish(self) -> None:
        """Wait at most ``SEND_SECONDS`` until the responses in progress are sent."""
        if self.streams:
            _, late = await asyncio.wait(self.streams, timeout=SEND_SECONDS)
            for each in late:
                each.cancel()
        if self._unread:
            await asyncio.wait(
                [each.asFuture(asyncio.get_running_loop()) for each in self._unread], timeout=SEND_SECONDS
            )

    def send(self, request: Request, answer: Answer) -> None:
        """Send the status and headers of a response. Also send its body, unless ``stream()`` must send it."""
        if request.finished or cast("CappedRequest", request).is_disconnected:
            return
        request.setResponseCode(answer.status, HTTPStatus(answer.status).phrase.encode())
        request.responseHeaders.removeHeader(b"Server")  # the server's version would help only attackers
        for name, value in answer.headers.items():
            request.setHeader(name, value)
        self._cors.add_headers(request)
        if isinstance(answer, StreamedAnswer):
            return
        if answer.status not in WITHOUT_BODY:
            request.setHeader("Content-Length", str(len(answer.body)))
        if len(answer.body) <= MAX_WHOLE_BYTES or request.method == b"HEAD":
            request.write(answer.body)
            request.finish()
            return
        sent = request.notifyFinish()
        self._unread.add(sent)
        sent.addBoth(lambda _: self._unread.discard(sent))
        Sender(request, answer.body).start()

    async def stream(self, request: Request, answer: StreamedAnswer) -> None:
        """Send the pieces of a response. After an error, the connection is closed, so that the client notices it."""
        task = asyncio.current_task()
        assert task is not None
        self.streams.add(task)
        task.add_done_callback(self.streams.discard)
        try:
            await send_pieces(request, answer.pieces)
        except Exception:
            logger.exception("response_interrupted")
            cast("CappedRequest", request).abort()
