"""Faults that every platform can have, by name: the target's name selects what happens to its request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from twisted.internet import reactor as _reactor

if TYPE_CHECKING:
    from twisted.web.server import Request

    from crawler.sandbox.server import World

Hits = Counter[str]
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
    "unavailable": Fault("UPSTREAM_ERROR", "503, for ever"),
    "flaky": Fault("OK", "503 the first time"),
    "empty-body": Fault("UPSTREAM_BLOCKED", "200 without a body"),
    "not-html": Fault("EXTRACTION_FAILED", "binary junk that calls itself HTML"),
    "truncated": Fault("UPSTREAM_ERROR", "the connection ends before the page does"),
    "foreign-redirect": Fault("UPSTREAM_BLOCKED", "a redirect to another host"),
    "slow": Fault("OK", "the page, late"),
    "hang": Fault("UPSTREAM_TIMEOUT", "no answer ever"),
    "reset": Fault("UPSTREAM_ERROR", "the connection is reset"),
}

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""

_STATUSES = {"gone": 404, "forbidden": 403, "server-error": 500, "unavailable": 503}
_ANSWERS: dict[str, Answer] = {
    "empty-body": (200, {}, b""),
    "not-html": (200, {"Content-Type": "text/html"}, bytes(range(256)) * 64),
    "foreign-redirect": (302, {"Location": "http://127.0.0.9:9/"}, b""),
    "rate-limited": (429, {"Retry-After": "7"}, b"Too many requests"),
}


def play(request: Request, world: World, path: str, args: dict[str, str], hits: Hits) -> None:
    """Answers a request: honestly, or with the fault that its target stands for."""
    name = world.fault(path, args)
    key = f"{path}?{args}"
    hits[key] += 1
    match name:
        case "slow":
            cast("Any", _reactor).callLater(SLOW, _send, request, *world.page(path, args))
        case "hang":
            request.notifyFinish().addErrback(lambda _: None)  # the other side gives up some time
        case "reset":
            cast("Any", request.transport).abortConnection()
        case "truncated":
            _truncate(request, world.page(path, args)[2])
        case _:
            _send(request, *_answer(world, name, path, args, first=hits[key] == 1))


def _answer(world: World, name: str | None, path: str, args: dict[str, str], *, first: bool) -> Answer:
    if name is None or (not first and (name == "flaky" or name.endswith("-once"))):
        return world.page(path, args)
    if name == "flaky":
        return _status(503)
    if name in _STATUSES:
        return _status(_STATUSES[name])
    return _ANSWERS.get(name) or world.damaged(name.removesuffix("-once"), path, args)


def _status(code: int) -> Answer:
    return code, {}, f"<html><title>{code}</title><h1>Sorry</h1></html>".encode()


def _send(request: Request, status: int, headers: dict[str, str], body: bytes) -> None:
    if request._disconnected:  # noqa: SLF001  # Twisted has no other way to ask
        return
    request.setResponseCode(status)
    request.setHeader("Content-Type", "text/html; charset=utf-8")
    for name, value in headers.items():
        request.setHeader(name, value)
    request.setHeader("Content-Length", str(len(body)))
    request.write(body)
    request.finish()


def _truncate(request: Request, body: bytes) -> None:
    request.setHeader("Content-Length", str(len(body)))
    request.write(body[: len(body) // 2])
    cast("Any", request).channel.loseConnection()  # the raw transport would wait for its producer, for ever
