"""What a session concludes from the requests and the end markers of its page, which is not a real one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from unittest.mock import AsyncMock, Mock

import pytest
from playwright.async_api import Error

from crawler.browser import sessions
from crawler.browser.sessions import CapturedResponse, ResponseListener

REQUEST = Mock(url="https://shop.example/results")
RESPONSE = Mock(request=REQUEST, url=REQUEST.url, all_headers=AsyncMock(), body=AsyncMock())
LATER = Mock(request=Mock(), url=REQUEST.url, all_headers=AsyncMock(), body=AsyncMock())
OTHER = Mock(request=REQUEST, url=f"{REQUEST.url}?other", all_headers=AsyncMock(), body=AsyncMock())
WITHOUT_BODY = Mock(request=Mock(), url=REQUEST.url, all_headers=AsyncMock(), body=AsyncMock(side_effect=Error("gone")))


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves on by a second each time it is read, so that nothing depends on the machine's speed."""
    monkeypatch.setattr(sessions, "_now", itertools.count().__next__)
    monkeypatch.setattr(sessions, "POLL_SECONDS", 0.001)


class Listener(ResponseListener):
    """A session that needs all responses."""

    taken = 0

    async def take(self, answer: CapturedResponse) -> bool | None:
        if answer.url == OTHER.url:
            return None
        self.taken += 1
        return False

    async def visit(self, evaluate: Callable[[], str]) -> None:
        """Run the session on a page that calls ``evaluate`` for the name of the visible end marker."""
        page = Mock(evaluate=AsyncMock(side_effect=lambda *_: evaluate()), is_closed=Mock(return_value=False))
        await self.run(page, 1_000)


@pytest.mark.parametrize(
    ("events", "is_silent"),
    [
        pytest.param([], True, id="no request"),
        pytest.param(["request"], False, id="no answer"),
        pytest.param(["request", "failure"], False, id="no complete response"),
        pytest.param([WITHOUT_BODY], False, id="no body"),
        pytest.param(["request", RESPONSE], True, id="a response"),
        pytest.param(["request", "failure", WITHOUT_BODY, LATER], True, id="a response in the end"),
        pytest.param(["request", "failure", OTHER], False, id="a response of another kind"),
    ],
)
async def test_a_page_is_silent_if_it_has_all_responses_and_requests_no_more(
    events: list[str | Mock], *, is_silent: bool
) -> None:
    listener = Listener(re.compile("/results"), {}, quiet=9, pause=0)
    for event in events:
        if isinstance(event, str):
            getattr(listener, f"on_{event}")(REQUEST)
        else:
            listener.on_response(event)
    await listener.visit(lambda: "")
    assert (listener.is_silent, listener.taken) == (is_silent, len({RESPONSE, LATER}.intersection(events)))


async def test_a_session_ends_at_a_login_wall_when_the_requests_in_flight_have_their_responses() -> None:
    listener, looks = Listener(re.compile("/results"), {}, quiet=30, pause=0), iter(range(10))
    listener.on_request(REQUEST)

    def evaluate() -> str:
        if next(looks) == 3:
            listener.on_response(RESPONSE)
        return "login"

    await listener.visit(evaluate)
    assert (listener.end_marker, listener.is_silent, listener.taken, next(looks)) == ("login", False, 1, 5)
