"""The interface of a simulated platform: a request, an answer, and the site that turns one into the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""

HonestAnswer = Callable[[], Answer]
"""Renders the honest answer to a request. A fault that replaces the whole answer does not call it."""


@dataclass(frozen=True)
class FakeRequest:
    """A request as a simulated platform receives it."""

    path: str
    args: dict[str, str] = field(default_factory=dict)
    """The query. A repeated key has its last value."""
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    """By lower-case name."""
    body: bytes = b""


class FakeSite(Protocol):
    """A simulated platform: pages for browsers and spiders, expected records for tests."""

    def fault(self, ask: FakeRequest) -> str | None:
        """The fault that a request's target stands for, None for an honest answer."""

    def page(self, ask: FakeRequest) -> Answer:
        """The honest answer to a request."""

    def damaged(self, name: str, ask: FakeRequest) -> Answer:
        """The answer of one of the platform's own faults."""

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """The expected record of a target."""

    def catalogue(self) -> dict[str, Any]:
        """The targets that exist."""
