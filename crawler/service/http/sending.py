"""Sends a large response in pieces, as its client reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

if TYPE_CHECKING:
    from twisted.web.server import Request

PIECE_BYTES = 16_384


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
