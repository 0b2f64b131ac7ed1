"""Limits of connections and of requests that are still arriving.

Twisted limits the headers (16 KiB, 500 of them) and closes idle connections. This module adds a time limit for the
arrival of a request, a limit of connections, and the envelope for refused requests.
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
"""Seconds from the first bytes of a request to its last, after which the connection is closed."""

LINGER_SECONDS = 1.0
"""Seconds that a connection stays half open after a refusal, so that the client can read the response."""

MALFORMED_REQUEST = InvalidRequest("Malformed HTTP request, or its headers are too large.")

MAX_LENGTH_DIGITS = 18
"""Limit for the digits of a Content-Length: ``int()`` raises for thousands of digits."""


class Channel(HTTPChannel):
    """A connection that is closed when a request does not arrive in time."""

    site: EdgeSite
    refused = False
    _arrival_timer: IDelayedCall | None = None

    def connectionMade(self) -> None:
        super().connectionMade()
        self.site.connections += 1

    def dataReceived(self, data: bytes) -> None:
        """Start the arrival timer, unless the request is complete with its first bytes, as most are."""
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
        self.paused = True  # bytes behind the refused request are not parsed
        self._stop_arrival_timer()
        transport = cast("Any", self.transport)
        transport.write(raw_error_bytes(error))
        transport.unregisterProducer()  # it would resume reading
        transport.pauseProducing()
        transport.loseWriteConnection()
        self.callLater(LINGER_SECONDS, transport.abortConnection)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(MALFORMED_REQUEST)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802  # Twisted's, which sends a bare status line
        self.refuse(MALFORMED_REQUEST)

    def _send100Continue(self) -> None:  # noqa: N802  # Twisted's
        if not self.refused:
            super()._send100Continue()


class _RefusedConnection(Protocol):
    """A connection beyond the limit: it gets ``OVERLOADED`` and is closed."""

    def connectionMade(self) -> None:
        transport = cast("Any", self.transport)
        transport.write(raw_error_bytes(Overloaded("Too many connections are open.", retry_after=5)))
        transport.loseConnection()


class EdgeSite(Site):
    """The endpoint's site, with a limit for the connections of this process."""

    protocol = Channel  # type: ignore[assignment]  # Twisted's default also negotiates HTTP/2, which needs TLS
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
