"""Request bodies: the size limit, and the JSON objects that are accepted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol, cast

from twisted.web.server import Request

from crawler.errors import InvalidJson, InvalidRequest, PayloadTooLarge, ScrapeError, UnsupportedMediaType

if TYPE_CHECKING:
    from twisted.python.failure import Failure

SCRAPERS = "/v1/scrapers"
"""The path of the catalogue, and of the folder of the scrapers."""

MAX_BODY_BYTES = 64 * 1024
"""Maximum bytes of a request body. The longest valid params are a URL of 2,000 characters."""

ONE_HOST = InvalidRequest("Send exactly one Host header.")
BODY_TOO_LARGE = PayloadTooLarge(f"The body is too large: at most {MAX_BODY_BYTES} bytes are accepted.")


ABSOLUTE_FORM = re.compile(rb"^https?://[^/?#]*", re.IGNORECASE)
"""Matches scheme and host of a request target that is a whole URL."""


class RefusableConnection(Protocol):
    """A connection that can refuse its current request."""

    refused: bool

    def refuse(self, error: ScrapeError) -> None:
        """Respond before the request is complete, stop reading, and close the connection."""


class CappedRequest(Request):
    """A request whose body is refused once its declared or received size is over the limit."""

    is_disconnected = False
    """Whether the client has disconnected before the response was complete."""

    def gotLength(self, length: int | None) -> None:  # Twisted's name
        super().gotLength(min(length or 0, MAX_BODY_BYTES))
        self._received = 0
        if length is not None and length > MAX_BODY_BYTES:
            self._connection.refuse(BODY_TOO_LARGE)

    def handleContentChunk(self, data: bytes) -> None:  # Twisted's name
        self._received += len(data)
        if self._received > MAX_BODY_BYTES:
            self._connection.refuse(BODY_TOO_LARGE)
        if not self._connection.refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # Twisted's name
        """Pass the request to Twisted. Refuse an HTTP/1.1 request that lacks a Host header or has several (RFC 9112).

        ``path`` may be a whole URL. Its host is ignored, as is the Host header: the service has only one site.
        """
        if version != b"HTTP/1.0" and len(self.requestHeaders.getRawHeaders(b"Host", [])) != 1:
            self._connection.refuse(ONE_HOST)
        if not self._connection.refused:
            super().requestReceived(command, ABSOLUTE_FORM.sub(b"", path, count=1) or b"/", version)

    def connectionLost(self, reason: Failure) -> None:
        self.is_disconnected = True
        super().connectionLost(reason)

    def _handleStar(self) -> None:  # noqa: N802  # Twisted's own response has no envelope
        self.render(cast("Any", self.site).resource)

    @property
    def _connection(self) -> RefusableConnection:
        return cast("RefusableConnection", self.channel)


def header(request: Request, name: str) -> str | None:
    """Return the value of a request header, or None if it is missing. Repeated headers are joined as in RFC 9110.

    The value is decoded as Latin-1, which never fails. Non-ASCII characters are invalid in all headers that are read.
    """
    values = request.requestHeaders.getRawHeaders(name.encode())
    return None if values is None else b", ".join(values).decode("latin-1")


def read_object(request: Request) -> dict[str, Any]:
    """Decode the body as a JSON object.

    The standard library is used, because orjson accepts repeated keys and rounds huge integers.

    Raises:
        UnsupportedMediaType: the Content-Type header is not ``application/json``, or the body is compressed.
        InvalidJson: the body is not JSON, is not an object, contains repeated keys or NaN, or is nested too deeply.
    """
    declared = (header(request, "Content-Type") or "").partition(";")[0].strip().lower()
    if declared != "application/json":
        raise UnsupportedMediaType("Send the params as a JSON object with Content-Type: application/json.")
    if (header(request, "Content-Encoding") or "identity").strip().lower() != "identity":
        raise UnsupportedMediaType("Send the body without Content-Encoding: compressed bodies are not accepted.")
    assert request.content is not None
    try:
        text = request.content.read().decode()
        value = json.loads(
            text, object_pairs_hook=_without_repeated_keys, parse_constant=_reject_constant, parse_float=_number
        )
        if "\\u" in text:
            json.dumps(
                value, ensure_ascii=False
            ).encode()  # raises if a string contains half of a surrogate pair, which responses could not encode
    except RecursionError:
        raise InvalidJson("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidJson(f"The body is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object with the scraper's params.")
    return value


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("a key is repeated")
    return unique


def _number(text: str) -> float:
    """Decode a number with a decimal point or an exponent. 2.0 becomes the integer 2, as in JSON Schema."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")
