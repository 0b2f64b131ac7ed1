"""The error of each page class for each HTTP status."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import pytest

from tests.mutations import PageFixture, fixtures

FIXTURES = list({fixture.case.page: fixture for fixture in fixtures()}.values())
BODIES = (b"<html>sorry</html>", b'{"sorry": true}', b"{broken", b"")
Error = tuple[str, str]
REFUSED, GONE = ("UPSTREAM_BLOCKED", "refused"), ("TARGET_NOT_FOUND", "not_found")
ERRORS: dict[int, Error] = {
    302: ("UPSTREAM_ERROR", "status"),
    **dict.fromkeys((401, 403, 407, 412, 418, 451), REFUSED),
    **dict.fromkeys((404, 410), GONE),
    429: ("UPSTREAM_RATE_LIMITED", "rate_limited"),
    **dict.fromkeys((500, 503), ("UPSTREAM_ERROR", "server_error")),
}
"""The code and the reason for each status, except those below."""
REFUSED_QUERY: dict[int, Error] = dict.fromkeys((404, 410), ("UPSTREAM_BLOCKED", "refused_query"))
LOST: dict[int, Error] = dict.fromkeys((404, 410), ("UPSTREAM_ERROR", "lost"))
OTHERS: dict[str, dict[int, Error]] = {
    "TimelinePage": REFUSED_QUERY,
    "UserPage": REFUSED_QUERY,
    "GuestTokenPage": dict.fromkeys((401, 403, 404), ("UPSTREAM_BLOCKED", "token_refused")),
    "ContinuationPage": LOST,
    "PlaylistPage": LOST,
    "FeedPage": dict.fromkeys((404, 410), ("UPSTREAM_ERROR", "no_feed")),
}
"""Page classes for which some statuses have other errors: there, 404 does not mean that the target does not exist."""
WITH_TOKEN = {"TimelinePage", "UserPage"}
"""Page classes that read status 403 without HTML as a refused guest token."""


@pytest.mark.parametrize("status", ERRORS)
@pytest.mark.parametrize("fixture", FIXTURES, ids=attrgetter("name"))
def test_each_status_has_its_error(fixture: PageFixture, status: int) -> None:
    kind = fixture.case.page.__name__
    if (kind, status) == ("SharePage", 302):
        return  # it reads the redirect
    with_status = PageFixture(replace(fixture.case, status=status))
    for body in BODIES[:1] if kind in WITH_TOKEN and status == 403 else BODIES:
        error = with_status.read(body).error
        assert error is not None
        assert (error.code, error.reason) == OTHERS.get(kind, {}).get(status, ERRORS[status]), body
        assert error.upstream_status == status
        marks = {(*each["loc"], each["msg"]) for each in error.details if each["type"] == "mark"}
        assert (("status", str(status)) in marks) == (error.code == "TARGET_NOT_FOUND"), "it is what shows this"


CHALLENGE, CAPTCHA = ("UPSTREAM_BLOCKED", "challenge"), ("UPSTREAM_BLOCKED", "captcha")
LOGIN_WALL: Error = ("UPSTREAM_BLOCKED", "login_wall")
WALLS: dict[str, tuple[str | None, bytes, Error]] = {
    # By platform: the URL, the body and the error of a page for refused visitors. None: the URL of the request
    "microblog": (None, b"<title>Just a moment...</title>", CHALLENGE),
    "photoapp": ("https://www.instagram.com/accounts/login/", b"<html></html>", LOGIN_WALL),
    "professional": (None, b"<title>Sign Up | </title>", LOGIN_WALL),
    "retail": (None, b'<div id="px-captcha"></div>', CHALLENGE),
    "shortvideo": (None, b'<div class="captcha_verify_container"></div>', CAPTCHA),
    "videosite": (None, b'<form id="captcha-form"></form>', ("UPSTREAM_RATE_LIMITED", "captcha")),
}
OF_VISITORS = [each for each in FIXTURES if each.case.page.__name__ not in {*WITH_TOKEN, "GuestTokenPage"}]


@pytest.mark.parametrize("status", [302, 400, 404, 405, 410])
@pytest.mark.parametrize("fixture", OF_VISITORS, ids=attrgetter("name"))
def test_a_page_for_refused_visitors_is_one_with_any_status(fixture: PageFixture, status: int) -> None:
    """So it neither shows that the target does not exist, nor closes the circuit breaker."""
    url, body, expected = WALLS[fixture.platform]
    case = replace(fixture.case, status=status, headers={"Retry-After": "60"}, url=url or fixture.case.url)
    error = PageFixture(case).read(body).error
    assert error is not None
    assert (error.code, error.reason, error.retry_after) == (*expected, 60)
