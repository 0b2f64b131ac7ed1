"""The interface of a simulated platform: a request, a response, and the site that responds to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

FakeResponse = tuple[int, dict[str, str], bytes]
"""A response: status, headers and body."""

FaultlessResponse = Callable[[], FakeResponse]
"""A function that renders the correct response to a request. A fault that replaces the response does not call it."""


@dataclass(frozen=True)
class FakeRequest:
    """A request that a simulated platform receives."""

    path: str
    args: dict[str, str] = field(default_factory=dict)
    """The parameters of the query string. If a key is repeated, its last value is used."""
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    """The request's HTTP headers, by name in lower case."""
    body: bytes = b""


class FakeSite(Protocol):
    """A simulated platform. It has pages for browsers and spiders, and expected records for tests."""

    def fault(self, request: FakeRequest) -> str | None:
        """Return the fault that a request's target selects, or None if the response is correct."""

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the correct response to a request."""

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the response of one of the platform's own faults."""

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the record that must be extracted for a target."""

    def catalogue(self) -> dict[str, Any]:
        """Return the targets that the sandbox has."""
