"""The connection of a client: limits on the arrival of its requests, and on the time in which it reads the responses.

Twisted parses HTTP/1.1 and limits the head of a request (500 headers, 16 KiB). This module adds the limits that hold
also without a reverse proxy, the checks of RFC 9112 that Twisted leaves out, and an error envelope for each refusal.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.protocol import connectionDone
from twisted.web.http import HTTPChannel
from twisted.web.server import Request, Site

from crawler.errors import ExpectationFailed, InvalidRequest, Overloaded, PayloadTooLarge, ScrapeError
from crawler.registry import scrapers
from crawler.service.envelope import Answer, Call, failure, raw_bytes
from crawler.service.route import MAX_BODY_BYTES, SCRAPERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from twisted.python.failure import Failure
    from twisted.web.http_headers import Headers
    from twisted.web.resource import Resource

ARRIVAL_SECONDS = 15.0
"""Seconds in which a request must arrive completely: after the connection was opened, or after the last response."""
UPLOAD_SECONDS = 300.0
"""The same for an upload of a job's targets, after its headers were accepted."""
UNREAD_SECONDS = 15.0
"""Seconds in which a client must read the part of a response that the transport's buffer holds, about 64 KiB."""
LINGER_SECONDS = 1.0
"""Seconds for which a client can still read the response after its request was refused before it was complete."""

MALFORMED_LINE = re.compile(rb"[ \t]|content-length:\s*\d{19}", re.IGNORECASE)
"""Matches the lines of a head that Twisted would accept or fail for: a header that is folded over two lines, and a
Content-Length of more than 18 digits, because ``int()`` raises for thousands of digits."""
URL_TARGET = re.compile(rb" https?://[^ /?#]+/?", re.IGNORECASE)
"""Matches scheme and host of a request target that is a whole URL, which RFC 9112 requires a server to accept."""

MALFORMED_REQUEST = InvalidRequest("Malformed HTTP request, or its headers are too large.")
ONE_HOST = InvalidRequest("Send exactly one Host header.")
LATE_REQUEST = InvalidRequest("The request did not arrive completely in time.")
UNKNOWN_EXPECTATION = ExpectationFailed("The header Expect may only be 100-continue.")


@dataclass(frozen=True)
class BodyLimits:
    """What a route allows of the body of a request."""

    max_bytes: int = MAX_BODY_BYTES
    seconds: float = ARRIVAL_SECONDS
    """Seconds in which the body must arrive after ``admit``."""
    admit: Callable[[Request, bytes], Awaitable[Answer | Callable[[], None]]] | None = None
    """Checks the headers and the query of a request before its body is read. Returns the response
    that refuses the request, or a function to be called when the body has arrived. None: there is no such check."""


USUAL_LIMITS = BodyLimits()
"""The limits of all routes but uploads."""


class CappedRequest(Request):
    """A request whose body is refused when it is longer than its route allows."""

    channel: Channel
    counted: dict[str, str] | None = None
    """The headers about the key's rate limit, if the request was counted before its body was received."""

    def gotLength(self, length: int | None) -> None:
        # Twisted keeps a body of a known, small length in memory, and writes others to a temporary file.
        is_upload = self.channel.limits.max_bytes > MAX_BODY_BYTES
        super().gotLength(length if is_upload else min(length or 0, MAX_BODY_BYTES))

    def handleContentChunk(self, data: bytes) -> None:
        assert self.content is not None
        if self.content.tell() + len(data) > self.channel.limits.max_bytes:
            self.channel.refuse_length()
        else:
            super().handleContentChunk(data)


