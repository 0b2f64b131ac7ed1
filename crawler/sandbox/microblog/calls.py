"""The simulated microblog's calls: their JSON, their errors, the guest's token, and the cursors to further pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.microblog.user import b64

if TYPE_CHECKING:
    from crawler.sandbox.protocol import Answer, FakeRequest

FIRST_TOKEN = 2_107_302_643_823_767_876


class Token:
    """The guest's token: given to whoever asks, and wanted with each call."""

    def __init__(self) -> None:
        self.given = 0
        self.refusing = False
        """Whether nobody gets one: switched by ``?refuse=1`` and ``?refuse=0``."""

    def activate(self, ask: FakeRequest) -> Answer:
        """A new token, by POST with the client's own key."""
        if "refuse" in ask.args:
            self.refusing = ask.args["refuse"] == "1"
            return as_json({"refusing": self.refusing})
        if self.refusing or ask.method != "POST" or not ask.headers.get("authorization", "").startswith("Bearer "):
            return 403, {"Content-Type": "text/plain"}, b"Forbidden." + b" " * 90
        self.given += 1
        return as_json({"guest_token": self.value})

    @property
    def value(self) -> str:
        """The newest token."""
        return str(FIRST_TOKEN + self.given)

    def refusal(self, ask: FakeRequest) -> Answer | None:
        """The answer to a call without a token that was given."""
        token = ask.headers.get("x-guest-token", "")
        if token.isdecimal() and FIRST_TOKEN < int(token) <= FIRST_TOKEN + self.given:
            return None
        return error(239, "Bad guest token", 403)


def as_json(data: Any, status: int = 200) -> Answer:
    """An answer of the calls."""
    return status, {"Content-Type": "application/json; charset=utf-8"}, orjson.dumps(data)


def error(code: int, message: str, status: int = 200, **beside: Any) -> Answer:
    """An error as the calls report it."""
    kind = {"name": "GenericError", "source": "Server", "code": code, "kind": "NonFatal", "tracing": {"trace_id": "0"}}
    return as_json({"errors": [{"message": message, "path": ["user"], "extensions": kind, **kind}], **beside}, status)


def cursor_to(number: int) -> str:
    """The platform's cursor to a page, opaque as such things are."""
    return "DAAHCgABHPEX6f6__-sLAAIAAAATM" + b64(f"page {number}").rstrip("=")


def page_of(cursor: str) -> int:
    """The number of the page that a cursor leads to; no cursor leads to the first."""
    return next((n for n in range(2, 100) if cursor_to(n) == cursor), 1)
