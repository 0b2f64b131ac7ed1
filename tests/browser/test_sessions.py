"""What a session concludes from the requests and the end markers of its page, which is not a real one."""

from __future__ import annotations

import re
from collections.abc import Callable
from unittest.mock import AsyncMock, Mock

import pytest
from playwright.async_api import Error

from crawler.browser import sessions
from crawler.browser.sessions import CapturedResponse, ResponseListener

REQUEST = Mock(url="https://shop.example/results")
RESPONSE = Mock(request=REQUEST, url=REQUEST.url, all_headers=AsyncMock(), body=AsyncMock())
WITHOUT_BODY = Mock(
    request=REQUEST, url=REQUEST.url, all_headers=AsyncMock(), body=AsyncMock(side_effect=Error("gone"))
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(sessions, "END_MARKER_SECONDS", 0)


class Listener(ResponseListener):
    """A session that needs all responses."""

    taken = 0

    async def take(self, answer: CapturedResponse) -> bool:
        self.taken += 1
        return False

    async def visit(self, evaluate: Callable[[], str]) -> None:
        """Run the session on a page that calls ``evaluate`` for the name of the visible end marker."""
        page = Mock(evaluate=AsyncMock(side_effect=lambda *_: evaluate()), is_closed=Mock(return_value=False))
        await self.run(page, 60)


@pytest.mark.parametrize(
    ("events", "is_silent"),
    [
        pytest.param([], True, id="no request"),
        pytest.param(["request"], False, id="no answer"),
        pytest.param(["request", "failure"], False, id="no complete response"),
        pytest.param(["request", WITHOUT_BODY], False, id="no body"),
        pytest.param(["request", RESPONSE], True, id="a response"),
        pytest.param(["request", "failure", "request", RESPONSE], True, id="a response in the end"),
    ],
)
async def test_a_page_is_silent_if_it_has_all_responses_and_requests_no_more(
    events: list[str | Mock], *, is_silent: bool
) -> None:
    listener = Listener(re.compile("/results"), {}, quiet=0.05, pause=0)
    for event in events:
        if isinstance(event, str):
            getattr(listener, f"on_{event}")(REQUEST)
        else:
            listener.on_response(event)
    await listener.visit(lambda: "")
    assert (listener.is_silent, listener.taken) == (is_silent, events.count(RESPONSE))


async def test_a_session_ends_at_a_login_wall_when_the_requests_in_flight_have_their_responses() -> None:
    listener, looks = Listener(re.compile("/results"), {}, quiet=30, pause=0), iter(range(10))
    listener.on_request(REQUEST)

    def evaluate() -> str:
        if next(looks) == 3:
            listener.on_response(RESPONSE)
        return "login"

    await listener.visit(evaluate)
    assert (listener.end_marker, listener.is_silent, listener.taken, next(looks)) == ("login", False, 1, 5)