class Channel(HTTPChannel):
    """A connection that is closed when a request does not arrive in time, or a response is not read in time.

    Twisted's timeout of a connection is the clock for both. Pipelined requests are answered one at a time: the next one
    is parsed after the client has read enough of the last response. Otherwise a client that sends many requests and
    reads nothing would fill the memory with responses.
    """

    site: EdgeSite
    abortTimeout = LINGER_SECONDS  # type: ignore[assignment]  # noqa: N815  # Twisted's, for callLater()
    limits = USUAL_LIMITS
    """The limits of the request that is arriving."""
    is_refused = False
    """Whether a request was refused before it was complete: nothing more is read."""
    _method = _route = _query = _protocol = b""
    """The parts of the first line of the request that is arriving."""
    _is_full = False
    """Whether the transport's buffer is full, because the client has not read enough of the response."""
    _unread: Request | None = None
    """A request whose response is complete, but not yet read."""
    _admission: asyncio.Task[None] | None = None
    """The task that checks a request before its body is read."""
    _release: Callable[[], None] | None = None
    """To be called when the body of an admitted request has arrived."""

    def connectionMade(self) -> None:
        super().connectionMade()
        self.site.connections += 1
        if self.site.connections > self.site.max_connections:
            self.refuse(Overloaded("Too many connections are open.", retry_after=5))
            self.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.site.connections -= 1
        self._end_admission()
        super().connectionLost(reason)

    # The clock

    def resetTimeout(self) -> None:  # noqa: N802  # Twisted's
        """Do nothing: bytes that arrive must not extend the time in which a request must be complete."""

    def timeoutConnection(self) -> None:  # noqa: N802  # Twisted's
        if self.requests and not self._is_full and not self.is_refused:
            self.refuse(LATE_REQUEST)
        else:
            super().timeoutConnection()

    # Responses that are not read. The transport calls pauseProducing() when its buffer is full, and resumeProducing()
    # when the buffer is empty again.

    def pauseProducing(self) -> None:  # noqa: N802  # Twisted's
        if not self._is_full:
            self._is_full = True
            self.setTimeout(UNREAD_SECONDS)
        super().pauseProducing()

    def resumeProducing(self) -> None:  # noqa: N802  # Twisted's
        self._is_full = False
        self.setTimeout(None)
        super().resumeProducing()
        unread, self._unread = self._unread, None
        if unread is not None:
            self.requestDone(unread)

    def requestDone(self, request: Request) -> None:  # noqa: N802  # Twisted's
        """Continue with the next request, but not before the transport's buffer has room for its response."""
        if self._is_full:
            self._unread = request
            return
        if not self.persistent:  # the connection is closed when the rest of the response is read
            self.setTimeout(UNREAD_SECONDS)
        super().requestDone(request)

    # Requests

    def checkPersistence(self, request: Request, version: bytes) -> bool:  # noqa: N802  # Twisted's
        if self.site.is_closing:
            request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
            return False
        return bool(super().checkPersistence(request, version))

    def lineReceived(self, line: bytes) -> None:
        is_first = not self.requests
        if MALFORMED_LINE.match(line):
            self.refuse(MALFORMED_REQUEST)
            return
        line = URL_TARGET.sub(b" /", line, count=1) if is_first else line
        super().lineReceived(line)
        if is_first and self.requests and not self.is_refused:
            self._method, target, self._protocol = line.split(b" ")
            self._route, _, self._query = target.partition(b"?")

    def allHeadersReceived(self) -> None:
        request = self.requests[-1]
        headers: Headers = request.requestHeaders
        if fault := self._fault(headers):
            self.refuse(fault)
            return
        is_waiting = headers.hasHeader(b"Expect")
        headers.removeHeader(b"Expect")  # Twisted would ask for the body before the request is admitted
        self.limits = self.site.limits.get((self._method, self._route), USUAL_LIMITS)
        super().allHeadersReceived()
        if (self.length or 0) > self.limits.max_bytes:
            self.refuse_length()
        if self.limits.admit is not None and not self.is_refused:
            cast("Any", self.transport).pauseProducing()
            self._admission = asyncio.ensure_future(self._admit(self.limits.admit, request, is_waiting=is_waiting))
        elif is_waiting and not self.is_refused:
            self._continue()

    async def _admit(
        self,
        admit: Callable[[Request, bytes], Awaitable[Answer | Callable[[], None]]],
        request: Request,
        *,
        is_waiting: bool,
    ) -> None:
        """Read the body if the headers are valid: a client without a key must not take the place of an upload."""
        admitted = await admit(request, self._query)
        if isinstance(admitted, Answer):
            self._send(admitted)
        elif self.is_refused:  # the request was late meanwhile
            admitted()
        else:
            self._release = admitted
            self.setTimeout(self.limits.seconds)
            if is_waiting:
                self._continue()
            cast("Any", self.transport).resumeProducing()

    def _end_admission(self) -> None:
        """The body has arrived, or the client has disconnected."""
        admission, self._admission = self._admission, None
        release, self._release = self._release, None
        if release is not None:
            release()
        elif admission is not None and not admission.done():
            admission.cancel()
            cast("Any", self.transport).resumeProducing()

    def allContentReceived(self) -> None:
        if not self.is_refused:
            if self._admission is not None:
                self._end_admission()
            self.setTimeout(self.site.timeOut)  # Twisted stops this clock, and starts it again after the response
            super().allContentReceived()

    def refuse_length(self) -> None:
        """Refuse the request, because its body is longer than its route allows."""
        self.refuse(PayloadTooLarge(f"The body is too large: at most {self.limits.max_bytes} bytes are accepted."))

    def _fault(self, headers: Headers) -> ScrapeError | None:
        """Return what RFC 9112 forbids in the head of the request that is arriving."""
        hosts = headers.getRawHeaders(b"Host", [])
        if len(hosts) != 1 and (hosts or self._protocol == b"HTTP/1.1"):
            return ONE_HOST
        codings = list(map(bytes.lower, headers.getRawHeaders(b"Transfer-Encoding", [])))
        if not self._route.startswith(b"/") or codings not in ([], [b"chunked"]):
            return MALFORMED_REQUEST
        if not {b"100-continue"}.issuperset(map(bytes.lower, headers.getRawHeaders(b"Expect", []))):
            return UNKNOWN_EXPECTATION
        return None

    def _continue(self) -> None:
        """Ask the client for the body, for which it waits."""
        self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # Refusals

    def refuse(self, error: ScrapeError) -> None:
        """Respond before the request is complete, stop reading, and close the connection."""
        if not self.is_refused:
            scraper = scraper_of(self._route.decode("latin-1"))
            self._send(failure(Call(service_url=self.site.service_url, scraper=scraper), error))

    def _send(self, answer: Answer) -> None:
        if self.is_refused:
            return
        self.is_refused = True
        self.paused = True  # bytes after the refused request are not parsed
        transport = cast("Any", self.transport)
        transport.write(raw_bytes(answer))
        transport.unregisterProducer()  # otherwise the producer would resume reading
        transport.pauseProducing()
        transport.loseWriteConnection()
        self.setTimeout(LINGER_SECONDS)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(MALFORMED_REQUEST)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802  # Twisted's response has no envelope
        self.refuse(MALFORMED_REQUEST)


