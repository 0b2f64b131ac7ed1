"""The types that all simulated platforms share: a request, a response, and the site that builds the response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import orjson

FakeResponse = tuple[int, dict[str, str], bytes]
"""A response: status, headers and body."""

FaultlessResponse = Callable[[], FakeResponse]
"""A function that renders the undamaged response to a request. Faults that replace the whole response do not call this
function."""


@dataclass(frozen=True)
class FakeRequest:
    """A request that a simulated platform receives."""

    path: str
    args: dict[str, str] = field(default_factory=dict)
    """The parameters in the query string. For a repeated key, the last value."""
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    """The request's HTTP headers, by name in lower case."""
    body: bytes = b""


def as_json(data: Any, status: int = 200) -> FakeResponse:
    """Build a JSON response."""
    return status, {"Content-Type": "application/json; charset=utf-8"}, orjson.dumps(data)


def client_ids(platform: str) -> dict[str, Any]:
    """Return the ids that a platform demands of its web client, from the crawler's data file."""
    file = Path(__file__).parents[1] / "platforms" / platform / "ids.json"
    return cast("dict[str, Any]", orjson.loads(file.read_bytes()))


class FakeSite(Protocol):
    """A simulated platform, which builds pages for spiders and browsers, and expected records for tests."""

    def fault(self, request: FakeRequest) -> str | None:
        """Return the name of the fault that the request's target selects, or None if it selects no fault."""

    def limited(self, request: FakeRequest, seconds: int) -> FakeResponse | None:
        """Build the response to a request above a limit by rate, which ends in ``seconds``.

        Return None if the platform does not refuse such requests.
        """

    def refusal(self, request: FakeRequest) -> FakeResponse | None:
        """Return the platform's response to a request that lacks what all such requests need, or None."""

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response to a request."""

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the damaged response for a fault, ``name``, that only this platform has."""

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the record that a crawl must extract for a target with these params."""

    def catalogue(self) -> dict[str, Any]:
        """Return the platform's targets and faults. The sandbox serves them at ``/__world__``.

        ``targets`` is a list of objects ``{"params", "about"}``: targets that exist for every seed. ``faults`` maps
        each fault to ``{"params", "code", "about"}``: the params of a target that selects it, and the code of the
        outcome.
        """
