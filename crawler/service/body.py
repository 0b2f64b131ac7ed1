"""Request bodies: how much is read, and what is accepted as a JSON object."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, cast

from twisted.internet import reactor as _reactor
from twisted.web.server import Request

from crawler.errors import InvalidJson, PayloadTooLarge, UnsupportedMediaType
from crawler.service.envelope import Call, failure

MAX_BODY = 64 * 1024
"""Bytes. The longest params are a URL of 2,000 characters."""

LINGER = 1.0
"""Seconds for which a connection stays half open after a refusal, so that the client can read why."""


class CappedRequest(Request):
    """A request whose body is refused as soon as it is known to be too large: declared, or counted as it comes."""

    def gotLength(self, length: int | None) -> None:  # Twisted's name
        super().gotLength(min(length or 0, MAX_BODY))
        self._received = 0
        self._refused = False
        if length is not None and length > MAX_BODY:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # Twisted's name
        self._received += len(data)
        if self._received > MAX_BODY:
            self._refuse()
        if not self._refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # Twisted's name
        if not self._refused:
            super().requestReceived(command, path, version)

    def _refuse(self) -> None:
        """Answers before the request is complete, reads no more, and closes."""
        if self._refused:
            return
        self._refused = True
        answer = failure(Call(), PayloadTooLarge(f"The body may be {MAX_BODY} bytes long at most."))
        headers = {**answer.headers, "Content-Length": str(len(answer.body)), "Connection": "close"}
        head = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        transport = cast("Any", self.channel).transport
        transport.write(head.encode() + b"\r\n" + answer.body)
        transport.pauseProducing()
        transport.loseWriteConnection()
        cast("Any", _reactor).callLater(LINGER, transport.abortConnection)


def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object.

    The standard library reads it, not orjson, which keeps the last of repeated keys and rounds huge integers.

    Raises:
        UnsupportedMediaType: not declared as JSON.
        InvalidJson: not JSON, not an object, repeated keys, NaN, nested too deeply.
    """
    declared = (request.getHeader("content-type") or "").partition(";")[0].strip().lower()
    if declared != "application/json":
        raise UnsupportedMediaType("Send the params as a JSON object with Content-Type: application/json.")
    assert request.content is not None
    try:
        value = json.loads(
            request.content.read().decode(), object_pairs_hook=_distinct, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise InvalidJson("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidJson(f"The body is no JSON: {error}.") from None
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object: the scraper's params.")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")
