"""The faults that every simulated platform has. Each site defines which of its targets select which fault."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from crawler.sandbox.transport import send, start

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from twisted.internet.interfaces import IReactorTime
    from twisted.web.server import Request

    from crawler.sandbox.protocol import FakeRequest, FakeResponse, FakeSite
    from crawler.sandbox.renames import Renames

RequestCounts = Counter[str]
"""How often each request to a target with a fault was received. A temporary fault (``flaky``, ``slow-once``) affects
only the first of equal requests."""


SLOW_SECONDS = 0.5
"""The delay of a slow response in seconds."""


@dataclass(frozen=True)
class Fault:
    """A fault: its description, and the code of the outcome that it must lead to, ``OK`` for a harmless fault."""

    code: str
    about: str


def described(faults: Mapping[str, Fault], params: Callable[[str], dict[str, str]]) -> dict[str, dict[str, Any]]:
    """Return the faults for a site's catalogue. ``params`` returns the params of the target that selects a fault."""
    return {name: {"params": params(name), "code": fault.code, "about": fault.about} for name, fault in faults.items()}


def target(about: str, **params: str) -> dict[str, Any]:
    """Return a target for a site's catalogue."""
    return {"params": params, "about": about}


_NUMBERED = re.compile(r"(.+)[-_]\d+", re.ASCII)


def unnumbered(name: str, known: Container[str]) -> str:
    """Return a fault's name from a name with a number, so that many targets can have the same fault.

    >>> unnumbered("gone-17", {"gone"}), unnumbered("gone", {"gone"}), unnumbered("whales-17", {"gone"})
    ('gone', 'gone', 'whales-17')
    """
    found = _NUMBERED.fullmatch(name)
    return found[1] if found and name not in known and found[1] in known else name


COMMON = {
    "gone": Fault("TARGET_NOT_FOUND", "404 with an error page"),
    "rate-limited": Fault("UPSTREAM_RATE_LIMITED", "429 with Retry-After"),
    "forbidden": Fault("UPSTREAM_BLOCKED", "403"),
    "server-error": Fault("UPSTREAM_ERROR", "500 for every request"),
    "bad-gateway": Fault("UPSTREAM_ERROR", "502 for every request"),
    "unavailable": Fault("UPSTREAM_ERROR", "503 for every request"),
    "flaky": Fault("OK", "503 for the first request only"),
    "empty-body": Fault("UPSTREAM_BLOCKED", "200 without a body"),
    "not-html": Fault("EXTRACTION_FAILED", "binary data with the content type of HTML"),
    "truncated": Fault("UPSTREAM_ERROR", "the connection closes in the middle of the page"),
    "foreign-redirect": Fault("UPSTREAM_BLOCKED", "a redirect to another host"),
    "slow": Fault("OK", "the page, after a delay"),
    "slow-once": Fault("OK", "the page, after a delay for the first request only"),
    "hang": Fault("UPSTREAM_TIMEOUT", "the request never gets a response"),
    "reset": Fault("UPSTREAM_ERROR", "the connection is reset"),
    "browser-only": Fault(
        "UPSTREAM_BLOCKED", "403 with a page whose script, from another origin, unlocks the page in a browser"
    ),
}

UNLOCK_SCRIPT = "/__door__.js"
"""Path of the script that unlocks a page with the fault ``browser-only``. The script is served only on the host
``localhost``."""


NAVIGATION = {"accept-language", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "upgrade-insecure-requests"}
"""The headers of each navigation of a browser. Platforms that demand them do not state which of them they check."""


def is_navigation(request: FakeRequest) -> bool:
    """Whether a request has the headers with which a browser requests a page."""
    return request.headers.keys() >= NAVIGATION and request.headers["sec-fetch-mode"] == "navigate"


def respond(
    http_request: Request, site: FakeSite, request: FakeRequest, request_counts: RequestCounts, renames: Renames
) -> None:
    """Send the response to a request, which is damaged if the request's target selects a fault."""
    name = site.fault(request)
    if name is not None:
        key = f"{request.method} {request.path} {request.args}"
        request_counts[key] += 1
        name = _fault_of_request(name, request_counts[key])
    if name == "browser-only" and f"door={_unlock_key()}" in request.headers.get("cookie", ""):
        name = None
    if request.path == UNLOCK_SCRIPT:
        send(http_request, _unlock_script(request))
    elif name == "browser-only":
        send(http_request, _locked_page(request))
    elif name is None:
        send(http_request, site.refusal(request) or renames.applied(site.page(request)))
    elif name in _ANSWERS:
        send(http_request, _ANSWERS[name])
    elif name in _CONNECTION_FAULTS:
        _CONNECTION_FAULTS[name](http_request, renames.applied(site.page(request)))
    else:
        send(http_request, site.damaged(name, request))


