"""CORS: which web pages of other origins may call the service from a browser (https://fetch.spec.whatwg.org/)."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import TYPE_CHECKING

from crawler.service.calls.envelope import Answer, Call, raw_response
from crawler.service.description.headers import HEADERS, PARAMETERS
from crawler.service.http.body import header

if TYPE_CHECKING:
    from twisted.web.server import Request

ANY_ORIGIN = "*"
METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")
REQUEST_HEADERS = (
    *("Content-Type", "X-API-Key"),
    *sorted({each["name"] for each in PARAMETERS.values() if each["in"] == "header"}),
)
"""The request headers that pages may send: those that the service reads."""
RESPONSE_HEADERS = tuple(sorted({"Location", *HEADERS}))
"""The response headers that pages may read: those that the service describes."""
MAX_AGE_SECONDS = 600
"""Seconds for which a browser may use the result of a preflight request."""


class Cors:
    """Adds CORS headers to the responses of ``/v1/...`` and ``/openapi.json``, for origins in ``SERVICE_CORS_ORIGINS``.

    Pages of other origins cannot read other routes, such as ``/metrics``. Credentials (cookies) are never allowed: the
    API key, which the page sends itself, is the only authentication.
    """

    def __init__(self, origins: Collection[str] = ()) -> None:
        self.origins = frozenset(origins)

    def preflight(self, request: Request, call: Call) -> Answer | None:
        """Return the response to an OPTIONS request, if it is a preflight request of an allowed origin, else None.

        It needs no API key, because browsers send preflight requests without the page's headers.
        """
        if not header(request, "Access-Control-Request-Method") or not self._allowed_origin(request):
            return None
        headers = {
            "Access-Control-Allow-Methods": ", ".join(METHODS),
            "Access-Control-Allow-Headers": ", ".join(REQUEST_HEADERS),
            "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
        }
        return raw_response(call, "text/plain; charset=utf-8", b"", headers, status=HTTPStatus.NO_CONTENT)

    def add_headers(self, request: Request) -> None:
        """Add the headers to a response that is about to be sent. Caches must distinguish the origins (``Vary``)."""
        if not self.origins or not _is_shared(request):
            return
        if ANY_ORIGIN not in self.origins:
            request.responseHeaders.addRawHeader("Vary", "Origin")
        if origin := self._allowed_origin(request):
            request.setHeader("Access-Control-Allow-Origin", origin)
            request.setHeader("Access-Control-Expose-Headers", ", ".join(RESPONSE_HEADERS))

    def _allowed_origin(self, request: Request) -> str | None:
        """Return the value of ``Access-Control-Allow-Origin``. None: the page may not read the response."""
        origin = header(request, "Origin")
        if origin is None or not _is_shared(request):
            return None
        if ANY_ORIGIN in self.origins:
            return ANY_ORIGIN
        return origin if origin in self.origins else None


def _is_shared(request: Request) -> bool:
    return request.path == b"/openapi.json" or request.path.startswith(b"/v1/")
