"""The outermost ring: what a connection may cost before it is a call.

Twisted bounds the head (16 KiB, 500 headers) and closes connections that say nothing; here is what it leaves open:
how long a request may take to arrive, how many connections there are, and that a refusal has the envelope too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.server import Site

from crawler.errors import InvalidRequest, Overloaded, ScrapeError
from crawler.service.body import CappedRequest
from crawler.service.envelope import raw_error_bytes

if TYPE_CHECKING:
    from twisted.internet.interfaces import IAddress, IDelayedCall
    from twisted.web.resource import Resource

IDLE = 60
"""Seconds for which a connection may stay open and say nothing."""

ARRIVAL = 15.0
"""Seconds within which a request that has begun must be complete, however steadily its bytes drip."""

LINGER = 1.0
"""Seconds for which a connection stays half open after a refusal, so that the client can read why."""

NO_REQUEST = InvalidRequest("This is no request that HTTP/1.1 knows, or its head is too long.")

LONGEST_NUMBER = 18
"""Digits of a Content-Length. Python refuses to read numbers of thousands of digits, with an exception."""


class Channel(HTTPChannel):
    """A connection whose requests arrive in time or not at all."""

    site: EdgeSite
    refused = False
    _arriving: IDelayedCall | None = None

    def connectionMade(self) -> None:
        super().connectionMade()
        self.site.connections += 1

    def dataReceived(self, data: bytes) -> None:
        """Most requests are complete with their first bytes: a clock runs for the others only."""
        if self.refused:
            return
        super().dataReceived(data)
        if not self._handlingRequest and self._arriving is None and not self.refused:
            self._arriving = self.callLater(ARRIVAL, self._too_slow)

    def allContentReceived(self) -> None:
        self._stop_clock()
        super().allContentReceived()

    def headerReceived(self, line: bytes) -> bool:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length" and len(value.strip()) > LONGEST_NUMBER:
            self._respondToBadRequestAndDisconnect()
            return False
        return bool(super().headerReceived(line))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_clock()
        self.site.connections -= 1
        super().connectionLost(reason)

    def _stop_clock(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _too_slow(self) -> None:
        self._arriving = None
        cast("Any", self.transport).abortConnection()

    def refuse(self, error: ScrapeError) -> None:
        """Answers before the request is complete, reads no more, and closes."""
        if self.refused:
            return
        self.refused = True
        self.paused = True  # what has come behind it is no request either
        self._stop_clock()
        transport = cast("Any", self.transport)
        transport.write(raw_error_bytes(error))
        transport.unregisterProducer()  # it would make us read on
        transport.pauseProducing()
        transport.loseWriteConnection()
        self.callLater(LINGER, transport.abortConnection)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(NO_REQUEST)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802  # Twisted's: it answers with a bare status line
        self.refuse(NO_REQUEST)

    def _send100Continue(self) -> None:  # noqa: N802  # Twisted's
        if not self.refused:
            super()._send100Continue()


class _Refused(Protocol):
    """A connection beyond the limit: told so, and closed."""

    def connectionMade(self) -> None:
        transport = cast("Any", self.transport)
        transport.write(raw_error_bytes(Overloaded("Too many connections are open.", retry_after=5)))
        transport.loseConnection()


class EdgeSite(Site):
    """The endpoint's site: all connections of this process, bounded."""

    protocol = Channel  # type: ignore[assignment]  # Twisted's own chooses HTTP/2 too, which needs TLS
    noisy = False

    def __init__(self, resource: Resource, max_connections: int) -> None:
        # Forms are no input here, and reading them takes memory.
        super().__init__(resource, requestFactory=CappedRequest, timeout=IDLE, parsePOSTFormSubmission=False)
        self.max_connections = max_connections
        self.connections = 0

    def log(self, request: Any) -> None:
        """Nothing: each call has its own line."""

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: N802  # Twisted's
        if self.connections >= self.max_connections:
            return _Refused()
        return super().buildProtocol(addr)
