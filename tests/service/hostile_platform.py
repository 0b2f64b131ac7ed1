"""A hostile platform in the test process."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from tests.http_server import Handler, served

MEGABYTE = 1024 * 1024


@dataclass
class Served:
    """A running server: its origin, and the paths that were requested."""

    origin: str = ""
    requested_paths: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])


@cache
def harmful_responses() -> dict[int, tuple[dict[str, str], bytes]]:
    """Return the headers and the bodies of harmful responses by their numbers."""
    truncated = gzip.compress(b"<html>")[:12]
    bomb = gzip.compress(b" " * (64 * MEGABYTE))
    return {
        1001: ({"Content-Encoding": "gzip", "Content-Type": "text/html"}, bomb),
        1002: ({"Content-Length": str(10**12)}, b"<html>"),  # over the limit
        1003: ({"Content-Encoding": "gzip", "Content-Length": str(len(truncated))}, truncated),
        1004: ({"Content-Type": "text/html; charset=\xff", "Content-Length": "6"}, b"<html>"),  # not UTF-8
    }


class _Harmful(Handler):
    """The number in the path selects the response: below 1,000, a redirect to ``redirects[number]``."""

    protocol_version = "HTTP/1.0"  # ends a body without a length
    served: ClassVar[Served]
    redirects: ClassVar[list[str]]

    def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:  # noqa: N802  # the name of http.server
        self.served.requested_paths.append(self.path)
        number = int(self.path.partition("?")[0].rpartition("/")[2])
        if number < 1000:
            self.send(302, {"Location": self.redirects[number]}, b"")
        elif number == 1000:  # too large, without Content-Length
            self.send(200, {}, b"")
            with suppress(OSError):  # the client closes the connection early
                for _ in range(64):
                    self.wfile.write(b" " * MEGABYTE)
        elif number in harmful_responses():
            self.send(200, *harmful_responses()[number])
        elif number == 1005:  # endless headers
            with suppress(OSError):  # the client closes the connection early
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                for line in range(10_000_000):
                    self.wfile.write(b"X-%d: y\r\n" % line)
                self.served.requested_paths.append("all headers were read")


@contextmanager
def hostile_platform(redirects: list[str]) -> Iterator[Served]:
    """Run a hostile platform. Without redirects: a host that must not be requested."""
    found = Served()
    with served(type("Own", (_Harmful,), {"served": found, "redirects": redirects})) as found.origin:
        yield found
