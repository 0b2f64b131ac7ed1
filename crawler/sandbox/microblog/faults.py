"""The simulated microblog's faults: the sources that each one affects, and its effect on the expected record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.microblog.calls import cursor_to, error, page_of, stale_query
from crawler.sandbox.microblog.page import embed_page, other_page, with_streams
from crawler.sandbox.protocol import FakeRequest, FakeResponse, FaultlessResponse, as_json

PAGE, EMBED, USER, TIMELINE = "page", "embed", "user", "timeline"
CALLS = (USER, TIMELINE)
ALL = (PAGE, EMBED, USER, TIMELINE)


@dataclass(frozen=True)
class Call:
    """A request to one source for an account, and the undamaged response to the request."""

    request: FakeRequest
    source: str
    handle: str
    honest: FaultlessResponse
    user_id: str
    """The platform's id of the requested account."""
    first_id: bool
    """Whether the request has the query id of the first request for this account and query."""


Damage = Callable[[Call], FakeResponse]


def missing_account(source: str) -> FakeResponse:
    """Build a source's response for a handle that does not exist."""
    if source in CALLS:
        return as_json({"data": {}})
    about = "The user profile you&#x27;re looking for could not be found."
    return 404, {}, other_page("X", "<h1>Hmm</h1>", f'<meta name="description" content="{about}"/>')


def _missing_account(call: Call) -> FakeResponse:
    return missing_account(call.source)


def _no_entries(call: Call) -> FakeResponse:
    return 200, {}, embed_page(call.handle, [])


def _stale_first(call: Call) -> FakeResponse:
    return stale_query() if call.first_id else call.honest()


NEW_IDS = {"UserByScreenName": "Renewed-UserByName_001", "UserTweets": "Renewed-UserTweets_0001"}
"""The only query ids that are accepted for ``wrong-query-ids``."""


def _new_ids_only(call: Call) -> FakeResponse:
    *_, query_id, name = call.request.path.split("/")
    return call.honest() if NEW_IDS.get(name) == query_id else stale_query()


def _names_new_ids(call: Call) -> FakeResponse:
    """Return a profile page that contains new ids of both queries. The user query has newer variables."""
    status, headers, body = call.honest()
    user = {"screenName": call.handle, "__relay_internal__pv__appviewerisloggedinprovider": False}
    timeline = {
        "userId": call.user_id,
        "count": 20,
        "includePromotedContent": False,
        "withQuickPromoteEligibilityTweetFields": False,
        "withVoice": True,
    }
    queries = [("UserByScreenName", user), ("UserTweets", timeline)]
    return status, headers, with_streams(body, [(NEW_IDS[name], name, variables) for name, variables in queries])


def _honest(call: Call) -> FakeResponse:
    """Return the undamaged response, which for the fault ``wrong-profile`` is that of another account."""
    return call.honest()


