"""What the simulated microblog can do wrong, source by source, and what is still true of an account then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.faults import COMMON, Answer, Ask, Fault
from crawler.sandbox.microblog.page import embed_page, other_page

if TYPE_CHECKING:
    from crawler.sandbox.microblog.site import World

PAGE, EMBED, USER, TIMELINE = "page", "embed", "user", "timeline"
CALLS = (USER, TIMELINE)
ALL = (PAGE, EMBED, USER, TIMELINE)

FIRST_TOKEN = 2_107_302_643_823_767_876

Play = Callable[["World", Ask], Answer]


class Token:
    """The guest's token: given to whoever asks, and wanted with each call."""

    def __init__(self) -> None:
        self.given = 0
        self.refusing = False
        """Whether nobody gets one: switched by ``?refuse=1`` and ``?refuse=0``."""

    def activate(self, ask: Ask) -> Answer:
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

    def refusal(self, ask: Ask) -> Answer | None:
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


def nobody(source: str) -> Answer:
    """What a source says of a handle that does not exist."""
    if source in CALLS:
        return as_json({"data": {}})
    about = "The user profile you&#x27;re looking for could not be found."
    return 404, {}, other_page("X", "<h1>Hmm</h1>", f'<meta name="description" content="{about}"/>')


def _refused(_world: World, _ask: Ask) -> Answer:
    return 403, {}, other_page("403", "Forbidden")


def _nobody(world: World, ask: Ask) -> Answer:
    return nobody(world.source_of(ask)[0])


def _no_entries(world: World, ask: Ask) -> Answer:
    return 200, {}, embed_page(world.source_of(ask)[1], [])


def _stale(_world: World, _ask: Ask) -> Answer:
    return 404, {"Content-Type": "text/plain"}, b" "


def _stale_first(world: World, ask: Ask) -> Answer:
    _, query_id, call = ask.path.strip("/").split("/")
    key = f"{world.source_of(ask)[1]} {call}"
    return _stale(world, ask) if world.asked_ids.setdefault(key, query_id) == query_id else world.page(ask)


def _missing_flag(world: World, ask: Ask) -> Answer:
    if "a_brand_new_flag_enabled" in ask.args.get("features", ""):
        return world.page(ask)
    return error(336, "The following features cannot be null: a_brand_new_flag_enabled", 400)


def _wrong_profile(world: World, ask: Ask) -> Answer:
    source = world.source_of(ask)[0]
    return getattr(world, f"_{source}")(world.account("iron_meadow"), ask)  # type: ignore[no-any-return]


def _cut(world: World, ask: Ask) -> Answer:
    status, headers, body = world.page(ask)
    if world.source_of(ask)[0] == PAGE:
        end = body.index(b'"client:root"') if b'"client:root"' in body else len(body) // 2
        return status, headers, body[: end + (len(body) - end) // 2] + b"</script></body></html>"
    return status, headers, body[: len(body) // 2]


def _renamed(world: World, ask: Ask) -> Answer:
    """Posts whose parts have new names."""
    status, headers, body = world.page(ask)
    for name in (b"full_text", b"created_at_ms", b"created_at", b"screen_name"):
        body = body.replace(name + b'"', name + b'3"').replace(name + b":", name + b"3:")
    return status, headers, body.replace(b"additionalName", b"additionalName3").replace(b"profile:username", b"p")


def _cursors_only(world: World, ask: Ask) -> Answer:
    status, _, body = world.page(ask)
    data = orjson.loads(body)
    (added,) = (
        each
        for each in data["data"]["user"]["result"]["timeline"]["timeline"]["instructions"]
        if each["type"] == "TimelineAddEntries"
    )
    added["entries"] = [each for each in added["entries"] if each["entryId"].startswith(("cursor", "who"))]
    data["data"]["user"]["result"]["timeline"]["timeline"]["instructions"] = [added]
    return as_json(data, status)


def _same_cursor(world: World, ask: Ask) -> Answer:
    """From the second page on the cursor leads to where it came from."""
    sent = orjson.loads(ask.args["variables"]).get("cursor")
    status, headers, body = world.page(ask)
    if not sent:
        return status, headers, body
    number = world.page_number(sent)
    return status, headers, body.replace(world.cursor(number + 1).encode(), sent.encode())


def _stale_cursor(world: World, ask: Ask) -> Answer:
    if orjson.loads(ask.args["variables"]).get("cursor"):
        return error(214, "BadRequest: cursor", 400)
    return world.page(ask)


def _errors_beside(world: World, ask: Ask) -> Answer:
    return error(131, "Internal", **orjson.loads(world.page(ask)[2]))


def _text(status: int, body: str, **headers: str) -> Play:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _world, _ask: (status, {"Content-Type": "text/plain", **named}, body.encode())


def _page(status: int, title: str, body: str, **headers: str) -> Play:
    return lambda _world, _ask: (status, headers, other_page(title, body))


def _error(code: int, message: str, status: int = 200) -> Play:
    return lambda _world, _ask: error(code, message, status)


def _unavailable(_world: World, _ask: Ask) -> Answer:
    gone = {"__typename": "UserUnavailable", "message": "User is suspended", "reason": "Suspended"}
    return as_json({"data": {"user": {"rest_id": "1", "result": gone}}})


_challenge = _page(403, "Just a moment...", '<script src="/cdn-cgi/challenge-platform/h/b"></script>')
_login = _page(302, "X", "", Location="/i/flow/login?redirect_after_login=%2Fx")
_no_login = _error(37, "Not authorized.", 403)
_empty_shell = _page(200, "X", '<div id="root"></div>')

_OWN: dict[str, tuple[str, str, dict[str, Play]]] = {
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
    "wrong-profile": ("EXTRACTION_FAILED", "another profile", dict.fromkeys((PAGE, EMBED, USER), _wrong_profile)),
    "wrong-profile-once": ("OK", "the same, at first", dict.fromkeys((PAGE, EMBED, USER), _wrong_profile)),
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
"""What the microblog can do wrong, by name; the handles are those of ``World.faults``."""

_PASSING = {
    "errors-beside", "missing-flag", "same-cursor", "stale-cursor", "stale-first-id",
    "token-refused-once", "wrong-profile-once",
}  # fmt: skip
"""Faults after which every source has spoken."""


def concerns(name: str, source: str) -> bool:
    """Whether a fault is one of this source."""
    return (name in COMMON and source != "") or (name in _OWN and source in _OWN[name][2])


def silent(name: str) -> set[str]:
    """The sources that say nothing."""
    return set() if name not in _OWN or name in _PASSING else set(_OWN[name][2])


def ends(name: str, number: int) -> bool:
    """Whether the timeline ends with this page although there are further posts."""
    return name == "only-cursors" or (name == "same-cursor" and number > 1)


def damaged(world: World, name: str, ask: Ask) -> Answer:
    """The answer of a fault of the microblog's own."""
    source = world.source_of(ask)[0]
    return _OWN[name][2][source](world, ask)
