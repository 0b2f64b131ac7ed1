"""Request bodies: how much is read, and what is accepted as a JSON object."""

from __future__ import annotations

import json
from typing import Any, Protocol, cast

from twisted.web.server import Request

from crawler.errors import InvalidJson, PayloadTooLarge, ScrapeError, UnsupportedMediaType

MAX_BODY = 64 * 1024
"""Bytes. The longest params are a URL of 2,000 characters."""

TOO_LARGE = PayloadTooLarge(f"The body may be {MAX_BODY} bytes long at most.")


class Refusing(Protocol):
    """A connection that can be refused further service."""

    refused: bool

    def refuse(self, error: ScrapeError) -> None:
        """Answers before the request is complete, reads no more, and closes."""


class CappedRequest(Request):
    """A request whose body is refused as soon as it is known to be too large: declared, or counted as it comes."""

    def gotLength(self, length: int | None) -> None:  # Twisted's name
        super().gotLength(min(length or 0, MAX_BODY))
        self._received = 0
        if length is not None and length > MAX_BODY:
            self._connection.refuse(TOO_LARGE)

    def handleContentChunk(self, data: bytes) -> None:  # Twisted's name
        self._received += len(data)
        if self._received > MAX_BODY:
            self._connection.refuse(TOO_LARGE)
        if not self._connection.refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # Twisted's name
        if not self._connection.refused:
            super().requestReceived(command, path, version)

    def _handleStar(self) -> None:  # noqa: N802  # Twisted's: it would answer by itself, in its own way
        self.render(cast("Any", self.site).resource)

    @property
    def _connection(self) -> Refusing:
        return cast("Refusing", self.channel)


def header(request: Request, name: str) -> str | None:
    """A header's value, of repeated ones all, joined as RFC 9110 says; None where there is none.

    Bytes are taken as Latin-1: what is no ASCII fits no header that is read here, and must not break its reading.
    """
    values = request.requestHeaders.getRawHeaders(name.encode())
    return None if values is None else b", ".join(values).decode("latin-1")


def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object.

    The standard library reads it, not orjson, which keeps the last of repeated keys and rounds huge integers.

    Raises:
        UnsupportedMediaType: not declared as JSON.
        InvalidJson: not JSON, not an object, repeated keys, NaN, nested too deeply.
    """
    declared = (header(request, "Content-Type") or "").partition(";")[0].strip().lower()
    if declared != "application/json":
        raise UnsupportedMediaType("Send the params as a JSON object with Content-Type: application/json.")
    assert request.content is not None
    try:
        text = request.content.read().decode()
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_float=_number)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text: nobody could send it
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


def _number(text: str) -> float:
    """Of a number with a point or an exponent: 2.0 is the integer 2 to JSON Schema, by which callers check params."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")
