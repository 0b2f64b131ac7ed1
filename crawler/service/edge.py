"""Limits on connections, and on requests that have not arrived completely.

Twisted limits the headers of a request (500 headers, 16 KiB) and closes idle connections. This module adds a time limit
for the arrival of a request, a maximum number of connections, and error envelopes for requests that are refused early.
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

IDLE_SECONDS = 60
"""Seconds after which an idle connection is closed."""

ARRIVAL_SECONDS = 15.0
"""If a request takes longer than this to arrive, the connection is closed."""

LINGER_SECONDS = 1.0
"""Seconds for which the client can still read the response after its request was refused."""

MALFORMED_REQUEST = InvalidRequest("Malformed HTTP request, or its headers are too large.")

MAX_LENGTH_DIGITS = 18
"""Maximum digits of a Content-Length header: ``int()`` raises for thousands of digits."""


class Channel(HTTPChannel):
    """A connection that is closed when a request does not arrive in time."""

    site: EdgeSite
    refused = False
    _arrival_timer: IDelayedCall | None = None

    def connectionMade(self) -> None:
        super().connectionMade()
        self.site.connections += 1

    def dataReceived(self, data: bytes) -> None:
        """Start the arrival timer if the request is not complete yet. Most requests arrive in one piece."""
        if self.refused:
            return
        super().dataReceived(data)
        if not self._handlingRequest and self._arrival_timer is None and not self.refused:
            self._arrival_timer = self.callLater(ARRIVAL_SECONDS, self._abort_slow_request)

    def allContentReceived(self) -> None:
        self._stop_arrival_timer()
        super().allContentReceived()

    def headerReceived(self, line: bytes) -> bool:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length" and len(value.strip()) > MAX_LENGTH_DIGITS:
            self._respondToBadRequestAndDisconnect()
            return False
        return bool(super().headerReceived(line))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_arrival_timer()
        self.site.connections -= 1
        super().connectionLost(reason)

    def _stop_arrival_timer(self) -> None:
        if self._arrival_timer is not None:
            self._arrival_timer.cancel()
            self._arrival_timer = None

    def _abort_slow_request(self) -> None:
        self._arrival_timer = None
        cast("Any", self.transport).abortConnection()

    def refuse(self, error: ScrapeError) -> None:
        """Respond before the request is complete, stop reading, and close the connection."""
        if self.refused:
            return
        self.refused = True
        self.paused = True  # bytes after the refused request are not parsed
        self._stop_arrival_timer()
        transport = cast("Any", self.transport)
        transport.write(raw_error_bytes(error))
        transport.unregisterProducer()  # the producer would resume reading
        transport.pauseProducing()
        transport.loseWriteConnection()
        self.callLater(LINGER_SECONDS, transport.abortConnection)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(MALFORMED_REQUEST)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802  # Twisted's method sends a status line without an envelope
        self.refuse(MALFORMED_REQUEST)

    def _send100Continue(self) -> None:  # noqa: N802  # Twisted's
        if not self.refused:
            super()._send100Continue()


class _RefusedConnection(Protocol):
    """A connection above the limit: responds with ``OVERLOADED`` and is closed."""

    def connectionMade(self) -> None:
        transport = cast("Any", self.transport)
        transport.write(raw_error_bytes(Overloaded("Too many connections are open.", retry_after=5)))
        transport.loseConnection()


class EdgeSite(Site):
    """The endpoint's HTTP site. It limits the number of connections of this process."""

    protocol = Channel  # type: ignore[assignment]  # replaces Twisted's default, which negotiates HTTP/2 over TLS
    noisy = False

    def __init__(self, resource: Resource, max_connections: int) -> None:
        # The endpoint accepts no forms, and parsing them takes memory.
        super().__init__(resource, requestFactory=CappedRequest, timeout=IDLE_SECONDS, parsePOSTFormSubmission=False)
        self.max_connections = max_connections
        self.connections = 0

    def log(self, request: Any) -> None:
        """Log nothing: ``resources.py`` logs each call."""

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: N802  # Twisted's
        if self.connections >= self.max_connections:
            return _RefusedConnection()
        return super().buildProtocol(addr)