def scraper_of(path: str) -> str:
    """Return the name of the scraper in the path of a request, "" for other paths.

    >>> scraper_of("/v1/scrapers/microblog-profile-v4")
    'microblog-profile'
    """
    prefix, _, name = path.rpartition("/")
    scraper = scrapers().get(name) if prefix == SCRAPERS else None
    return scraper.name if scraper else ""


class EdgeSite(Site):
    """An HTTP site with a maximum number of open connections. Further ones get ``OVERLOADED`` and are closed."""

    protocol = Channel  # type: ignore[assignment]  # replaces Twisted's default, which negotiates HTTP/2 over TLS
    noisy = False

    def __init__(
        self,
        resource: Resource,
        max_connections: int,
        limits: Mapping[tuple[bytes, bytes], BodyLimits] = MappingProxyType({}),
        service_url: str = "",
    ) -> None:
        """``limits``: of the bodies of uploads, by method and path. ``service_url``: the setting ``SERVICE_URL``."""
        # The endpoint accepts no forms, and parsing them takes memory.
        super().__init__(resource, requestFactory=CappedRequest, timeout=ARRIVAL_SECONDS, parsePOSTFormSubmission=False)
        self.max_connections = max_connections
        self.limits = limits
        self.service_url = service_url
        self.connections = 0
        self.is_closing = False
        """Whether a connection is closed after its next response, so that its client connects to another process."""

    def startFactory(self) -> None:  # noqa: N802  # Twisted's
        """Open no access log: ``app.py`` logs each call."""
