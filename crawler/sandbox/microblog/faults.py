"""What the simulated microblog can do wrong, source by source, and what is still true of an account then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.microblog.calls import as_json, cursor_to, error, page_of
from crawler.sandbox.microblog.page import embed_page, other_page
from crawler.sandbox.protocol import Answer, FakeRequest, HonestAnswer

PAGE, EMBED, USER, TIMELINE = "page", "embed", "user", "timeline"
CALLS = (USER, TIMELINE)
ALL = (PAGE, EMBED, USER, TIMELINE)


@dataclass(frozen=True)
class Call:
    """A request to a source for an account, and the honest answer to it."""

    ask: FakeRequest
    source: str
    handle: str
    honest: HonestAnswer
    first_id: bool
    """Whether the query id is the one that the account's call was first made with."""


Damage = Callable[[Call], Answer]


def nobody(source: str) -> Answer:
    """What a source says of a handle that does not exist."""
    if source in CALLS:
        return as_json({"data": {}})
    about = "The user profile you&#x27;re looking for could not be found."
    return 404, {}, other_page("X", "<h1>Hmm</h1>", f'<meta name="description" content="{about}"/>')


def _refused(_: Call) -> Answer:
    return 403, {}, other_page("403", "Forbidden")


def _nobody(call: Call) -> Answer:
    return nobody(call.source)


def _no_entries(call: Call) -> Answer:
    return 200, {}, embed_page(call.handle, [])


def _stale(_: Call) -> Answer:
    return 404, {"Content-Type": "text/plain"}, b" "


def _stale_first(call: Call) -> Answer:
    return _stale(call) if call.first_id else call.honest()


def _missing_flag(call: Call) -> Answer:
    if "a_brand_new_flag_enabled" in call.ask.args.get("features", ""):
        return call.honest()
    return error(336, "The following features cannot be null: a_brand_new_flag_enabled", 400)


def _as_it_is(call: Call) -> Answer:
    """Another account's answer is damage enough."""
    return call.honest()


