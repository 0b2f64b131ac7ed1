"""Limits for opening a connection: its duration, and the size of a proxy's response to ``CONNECT``.

Scrapy 2.19 has no limit for either. A proxy that never responds would use up the timeout of the download. Headers that
never end would fill the memory, and take CPU time that grows with the square of the received bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import TimeoutError as ConnectTimeoutError
from twisted.internet.interfaces import IProtocolFactory, IStreamClientEndpoint
from twisted.python.failure import Failure
from zope.interface import implementer

from crawler.downloads.response_heads import BoundedHeads
from crawler.downloads.tunnel import ProxyError

MAX_CONNECT_BYTES = 64 * 1024
"""Maximum bytes of the status line and headers of a proxy's response to ``CONNECT``. Real proxies send less than 1 KiB.
"""
END = b"\r\n\r\n"


@implementer(IStreamClientEndpoint)
class LimitedEndpoint:
    """Wraps an endpoint: aborts a connection that is not open after ``seconds``, and limits its response headers."""

    def __init__(self, endpoint: Any, seconds: float) -> None:
        self._endpoint = endpoint
        self._seconds = seconds
        self._is_tunnel = hasattr(endpoint, "processProxyResponse")

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:  # noqa: N803  # Twisted's
        """Open the connection.

        Raises:
            ProxyError: the proxy is too slow, closes the connection or sends too many bytes before the tunnel is open.
            ConnectTimeoutError: the connection could not be opened in time.
        """
        from twisted.internet import reactor  # noqa: PLC0415  # the import installs a reactor

        heads = BoundedHeads(protocolFactory)

        def fail(why: str) -> None:
            if not opened.called:
                opened.errback(ProxyError(why))

        if self._is_tunnel:  # the endpoint calls it with the response's bytes
            self._endpoint.processProxyResponse = limited_head(self._endpoint.processProxyResponse, fail)
            heads.on_lost = lambda: fail("the proxy closed the connection")
        opened: Deferred[Any] = self._endpoint.connect(heads)

        def timed_out(_: object, seconds: float) -> None:
            why = f"the proxy did not open a tunnel within {seconds:g} s"
            raise ProxyError(why) if self._is_tunnel else ConnectTimeoutError(string=f"no connection in {seconds:g} s")

        def close(failure: Failure) -> Failure:
            heads.abort()
            return failure

        opened.addTimeout(self._seconds, reactor, timed_out)
        return opened.addErrback(close)


def limited_head(pass_on: Callable[[bytes], None], fail: Callable[[str], None]) -> Callable[[bytes], None]:
    """Return a function that collects received bytes, and passes them on when all headers have been received."""
    head = bytearray()

    def receive(data: bytes) -> None:
        searched = max(0, len(head) - len(END) + 1)
        head.extend(data)
        end = head.find(END, searched)
        if end > MAX_CONNECT_BYTES or (end < 0 and len(head) > MAX_CONNECT_BYTES):
            fail(f"the head of the proxy's response is larger than {MAX_CONNECT_BYTES} bytes")
        elif end >= 0:
            pass_on(bytes(head))

    return receive
