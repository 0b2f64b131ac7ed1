"""Limits on connections, on requests that have not arrived completely, and on responses that are not read.

Twisted limits the headers of a request (500 headers, 16 KiB) and closes idle connections. This module adds time limits
for the arrival of a request and for reading its response, maximum numbers of connections, the checks of HTTP/1.1 that
Twisted leaves out, and error envelopes for requests that are refused early.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.server import Request, Site

from crawler.errors import ExpectationFailed, InvalidRequest, Overloaded, PayloadTooLarge, ScrapeError
from crawler.registry import scrapers
from crawler.service.calls.envelope import Answer, Call, failure, raw_bytes
from crawler.service.http.cors import Cors
from crawler.service.route import MAX_BODY_BYTES, SCRAPERS, headers_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from twisted.internet.interfaces import IAddress, IDelayedCall
    from twisted.web.resource import Resource

    from crawler.service.http.addresses import Addresses

IDLE_SECONDS = 60
"""Seconds after which an idle connection is closed."""

ARRIVAL_SECONDS = 15.0
"""If a request takes more seconds than this to arrive, the connection is closed."""

UPLOAD_SECONDS = 300.0
"""The limit in seconds for the arrival of an upload, which contains the targets of a job."""
UPLOADS = b"/v1/jobs"
"""The path to which targets of jobs are uploaded."""

UNREAD_SECONDS = 30.0
"""If a client does not read enough of a response for this many seconds, the connection is closed."""

LINGER_SECONDS = 1.0
"""Seconds for which a client can still read the response after its request was refused early."""

MALFORMED_REQUEST = InvalidRequest("Malformed HTTP request, or its headers are too large.")
ONE_HOST = InvalidRequest("Send exactly one Host header.")
UNKNOWN_EXPECTATION = ExpectationFailed("The header Expect may only be 100-continue.")

ABSOLUTE_FORM = re.compile(rb"^https?://[^/?#]*", re.IGNORECASE)
"""Matches scheme and host of a request target that is a whole URL."""

LONG_LENGTH = re.compile(rb"content-length:\s*\S.{17,}\S", re.IGNORECASE | re.DOTALL)
"""Matches a Content-Length header of more than 18 digits: ``int()`` raises for thousands of digits."""


class CappedRequest(Request):
    """A request whose body is refused once its declared or received size is over the limit."""

    channel: Channel
    is_disconnected = False
    """Whether the client has disconnected before the response was complete."""
    counted: dict[str, str] | None = None
    """The headers about the key's rate limit, if the request was counted before its body was received."""

    def gotLength(self, length: int | None) -> None:
        self._limit = self.channel.max_body
        # Twisted keeps a body of a known, small length in memory, and writes others to a temporary file.
        super().gotLength(length if self._limit > MAX_BODY_BYTES else min(length or 0, MAX_BODY_BYTES))
        self._received = 0
        if length is not None and length > self._limit:
            self.channel.refuse(_too_large(self._limit))

    def handleContentChunk(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._limit:
            self.channel.refuse(_too_large(self._limit))
        if not self.channel.refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Pass the request to Twisted. Refuse an HTTP/1.1 request that lacks a Host header or has several (RFC 9112).

        ``path`` may be a whole URL. The host in the URL is ignored, as is the Host header: the service has only one
        site.
        """
        if version != b"HTTP/1.0" and len(self.requestHeaders.getRawHeaders(b"Host", [])) != 1:
            self.channel.refuse(ONE_HOST)
        if not self.channel.refused:
            super().requestReceived(command, self.channel.target or b"/", version)

    def connectionLost(self, reason: Failure) -> None:
        self.is_disconnected = True
        super().connectionLost(reason)

    def abort(self) -> None:
        """Close the connection immediately, in the middle of a response."""
        if not self.is_disconnected:
            cast("Any", self.channel).forceAbortClient()

    def _handleStar(self) -> None:  # noqa: N802  # Twisted's own response has no envelope
        self.render(cast("Any", self.site).resource)


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is too large: at most {limit} bytes are accepted.")


class Channel(HTTPChannel):
    """A connection that is closed when a request does not arrive in time, or a response is not read in time.

    Pipelined requests are answered one at a time: the next one is parsed after the client has read enough of the last
    response. Otherwise a client that sends many requests and reads nothing would fill the memory with responses.
    """

    site: EdgeSite
    refused = False
    max_body = MAX_BODY_BYTES
    """Maximum bytes of the body of the request that is arriving."""
    peer: str | None = None
    """The address of the client, or None if the connection is not over IP."""
    _arrival_timer: IDelayedCall | None = None
    _unread_timer: IDelayedCall | None = None
    _is_full = False
    """Whether the transport's buffer is full, because the client has not read enough of the response."""
    _is_answering = False
    """Whether a complete request has arrived whose response is not complete, or is not read completely."""
    _free_place: Callable[[], None] | None = None
    """Frees the place of the arriving upload, once it has one."""
    _admission: asyncio.Task[None] | None = None
    """The task that checks the arriving upload before its body is received. None: no upload is arriving."""
    _must_continue = False
    """Whether the client waits for the status 100 to send the body."""
    _method = b""
    target = b""
    """The path and query of the request that is arriving."""
    _uri_path = b""
    _answered: Request | None = None
    """A request whose response is complete, but not yet read."""

    def connectionMade(self) -> None:
        super().connectionMade()
        self.peer = getattr(cast("Any", self.transport).getPeer(), "host", None)
        self.site.connected(self.peer)

    def dataReceived(self, data: bytes) -> None:
        """Parse received bytes. If the request is not complete then, start its arrival timer."""
        if self.refused:
            return
        super().dataReceived(data)
        if not self._is_answering and self._arrival_timer is None and not self.refused:
            self._arrival_timer = self.callLater(ARRIVAL_SECONDS, self._abort)

    # Responses that are not read. The transport calls pauseProducing() when its buffer is full, and resumeProducing()
    # when the buffer is empty again.

    def pauseProducing(self) -> None:  # noqa: N802  # Twisted's
        self._is_full = True
        if self._unread_timer is None:
            self._unread_timer = self.callLater(UNREAD_SECONDS, self._abort)
        super().pauseProducing()

    def resumeProducing(self) -> None:  # noqa: N802  # Twisted's
        self._is_full = False
        _stop(self._unread_timer)
        self._unread_timer = None
        super().resumeProducing()
        answered, self._answered = self._answered, None
        if answered is not None:
            self.requestDone(answered)

    def requestDone(self, request: Request) -> None:  # noqa: N802  # Twisted's
        """Continue with the next request, but not before the transport's buffer has room for its response."""
        if self._is_full:
            self._answered = request
        else:
            self._is_answering = False
            super().requestDone(request)

    # Requests

    def lineReceived(self, line: bytes) -> None:
        """Refuse a Content-Length of too many digits, and a header that is folded over two lines (RFC 9112)."""
        if line[:1] in {b" ", b"\t"} or LONG_LENGTH.match(line):
            self.refuse(MALFORMED_REQUEST)
        if self.refused:
            return
        arrived = len(self.requests)
        super().lineReceived(line)
        if len(self.requests) > arrived and not self.refused:  # the line was the first of a request
            self._method, target = line.split()[:2]
            self.target = ABSOLUTE_FORM.sub(b"", target, count=1)
            self._uri_path = self.target.partition(b"?")[0]

    def allHeadersReceived(self) -> None:
        headers = self.requests[-1].requestHeaders
        for expected in headers.getRawHeaders(b"Expect", []):
            if expected.lower() != b"100-continue":
                self.refuse(UNKNOWN_EXPECTATION)
        # An upload of a job's targets may be larger and take longer than other bodies, if the request has an API key.
        limits = self.site.upload_limits
        is_upload = (self._method, self._uri_path) == (b"POST", UPLOADS) and headers.hasHeader(b"X-API-Key")
        if limits is not None and is_upload and not self.refused:
            self.max_body = limits.max_bytes
            self._must_continue = False
            self._admission = asyncio.ensure_future(self._begin_upload(limits, self.requests[-1]))
            cast("Any", self.transport).pauseProducing()
        super().allHeadersReceived()

    async def _begin_upload(self, limits: Uploads, request: Request) -> None:
        """Receive the body if the headers are valid.

        A client without a valid key must not take the place of an upload.
        """
        admitted = await limits.admit(request, self.target)
        if not isinstance(admitted, Answer):
            self._free_place = admitted
        elif not self.refused:
            self._refuse(admitted)
        if self.refused:  # also if the declared length is too large
            return
        _stop(self._arrival_timer)
        self._arrival_timer = self.callLater(UPLOAD_SECONDS, self._abort)
        if self._must_continue:
            super()._send100Continue()
        cast("Any", self.transport).resumeProducing()

    def _end_upload(self) -> None:
        """End the upload, if there is one: its body has arrived, or the client has disconnected."""
        admission, self._admission = self._admission, None
        self.max_body = MAX_BODY_BYTES
        if self._free_place is not None:
            self._free_place()
            self._free_place = None
        if admission is not None and not admission.done():
            admission.cancel()
            cast("Any", self.transport).resumeProducing()

    def allContentReceived(self) -> None:
        if self._admission is not None:
            self._end_upload()
        if self._arrival_timer is not None:
            _stop(self._arrival_timer)
            self._arrival_timer = None
        self._is_answering = True
        super().allContentReceived()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        _stop(self._arrival_timer)
        _stop(self._unread_timer)
        self._answered = None
        self._end_upload()
        self.site.disconnected(self.peer)
        super().connectionLost(reason)

    def _abort(self) -> None:
        """Close the connection: a request did not arrive in time, or a response was not read in time."""
        cast("Any", self.transport).abortConnection()

    def refuse(self, error: ScrapeError) -> None:
        """Respond before the request is complete, stop reading, and close the connection."""
        if not self.refused:
            call = Call(service_url=self.site.service_url, scraper=scraper_of(self._uri_path))
            self._refuse(failure(call, error))

    def _refuse(self, answer: Answer) -> None:
        sent = headers_of(self.requests[-1]) if self.requests else {}
        headers = answer.headers | self.site.cors.headers(self._uri_path.decode("latin-1"), sent)
        self.refused = True
        self.paused = True  # bytes after the refused request are not parsed
        _stop(self._arrival_timer)
        transport = cast("Any", self.transport)
        transport.write(raw_bytes(replace(answer, headers=headers)))
        transport.unregisterProducer()  # otherwise the producer would resume reading
        transport.pauseProducing()
        transport.loseWriteConnection()
        self.callLater(LINGER_SECONDS, transport.abortConnection)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(MALFORMED_REQUEST)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802  # Twisted's method sends a status line without an envelope
        self.refuse(MALFORMED_REQUEST)

    def _send100Continue(self) -> None:  # noqa: N802  # Twisted's
        self._must_continue = self._admission is not None
        if not self.refused and not self._must_continue:
            super()._send100Continue()


def _stop(timer: IDelayedCall | None) -> None:
    """Stop a timer, if there is one that has not expired."""
    if timer is not None and timer.active():
        timer.cancel()


def scraper_of(path: bytes) -> str:
    """Return the name of the scraper in the path of a request, "" for other paths.

    >>> scraper_of(b"/v1/scrapers/microblog-profile-v4")
    'microblog-profile'
    """
    prefix, _, name = path.decode("latin-1").rpartition("/")
    scraper = scrapers().get(name) if prefix == SCRAPERS else None
    return scraper.name if scraper else ""


class _RefusedConnection(Protocol):
    """A connection above the maximum number: the response is ``OVERLOADED``, and the connection is closed."""

    def __init__(self, message: str, service_url: str) -> None:
        self.message = message
        self.service_url = service_url

    def connectionMade(self) -> None:
        transport = cast("Any", self.transport)
        error = Overloaded(self.message, retry_after=5)
        transport.write(raw_bytes(failure(Call(service_url=self.service_url), error)))
        transport.loseConnection()


@dataclass(frozen=True)
class Uploads:
    """The limits of uploads."""

    max_bytes: int
    """The setting ``SERVICE_MAX_JOB_BYTES``."""
    admit: Callable[[Request, bytes], Awaitable[Answer | Callable[[], None]]]
    """``Api.admit()``, or a function with the same meaning."""


class EdgeSite(Site):
    """An HTTP site that limits the number of open connections: all of the site's, and those of each client address."""

    protocol = Channel  # type: ignore[assignment]  # replaces Twisted's default, which negotiates HTTP/2 over TLS
    noisy = False

    def __init__(  # noqa: PLR0913  # the limits, and what early refusals contain
        self,
        resource: Resource,
        max_connections: int,
        addresses: Addresses,
        service_url: str = "",
        uploads: Uploads | None = None,
        *,
        cors: Cors | None = None,
    ) -> None:
        """``uploads``: None if bodies of more than ``MAX_BODY_BYTES`` are refused.

        ``cors``: which web pages may read early refusals, by default none.
        """
        # The endpoint accepts no forms, and parsing them takes memory.
        super().__init__(resource, requestFactory=CappedRequest, timeout=IDLE_SECONDS, parsePOSTFormSubmission=False)
        self.max_connections = max_connections
        self.addresses = addresses
        self.service_url = service_url
        self.connections = 0
        self.upload_limits = uploads
        self.cors = cors or Cors()

    def startFactory(self) -> None:  # noqa: N802  # Twisted's
        """Open no access log: ``resources.py`` logs each call."""

    def connected(self, peer: str | None) -> None:
        """Count an open connection."""
        self.connections += 1
        if peer is not None:
            self.addresses.connected(peer)

    def disconnected(self, peer: str | None) -> None:
        """Count a connection as closed."""
        self.connections -= 1
        if peer is not None:
            self.addresses.disconnected(peer)

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: N802  # Twisted's
        peer = getattr(addr, "host", None)
        if self.connections >= self.max_connections:
            return _RefusedConnection("Too many connections are open.", self.service_url)
        if peer is not None and not self.addresses.may_connect(peer):
            return _RefusedConnection("Too many connections from this address are open.", self.service_url)
        return super().buildProtocol(addr)