def respond_after(request: Request, seconds: float, answer: Callable[[], None]) -> None:
    """Call ``answer`` after a delay in seconds. If the client of ``request`` disconnects earlier, do not call it."""
    if not seconds:
        answer()
        return
    from twisted.internet import reactor  # noqa: PLC0415  # the import installs a reactor if there is none

    call = cast("IReactorTime", reactor).callLater(seconds, answer)

    def disconnected(_: object) -> None:
        if call.active():
            call.cancel()

    request.notifyFinish().addErrback(disconnected)


def _fault_of_request(name: str, number: int) -> str | None:
    """Return the fault to simulate when a request is received for the ``number``-th time, or None for no fault."""
    if name == "flaky":
        return "unavailable" if number == 1 else None
    once = name.removesuffix("-once")
    return once if once == name or number == 1 else None


def _status(code: int, **headers: str) -> FakeResponse:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return code, named, f"<html><title>{code}</title><h1>Sorry</h1></html>".encode()


def too_many_requests(seconds: int) -> FakeResponse:
    """Build the response to a request above a limit by rate, which ends in ``seconds``."""
    return _status(429, Retry_After=str(seconds))


_ANSWERS: dict[str, FakeResponse] = {
    "gone": _status(404),
    "rate-limited": too_many_requests(7),
    "forbidden": _status(403),
    "server-error": _status(500),
    "bad-gateway": _status(502),
    "unavailable": _status(503),
    "empty-body": (200, {}, b""),
    "not-html": (200, {}, bytes(range(256)) * 64),
    "foreign-redirect": (302, {"Location": "http://127.0.0.9:9/"}, b""),
}


def _locked_page(request: FakeRequest) -> FakeResponse:
    """Build the 403 page for ``browser-only``. In a browser, its script sets a cookie that unlocks the page."""
    port = request.headers.get("host", "").rpartition(":")[2]
    script = f'<script src="http://localhost:{port}{UNLOCK_SCRIPT}"></script>'
    return 403, {}, f"<html><title>One moment</title><body>One moment{script}</body></html>".encode()


def _unlock_script(request: FakeRequest) -> FakeResponse:
    """Build the script of ``browser-only``, which sets a cookie. If the ``Host`` is not ``localhost``, return a 404."""
    if not request.headers.get("host", "").startswith("localhost"):
        return _ANSWERS["gone"]
    script = (
        "let key = 1; for (let n = 0; n < 1e5; n++) key = Math.imul(key ^ n, 16777619) >>> 0;"
        "document.cookie = `door=${key};path=/`; location.reload();"
    )
    return 200, {"Content-Type": "text/javascript"}, script.encode()


@cache
def _unlock_key() -> int:
    """Return the key that the script for ``browser-only`` computes and sets as a cookie."""
    key = 1
    for number in range(100_000):
        key = ((key ^ number) * 16_777_619) & 0xFFFFFFFF
    return key


def _slow(request: Request, page: FakeResponse, *, seconds: float | None = None) -> None:
    respond_after(request, SLOW_SECONDS if seconds is None else seconds, lambda: send(request, page))


def _truncate(request: Request, page: FakeResponse) -> None:
    body = start(request, page)
    request.write(body[: len(body) // 2])
    cast("Any", request).channel.loseConnection()  # closing the raw transport would wait for its producer forever


_CONNECTION_FAULTS: dict[str, Callable[[Request, FakeResponse], object]] = {
    "slow": _slow,
    "slow-100ms": partial(_slow, seconds=0.1),
    "slow-1s": partial(_slow, seconds=1),
    "slow-3s": partial(_slow, seconds=3),
    "hang": lambda request, _: request.notifyFinish().addErrback(lambda _: None),  # the client disconnects
    "reset": lambda request, _: cast("Any", request.transport).abortConnection(),
    "truncated": _truncate,
}
"""Faults that delay, cut or drop the response, by name. These faults do not change the response's content."""