def _cut(call: Call) -> FakeResponse:
    status, headers, body = call.honest()
    if call.source == PAGE:
        end = body.index(b'"client:root"') if b'"client:root"' in body else len(body) // 2
        return status, headers, body[: end + (len(body) - end) // 2] + b"</script></body></html>"
    return status, headers, body[: len(body) // 2]


def _renamed(call: Call) -> FakeResponse:
    """Rename the keys of mandatory parts in the response."""
    status, headers, body = call.honest()
    for name in (b"full_text", b"created_at_ms", b"created_at", b"screen_name"):
        body = body.replace(name + b'"', name + b'3"').replace(name + b":", name + b"3:")
    return status, headers, body.replace(b"additionalName", b"additionalName3").replace(b"profile:username", b"p")


def _cursors_only(call: Call) -> FakeResponse:
    status, _, body = call.honest()
    data = orjson.loads(body)
    (added,) = (
        each
        for each in data["data"]["user"]["result"]["timeline"]["timeline"]["instructions"]
        if each["type"] == "TimelineAddEntries"
    )
    added["entries"] = [each for each in added["entries"] if each["entryId"].startswith(("cursor", "who"))]
    data["data"]["user"]["result"]["timeline"]["timeline"]["instructions"] = [added]
    return as_json(data, status)


def _same_cursor(call: Call) -> FakeResponse:
    """From the second page on, replace the cursor for the next page with the cursor in the request."""
    sent = orjson.loads(call.request.args["variables"]).get("cursor")
    status, headers, body = call.honest()
    if not sent:
        return status, headers, body
    return status, headers, body.replace(cursor_to(page_of(sent) + 1).encode(), sent.encode())


def _stale_cursor(call: Call) -> FakeResponse:
    if orjson.loads(call.request.args["variables"]).get("cursor"):
        return error(214, "BadRequest: cursor", 400)
    return call.honest()


def _errors_beside(call: Call) -> FakeResponse:
    return error(131, "Internal", **orjson.loads(call.honest()[2]))


def _text(status: int, body: str, **headers: str) -> Damage:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: (status, {"Content-Type": "text/plain", **named}, body.encode())


def _page(status: int, title: str, body: str, **headers: str) -> Damage:
    return lambda _: (status, headers, other_page(title, body))


def _error(code: int, message: str, status: int = 200) -> Damage:
    return lambda _: error(code, message, status)


def _unavailable(_: Call) -> FakeResponse:
    unavailable = {"__typename": "UserUnavailable", "message": "User is suspended", "reason": "Suspended"}
    return as_json({"data": {"user": {"rest_id": "1", "result": unavailable}}})


_refused = _page(403, "403", "Forbidden")
_missing_flag = _error(336, "The following features cannot be null: a_brand_new_flag_enabled", 400)
_challenge = _page(403, "Just a moment...", '<script src="/cdn-cgi/challenge-platform/h/b"></script>')
_login = _page(302, "X", "", Location="/i/flow/login?redirect_after_login=%2Fx")
_no_login = _error(37, "Not authorized.", 403)
_NO_ACCOUNT: dict[str, Damage] = {EMBED: _no_entries, USER: _missing_account, TIMELINE: _missing_account}
_empty_shell = _page(200, "X", '<div id="root"></div>')

_OWN: dict[str, tuple[str, str, dict[str, Damage]]] = {
    # Name: code, description, and the damaged response by source. A source that is not listed responds correctly.
    "page-off": ("OK", "the platform refuses the request for the public page", {PAGE: _refused}),
    "embed-off": ("OK", "the platform refuses the request for the embed", {EMBED: _refused}),
    "user-off": ("OK", "the platform refuses the query for the user", {USER: _refused}),
    "timeline-off": ("OK", "the platform refuses the query for the posts", {TIMELINE: _refused}),
    "calls-off": ("OK", "the platform refuses all queries", dict.fromkeys(CALLS, _refused)),
    "only-page": ("OK", "only the public page works; the other sources are refused",
        dict.fromkeys((EMBED, *CALLS), _refused)),
    "only-embed": ("OK", "only the embed works; the other sources are refused",
        dict.fromkeys((PAGE, *CALLS), _refused)),
    "only-calls": ("OK", "only the queries work; the other sources are refused",
        dict.fromkeys((PAGE, EMBED), _refused)),
    "only-user": ("UPSTREAM_BLOCKED", "only the user query works; the other sources are refused",
        dict.fromkeys((PAGE, EMBED, TIMELINE), _refused)),
    "all-off": ("UPSTREAM_BLOCKED", "all sources refuse requests", dict.fromkeys(ALL, _refused)),
    "not-found": ("TARGET_NOT_FOUND", "404 with the platform's not-found message",
        {PAGE: _missing_account} | _NO_ACCOUNT),
    "soft-gone": ("TARGET_NOT_FOUND", "the platform's not-found message with status 200",
        {PAGE: _page(200, "X", "<p>This account doesn’t exist</p>")} | _NO_ACCOUNT),
    "not-found-by-call": ("TARGET_NOT_FOUND", "the page is refused, and the responses to queries have no data",
        {PAGE: _refused} | _NO_ACCOUNT),
    "suspended": ("TARGET_RESTRICTED", "a page with the platform's message about suspended accounts",
        {PAGE: _page(200, "X", "<p>Account suspended</p>"), EMBED: _refused} | dict.fromkeys(CALLS, _unavailable)),
    "suspended-by-call": ("TARGET_RESTRICTED", "queries return a placeholder for a suspended account",
        dict.fromkeys((PAGE, EMBED), _refused) | dict.fromkeys(CALLS, _unavailable)),
    "suspended-by-code": (
        "TARGET_RESTRICTED",
        "queries return error 63 (suspended account)",
        dict.fromkeys((PAGE, EMBED), _refused) | dict.fromkeys(CALLS, _error(63, "User has been suspended.")),
    ),
    "login-wall": ("UPSTREAM_BLOCKED", "login pages and login errors from all sources", {
        PAGE: _login, EMBED: _login, **dict.fromkeys(CALLS, _no_login),
    }),
    "login-page": ("OK", "a redirect to the login page instead of the public page", {PAGE: _login}),
    "challenge": ("UPSTREAM_BLOCKED", "403 with a challenge page", dict.fromkeys(ALL, _challenge)),
    "soft-challenge": ("UPSTREAM_BLOCKED", "a challenge page with status 200", dict.fromkeys(
        ALL, _page(200, "Just a moment...", ""),
    )),
    "no-data": ("EXTRACTION_FAILED", "responses without data", {
        PAGE: _empty_shell, EMBED: _empty_shell, **dict.fromkeys(CALLS, _text(200, "{}")),
    }),
    "broken": ("EXTRACTION_FAILED", "truncated data from all sources", dict.fromkeys(ALL, _cut)),
    "broken-page": ("OK", "a public page with truncated data", {PAGE: _cut}),
    "blind": ("EXTRACTION_FAILED", "data whose mandatory parts have renamed keys", dict.fromkeys(ALL, _renamed)),
    "wrong-profile": ("EXTRACTION_FAILED", "another account's profile", dict.fromkeys((PAGE, EMBED, USER), _honest)),
    "wrong-profile-once": ("OK", "another account's profile, for the first request only",
        dict.fromkeys((PAGE, EMBED, USER), _honest)),
    "stale-ids": ("OK", "all query ids are out of date", dict.fromkeys(CALLS, lambda _: stale_query())),
    "stale-first-id": ("OK", "the first query id is out of date", dict.fromkeys(CALLS, _stale_first)),
    "wrong-query-ids": ("OK", "all query ids are out of date except the ids on the public page", {
        PAGE: _names_new_ids, **dict.fromkeys(CALLS, _new_ids_only),
    }),
    "missing-flag": ("OK", "the queries require a new flag", dict.fromkeys(CALLS, _missing_flag)),
    "token-refused": ("OK", "the queries reject all tokens", dict.fromkeys(CALLS, _error(239, "Bad guest token", 403))),
    "token-refused-once": ("OK", "the queries reject the first token", dict.fromkeys(CALLS, _text(403, "Forbidden"))),
    "calls-for-members": ("OK", "queries return the error that guests may not use them",
        dict.fromkeys(CALLS, _no_login)),
    "calls-limited": ("OK", "queries get status 429", dict.fromkeys(CALLS, _error(88, "Rate limit exceeded.", 429))),
    "calls-failing": ("OK", "queries return error 131", dict.fromkeys(CALLS, _error(131, "Internal"))),
    "calls-overloaded": ("OK", "queries return the error that the API is overloaded",
        dict.fromkeys(CALLS, _error(0, "LoadShed"))),
    "calls-as-pages": ("OK", "queries return HTML instead of JSON",
        dict.fromkeys(CALLS, _page(200, "X", "Something went wrong"))),
    "errors-beside": ("OK", "query responses that have errors in addition to complete data",
        dict.fromkeys(CALLS, _errors_beside)),
    "all-limited": ("UPSTREAM_RATE_LIMITED", "every source responds with 429, each in its own format", {
        PAGE: _text(429, ""), EMBED: _text(429, "Rate limit exceeded\n"),
        **dict.fromkeys(CALLS, _error(88, "Rate limit exceeded.", 429)),
    }),
    "embed-limited": ("OK", "the embed gets status 429 with one line of text",
        {EMBED: _text(429, "Rate limit exceeded\n")}),
    "embed-empty": ("OK", "an embed without entries", {EMBED: _no_entries}),
    "only-cursors": ("OK", "a timeline with cursors but without posts", {TIMELINE: _cursors_only}),
    "same-cursor": ("OK", "the second page returns the same cursor that was sent with its request",
        {TIMELINE: _same_cursor}),
    "stale-cursor": ("OK", "the first page is correct; the cursor to the second page is rejected (`INVALID_REQUEST`)",
        {TIMELINE: _stale_cursor}),
}  # fmt: skip

FAULTS = COMMON | {name: Fault(code, about) for name, (code, about, _) in _OWN.items()}
"""The microblog's faults by name. ``Site.faults`` has the handles that select them."""

WRONG_PROFILE_FAULTS = frozenset({"wrong-profile"})
"""Faults for which the site sends the response for ``OTHER_HANDLE`` instead of the target's."""
OTHER_HANDLE = "iron_meadow"

_COMPLETE_AFTER_RETRY = {
    "errors-beside", "same-cursor", "stale-cursor", "stale-first-id",
    "token-refused-once", "wrong-profile-once", "wrong-query-ids",
}  # fmt: skip
"""Faults after which the record contains the data of all sources, because the failed requests are retried, or because
the responses of the first page contain the data."""


def applies_to(name: str, source: str) -> bool:
    """Whether a fault affects requests to a source."""
    return (name in COMMON and source != "") or (name in _OWN and source in _OWN[name][2])


def failing_sources(name: str) -> set[str]:
    """Return the sources whose data is missing from the record because of a fault."""
    return set() if name not in _OWN or name in _COMPLETE_AFTER_RETRY else set(_OWN[name][2])


def ends_early(name: str, number: int) -> bool:
    """Whether a fault makes page ``number`` the timeline's last page, although the account has further posts."""
    return name == "only-cursors" or (name == "same-cursor" and number > 1)


def damaged(name: str, call: Call) -> FakeResponse:
    """Build the damaged response for a fault that only the microblog has."""
    return _OWN[name][2][call.source](call)
