"""A server on loopback that answers requests with given pages, or passes them on to the simulated platform."""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.http_server import Handler, served
from tests.refusals.log import LABEL

STATIC = "default-src 'none'; style-src 'unsafe-inline'"
"""Keeps a browser from running the scripts of a recorded page, which would send requests to the real platform."""
TOKENS = frozenset({"guest_token"})
"""Sources without which other sources cannot be requested."""


@dataclass(frozen=True)
class Page:
    """A response to replay: to the requests of a target for a source."""

    source: str
    body: bytes
    status: int = 200
    others: int = 500
    """The status of the responses to the target's requests for other sources. 200: those of the simulated platform."""


@dataclass
class Replay:
    """The pages by target, and the numbers of responses."""

    pages: Mapping[str, Page]
    sandbox: str
    """The origin of the simulated platform."""
    origin: str = ""
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Target and source -> number of responses. Those after a redirect are not counted."""


@contextmanager
def replaying(pages: Mapping[str, Page], sandbox: str) -> Iterator[Replay]:
    """Run a server that answers the requests of the targets ``pages``. ``sandbox``: gets all other requests."""
    replay = Replay(pages, sandbox)

    class Answering(Handler):
        protocol_version = "HTTP/1.0"  # a request's body is read only if the request is passed on

        def do_GET(self) -> None:  # noqa: N802  # http.server's name
            answer(self, replay)

        do_POST = do_GET  # noqa: N815  # the name that http.server calls

    with served(Answering) as replay.origin:
        yield replay


def answer(handler: Handler, replay: Replay) -> None:
    """Answer a request with its target's page, with the status of other sources, or as the simulated platform does."""
    name, source, is_redirected = label_of(handler)
    page = replay.pages.get(name)
    status: int
    if page is not None and page.source == source:
        is_json = page.body.lstrip()[:1] in {b"{", b"["}
        kind = "application/json" if is_json else "text/html; charset=utf-8"
        headers = {"Content-Type": kind, "Content-Security-Policy": STATIC}
        status, body = page.status, page.body
    elif page is not None and page.others != 200 and source not in TOKENS:
        status, headers, body = page.others, {}, b"no page"
    else:
        try:
            status, headers, body = pass_on(handler, replay)
        except (OSError, http.client.HTTPException):  # the simulated platform closes the connection, or never answers
            handler.close_connection = True
            return
    replay.sent[name, source] += not is_redirected
    with suppress(OSError):  # the crawl does not wait any more
        handler.answer(body, status, headers)


def label_of(handler: Handler) -> tuple[str, str, bool]:
    """Return the target and the source of a request, and whether it follows a redirect.

    A browser sends no label: the search's words are the target.
    """
    if label := handler.headers.get(LABEL):
        name, source, redirected = label.split("|")
        return name, source, bool(redirected)
    url = urlsplit(handler.path)
    query = parse_qs(url.query)
    words = (query.get("q") or query.get("keyword") or [""])[0]
    return words, "search" if url.path.startswith("/api/") else "search page", False


def pass_on(handler: Handler, replay: Replay) -> tuple[int, dict[str, str], bytes]:
    """Return the response of the simulated platform to a request: its status, headers and body."""
    given = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    connection = http.client.HTTPConnection(urlsplit(replay.sandbox).netloc, timeout=300)
    own, other = str(urlsplit(replay.origin).port), str(urlsplit(replay.sandbox).port)
    headers = {name: value for name, value in handler.headers.items() if name not in {"Accept-Encoding", LABEL}}
    headers["Host"] = headers["Host"].replace(own, other)
    try:
        connection.request(handler.command, handler.path, given, headers)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    kept = {
        name: value.replace(replay.sandbox, replay.origin)
        for name, value in response.getheaders()
        if name.lower() not in {"transfer-encoding", "connection", "content-length"}
    }
    # The simulated page loads its script from another host name with the same port.
    return response.status, kept, body.replace(f"localhost:{other}".encode(), f"localhost:{own}".encode())
