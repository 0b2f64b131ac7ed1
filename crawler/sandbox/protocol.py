"""The interface of a simulated platform: a request, a response, and the site that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

FakeResponse = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""

FaultlessResponse = Callable[[], FakeResponse]
"""Renders the correct response to a request. A fault that replaces the whole response does not call it."""


@dataclass(frozen=True)
class FakeRequest:
    """A request as a simulated platform receives it."""

    path: str
    args: dict[str, str] = field(default_factory=dict)
    """The query. The last value of a repeated key counts."""
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    """The headers by lower-case name."""
    body: bytes = b""


class FakeSite(Protocol):
    """A simulated platform: pages for browsers and spiders, expected records for tests."""

    def fault(self, request: FakeRequest) -> str | None:
        """The fault that a request's target selects, None for a correct response."""

    def page(self, request: FakeRequest) -> FakeResponse:
        """The correct response to a request."""

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """The response of one of the platform's own faults."""

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """The expected record of a target."""

    def catalogue(self) -> dict[str, Any]:
        """The targets that exist."""
