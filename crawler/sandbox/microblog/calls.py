"""The simulated microblog's API: JSON responses, errors, the guest token, and the cursors of a timeline's pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.microblog.old import b64
from crawler.sandbox.protocol import as_json, client_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawler.sandbox.protocol import FakeRequest, FakeResponse

FIRST_TOKEN = 2_107_302_643_823_767_876
IDS = client_ids("microblog")


class Token:
    """The guest token: the platform issues it to every visitor, and requires it for each query."""

    def __init__(self) -> None:
        self.given = 0
        self.refusing = False
        """Whether the platform refuses to issue tokens. Tests set it with ``?refuse=1`` and ``?refuse=0``."""

    def activate(self, request: FakeRequest) -> FakeResponse:
        """Issue a token if the request is a POST with the web client's bearer token. Otherwise respond with 403."""
        if "refuse" in request.args:
            self.refusing = request.args["refuse"] == "1"
            return as_json({"refusing": self.refusing})
        if self.refusing or request.method != "POST" or not has_bearer(request):
            return 403, {"Content-Type": "text/plain"}, b"Forbidden." + b" " * 90
        self.given += 1
        return as_json({"guest_token": self.value})

    @property
    def value(self) -> str:
        """Return the token that was issued last."""
        return str(FIRST_TOKEN + self.given)

    def refusal(self, request: FakeRequest) -> FakeResponse | None:
        """Return the error for a query without a valid token, or None if the token is valid."""
        token = request.headers.get("x-guest-token", "")
        if token.isdecimal() and FIRST_TOKEN < int(token) <= FIRST_TOKEN + self.given:
            return None
        return error(239, "Bad guest token", 403)


def has_bearer(request: FakeRequest) -> bool:
    """Whether a request has the key of the platform's web client."""
    return request.headers.get("authorization") == f"Bearer {IDS['bearer']}"


def incomplete_query(request: FakeRequest, newest: Iterable[str]) -> FakeResponse | None:
    """Build the error for a query that lacks the key, a known id, a variable or a flag. None if it lacks nothing.

    ``newest``: ids that are newer than the data file. Their queries have other variables.
    """
    *_, query_id, name = request.path.split("/")
    query = next((each for each in (IDS["user"], IDS["timeline"]) if each["name"] == name), None)
    if not has_bearer(request):
        return error(32, "Could not authenticate you.", 401)
    if query is None or query_id not in (*query["ids"], *newest):
        return stale_query()
    needed = {key for key, value in query["variables"].items() if value != "$cursor"}
    if query_id in query["ids"] and not needed <= orjson.loads(request.args.get("variables", "{}")).keys():
        return as_json({"message": "Variables are missing"}, 422)
    flags = IDS["features"].keys() - orjson.loads(request.args.get("features", "{}")).keys()
    message = f"The following features cannot be null: {', '.join(sorted(flags))}"
    return error(336, message, 400) if flags else None


def error(code: int, message: str, status: int = 200, **beside: Any) -> FakeResponse:
    """Build an error response of the API."""
    kind = {"name": "GenericError", "source": "Server", "code": code, "kind": "NonFatal", "tracing": {"trace_id": "0"}}
    return as_json({"errors": [{"message": message, "path": ["user"], "extensions": kind, **kind}], **beside}, status)


def cursor_to(number: int) -> str:
    """Build the opaque cursor for a page of a timeline."""
    return "DAAHCgABHPEX6f6__-sLAAIAAAATM" + b64(f"page {number}").rstrip("=")


def page_of(cursor: str) -> int:
    """Return the page number that a cursor contains, or 1 if the cursor is missing or invalid."""
    return next((n for n in range(2, 100) if cursor_to(n) == cursor), 1)


def stale_query() -> FakeResponse:
    """Build the response to a query with an id that is out of date."""
    return as_json({"message": "Query not found"}, 404)
