"""Faults that every platform can have, by name: the target's name selects what happens to its request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from twisted.internet import reactor as _reactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from twisted.internet.interfaces import IReactorTime
    from twisted.web.server import Request

    from crawler.sandbox.protocol import Answer, FakeRequest, FakeSite

RequestCounts = Counter[str]
"""How often each target was asked for, for faults that pass."""


SLOW = 0.5
"""Seconds that a slow answer takes."""


@dataclass(frozen=True)
class Fault:
    """How a fault must end for whoever asked: an error code, or ``OK`` where it passes or does no harm."""

    code: str
    about: str


COMMON = {
    "gone": Fault("TARGET_NOT_FOUND", "404 with a page that says so"),
    "rate-limited": Fault("UPSTREAM_RATE_LIMITED", "429 with Retry-After"),
    "forbidden": Fault("UPSTREAM_BLOCKED", "403"),
    "server-error": Fault("UPSTREAM_ERROR", "500, for ever"),
    "bad-gateway": Fault("UPSTREAM_ERROR", "502, for ever"),
    "unavailable": Fault("UPSTREAM_ERROR", "503, for ever"),
    "flaky": Fault("OK", "503 the first time"),
    "empty-body": Fault("UPSTREAM_BLOCKED", "200 without a body"),
    "not-html": Fault("EXTRACTION_FAILED", "binary junk that calls itself HTML"),
    "truncated": Fault("UPSTREAM_ERROR", "the connection ends before the page does"),
    "foreign-redirect": Fault("UPSTREAM_BLOCKED", "a redirect to another host"),
    "slow": Fault("OK", "the page, late"),
    "slow-once": Fault("OK", "the page, late the first time"),
    "hang": Fault("UPSTREAM_TIMEOUT", "no answer ever"),
    "reset": Fault("UPSTREAM_ERROR", "the connection is reset"),
    "browser-only": Fault("UPSTREAM_BLOCKED", "403 with a page whose script, from another origin, lets a browser in"),
}

DOOR_SCRIPT = "/__door__.js"
"""The script that opens the door of ``browser-only``. It is served under another name of this machine."""


def respond(request: Request, site: FakeSite, ask: FakeRequest, request_counts: RequestCounts) -> None:
    """Answers a request: honestly, or with the fault that its target stands for."""
    name = site.fault(ask)
    if name is not None:
        key = f"{ask.method} {ask.path} {ask.args}"
        request_counts[key] += 1
        name = _now(name, request_counts[key])
    if name == "browser-only" and f"door={_door_key()}" in ask.headers.get("cookie", ""):
        name = None
    if ask.path == DOOR_SCRIPT:
        _send(request, _door_script(ask))
    elif name == "browser-only":
        _send(request, _door(ask))
    elif name is None:
        _send(request, site.page(ask))
    elif name in _ANSWERS:
        _send(request, _ANSWERS[name])
    elif name in _TRICKS:
        _TRICKS[name](request, site.page(ask))
    else:
        _send(request, site.damaged(name, ask))


def respond_after(request: Request, seconds: float, answer: Callable[[], None]) -> None:
    """Answers a request after a while, unless its client is gone by then."""
    call = cast("IReactorTime", _reactor).callLater(seconds, answer)

    def gone(_: object) -> None:
        if call.active():
            call.cancel()

    request.notifyFinish().addErrback(gone)


def _now(name: str, hit: int) -> str | None:
    """What a fault does at this hit: those that pass do it at the first."""
    if name == "flaky":
        return "unavailable" if hit == 1 else None
    once = name.removesuffix("-once")
    return once if once == name or hit == 1 else None


def _status(code: int, **headers: str) -> Answer:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return code, named, f"<html><title>{code}</title><h1>Sorry</h1></html>".encode()


_ANSWERS: dict[str, Answer] = {
    "gone": _status(404),
    "rate-limited": _status(429, Retry_After="7"),
    "forbidden": _status(403),
    "server-error": _status(500),
    "bad-gateway": _status(502),
    "unavailable": _status(503),
    "empty-body": (200, {}, b""),
    "not-html": (200, {}, bytes(range(256)) * 64),
    "foreign-redirect": (302, {"Location": "http://127.0.0.9:9/"}, b""),
}


def _door(ask: FakeRequest) -> Answer:
    """The page in front of the door."""
    port = ask.headers.get("host", "").rpartition(":")[2]
    script = f'<script src="http://localhost:{port}{DOOR_SCRIPT}"></script>'
    return 403, {}, f"<html><title>One moment</title><body>One moment{script}</body></html>".encode()


def _door_script(ask: FakeRequest) -> Answer:
    """The door's script, under the other name only: whoever runs it has the key as a cookie."""
    if not ask.headers.get("host", "").startswith("localhost"):
        return _ANSWERS["gone"]
    script = (
        "let key = 1; for (let n = 0; n < 1e5; n++) key = Math.imul(key ^ n, 16777619) >>> 0;"
        "document.cookie = `door=${key};path=/`; location.reload();"
    )
    return 200, {"Content-Type": "text/javascript"}, script.encode()


@cache
def _door_key() -> int:
    """What the script computes."""
    key = 1
    for number in range(100_000):
        key = ((key ^ number) * 16_777_619) & 0xFFFFFFFF
    return key


def _send(request: Request, answer: Answer) -> None:
    status, headers, body = answer
    request.setResponseCode(status)
    for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
        request.setHeader(name, value)
    request.setHeader("Content-Length", str(len(body)))
    request.write(body)
    request.finish()


def _slow(request: Request, page: Answer) -> None:
    respond_after(request, SLOW, lambda: _send(request, page))


def _hang(request: Request, _page: Answer) -> None:
    request.notifyFinish().addErrback(lambda _: None)  # the other side gives up some time


def _reset(request: Request, _page: Answer) -> None:
    cast("Any", request.transport).abortConnection()


def _truncate(request: Request, page: Answer) -> None:
    body = page[2]
    request.setHeader("Content-Length", str(len(body)))
    request.write(body[: len(body) // 2])
    cast("Any", request).channel.loseConnection()  # the raw transport would wait for its producer, for ever


_TRICKS: dict[str, Callable[[Request, Answer], None]] = {
    "slow": _slow,
    "hang": _hang,
    "reset": _reset,
    "truncated": _truncate,
}
"""Faults of the connection, not of what it carries."""