def _cut(call: Call) -> Answer:
    status, headers, body = call.honest()
    if call.source == PAGE:
        end = body.index(b'"client:root"') if b'"client:root"' in body else len(body) // 2
        return status, headers, body[: end + (len(body) - end) // 2] + b"</script></body></html>"
    return status, headers, body[: len(body) // 2]


def _renamed(call: Call) -> Answer:
    """Posts whose parts have new names."""
    status, headers, body = call.honest()
    for name in (b"full_text", b"created_at_ms", b"created_at", b"screen_name"):
        body = body.replace(name + b'"', name + b'3"').replace(name + b":", name + b"3:")
    return status, headers, body.replace(b"additionalName", b"additionalName3").replace(b"profile:username", b"p")


def _cursors_only(call: Call) -> Answer:
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


def _same_cursor(call: Call) -> Answer:
    """From the second page on the cursor leads to where it came from."""
    sent = orjson.loads(call.ask.args["variables"]).get("cursor")
    status, headers, body = call.honest()
    if not sent:
        return status, headers, body
    return status, headers, body.replace(cursor_to(page_of(sent) + 1).encode(), sent.encode())


def _stale_cursor(call: Call) -> Answer:
    if orjson.loads(call.ask.args["variables"]).get("cursor"):
        return error(214, "BadRequest: cursor", 400)
    return call.honest()


def _errors_beside(call: Call) -> Answer:
    return error(131, "Internal", **orjson.loads(call.honest()[2]))


def _text(status: int, body: str, **headers: str) -> Damage:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: (status, {"Content-Type": "text/plain", **named}, body.encode())


def _page(status: int, title: str, body: str, **headers: str) -> Damage:
    return lambda _: (status, headers, other_page(title, body))


def _error(code: int, message: str, status: int = 200) -> Damage:
    return lambda _: error(code, message, status)


def _unavailable(_: Call) -> Answer:
    gone = {"__typename": "UserUnavailable", "message": "User is suspended", "reason": "Suspended"}
    return as_json({"data": {"user": {"rest_id": "1", "result": gone}}})


_challenge = _page(403, "Just a moment...", '<script src="/cdn-cgi/challenge-platform/h/b"></script>')
_login = _page(302, "X", "", Location="/i/flow/login?redirect_after_login=%2Fx")
_no_login = _error(37, "Not authorized.", 403)
_empty_shell = _page(200, "X", '<div id="root"></div>')

_OWN: dict[str, tuple[str, str, dict[str, Damage]]] = {
    # Name: code, about, and which sources do what. A source that is not named answers honestly.
    "page-off": ("OK", "no public page", {PAGE: _refused}),
    "embed-off": ("OK", "no embed", {EMBED: _refused}),
    "user-off": ("OK", "no call for the user", {USER: _refused}),
    "timeline-off": ("OK", "no call for the posts", {TIMELINE: _refused}),
    "calls-off": ("OK", "no calls", dict.fromkeys(CALLS, _refused)),
    "only-page": ("OK", "nothing but the public page", dict.fromkeys((EMBED, *CALLS), _refused)),
    "only-embed": ("OK", "nothing but the embed", dict.fromkeys((PAGE, *CALLS), _refused)),
    "only-calls": ("OK", "nothing but the calls", dict.fromkeys((PAGE, EMBED), _refused)),
    "only-user": ("UPSTREAM_BLOCKED", "nothing that has posts", dict.fromkeys((PAGE, EMBED, TIMELINE), _refused)),
    "all-off": ("UPSTREAM_BLOCKED", "no source at all", dict.fromkeys(ALL, _refused)),
    "not-found": ("TARGET_NOT_FOUND", "404 with the platform's words", {PAGE: _nobody}),
    "soft-gone": ("TARGET_NOT_FOUND", "200 with them", {PAGE: _page(200, "X", "<p>This account doesn’t exist</p>")}),
    "not-found-by-call": ("TARGET_NOT_FOUND", "a call without data", {
        PAGE: _refused, EMBED: _no_entries, USER: _nobody,
    }),
    "suspended": ("TARGET_RESTRICTED", "a page that says so", {PAGE: _page(200, "X", "<p>Account suspended</p>")}),
    "suspended-by-call": ("TARGET_RESTRICTED", "a user who is none", {
        PAGE: _refused, EMBED: _refused, USER: _unavailable,
    }),
    "suspended-by-code": (
        "TARGET_RESTRICTED",
        "error 63",
        {PAGE: _refused, EMBED: _refused, USER: _error(63, "User has been suspended.")},
    ),
    "login-wall": ("UPSTREAM_BLOCKED", "a login everywhere", {
        PAGE: _login, EMBED: _login, **dict.fromkeys(CALLS, _no_login),
    }),
    "login-page": ("OK", "a login instead of the page", {PAGE: _login}),
    "challenge": ("UPSTREAM_BLOCKED", "a page that asks whether a human is there", dict.fromkeys(ALL, _challenge)),
    "soft-challenge": ("UPSTREAM_BLOCKED", "the same as 200", dict.fromkeys(ALL, _page(200, "Just a moment...", ""))),
    "no-data": ("EXTRACTION_FAILED", "nothing to read, and no word why", {
        PAGE: _empty_shell, EMBED: _empty_shell, **dict.fromkeys(CALLS, _text(200, "{}")),
    }),
    "broken": ("EXTRACTION_FAILED", "data that ends in the middle", dict.fromkeys(ALL, _cut)),
    "broken-page": ("OK", "a page that ends in the middle of its data", {PAGE: _cut}),
    "blind": ("EXTRACTION_FAILED", "parts that have new names", dict.fromkeys(ALL, _renamed)),
    "wrong-profile": ("EXTRACTION_FAILED", "another profile", dict.fromkeys((PAGE, EMBED, USER), _as_it_is)),
    "wrong-profile-once": ("OK", "the same, at first", dict.fromkeys((PAGE, EMBED, USER), _as_it_is)),
    "stale-ids": ("OK", "the calls' ids are out of date", dict.fromkeys(CALLS, _stale)),
    "stale-first-id": ("OK", "the first of them is", dict.fromkeys(CALLS, _stale_first)),
    "missing-flag": ("OK", "the calls want a flag that is new", dict.fromkeys(CALLS, _missing_flag)),
    "token-refused": ("OK", "the calls take no token", dict.fromkeys(CALLS, _error(239, "Bad guest token", 403))),
    "token-refused-once": ("OK", "the calls want a newer token", dict.fromkeys(CALLS, _text(403, "Forbidden"))),
    "calls-for-members": ("OK", "the calls are not for guests", dict.fromkeys(CALLS, _no_login)),
    "calls-limited": ("OK", "too many calls", dict.fromkeys(CALLS, _error(88, "Rate limit exceeded.", 429))),
    "calls-failing": ("OK", "the calls report trouble", dict.fromkeys(CALLS, _error(131, "Internal"))),
    "calls-overloaded": ("OK", "the calls shed load", dict.fromkeys(CALLS, _error(0, "LoadShed"))),
    "calls-as-pages": ("OK", "markup instead of data", dict.fromkeys(CALLS, _page(200, "X", "Something went wrong"))),
    "errors-beside": ("OK", "errors beside data", dict.fromkeys(CALLS, _errors_beside)),
    "all-limited": ("UPSTREAM_RATE_LIMITED", "429 in each source's own words", {
        PAGE: _text(429, ""), EMBED: _text(429, "Rate limit exceeded\n"),
        **dict.fromkeys(CALLS, _error(88, "Rate limit exceeded.", 429)),
    }),
    "embed-limited": ("OK", "429 of twenty bytes", {EMBED: _text(429, "Rate limit exceeded\n")}),
    "embed-empty": ("OK", "an embed without entries", {EMBED: _no_entries}),
    "only-cursors": ("OK", "a timeline without posts, which a guest may get", {TIMELINE: _cursors_only}),
    "same-cursor": ("OK", "a second page that leads to itself", {TIMELINE: _same_cursor}),
    "stale-cursor": ("OK", "a cursor that is not taken (any more)", {TIMELINE: _stale_cursor}),
}  # fmt: skip

FAULTS = COMMON | {name: Fault(code, about) for name, (code, about, _) in _OWN.items()}
"""What the microblog can do wrong, by name; the handles are those of ``Site.faults``."""

MISTAKEN = frozenset({"wrong-profile"})
"""Faults that get the honest answer for ``OTHER_HANDLE`` in place of the one for their own account."""
OTHER_HANDLE = "iron_meadow"

_PASSING = {
    "errors-beside", "missing-flag", "same-cursor", "stale-cursor", "stale-first-id",
    "token-refused-once", "wrong-profile-once",
}  # fmt: skip
"""Faults after which every source has spoken."""


def applies_to(name: str, source: str) -> bool:
    """Whether a fault is one of this source."""
    return (name in COMMON and source != "") or (name in _OWN and source in _OWN[name][2])


def silent(name: str) -> set[str]:
    """The sources that say nothing."""
    return set() if name not in _OWN or name in _PASSING else set(_OWN[name][2])


def ends(name: str, number: int) -> bool:
    """Whether the timeline ends with this page although there are further posts."""
    return name == "only-cursors" or (name == "same-cursor" and number > 1)


def damaged(name: str, call: Call) -> Answer:
    """The answer of a fault of the microblog's own."""
    return _OWN[name][2][call.source](call)
