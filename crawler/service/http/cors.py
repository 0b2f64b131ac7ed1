"""CORS: which web pages of other origins may call the service from a browser (https://fetch.spec.whatwg.org/)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from http import HTTPStatus

from crawler.service.calls.envelope import Answer, Call, raw_response
from crawler.service.headers import HEADERS

ANY_ORIGIN = "*"
METHODS = ("DELETE", "GET", "HEAD", "POST", "PUT")
REQUEST_HEADERS = ("Content-Type", "X-API-Key", "Idempotency-Key", "Prefer")
"""The request headers that pages may send: the documented headers of calls."""
RESPONSE_HEADERS = tuple(sorted({"Location", *HEADERS}))
"""The response headers that pages may read: the documented headers of responses."""
MAX_AGE_SECONDS = 600
"""Seconds for which a browser may use the result of a preflight request."""


class Cors:
    """Adds CORS headers to the responses of ``/v1/...`` and ``/openapi.json``, for origins in ``SERVICE_CORS_ORIGINS``.

    Pages of other origins cannot read other routes, such as ``/metrics``. Credentials (cookies) are never allowed: the
    API key, which the page sends itself, is the only authentication.
    """

    def __init__(self, origins: Collection[str] = ()) -> None:
        self.origins = frozenset(origins)

    def preflight(self, call: Call) -> Answer | None:
        """Return the response to a preflight request of an allowed origin, None for other requests.

        A preflight request needs no API key, because browsers send it without the page's headers.
        """
        allowed = self.headers(call.path, call.request_headers)
        is_preflight = call.method == "OPTIONS" and call.request_headers.get("access-control-request-method")
        if not is_preflight or "Access-Control-Allow-Origin" not in allowed:
            return None
        headers = {
            "Access-Control-Allow-Methods": ", ".join(METHODS),
            "Access-Control-Allow-Headers": ", ".join(REQUEST_HEADERS),
            "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
        }
        return raw_response(call, "text/plain; charset=utf-8", b"", headers, status=HTTPStatus.NO_CONTENT)

    def headers(self, path: str, request_headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers to add to the response of a request. Empty for other routes, and without allowed origins.

        ``Vary: Origin`` keeps caches from returning a response to the pages of another origin.
        """
        if not self.origins or not (path == "/openapi.json" or path.startswith("/v1/")):
            return {}
        is_any, origin = ANY_ORIGIN in self.origins, request_headers.get("origin")
        headers = {} if is_any else {"Vary": "Origin"}
        if origin is not None and (is_any or origin in self.origins):
            headers["Access-Control-Allow-Origin"] = ANY_ORIGIN if is_any else origin
            headers["Access-Control-Expose-Headers"] = ", ".join(RESPONSE_HEADERS)
        return headers
