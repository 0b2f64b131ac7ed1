"""Photo app: raises the matching error for a response that lacks the requested data.

Nearly every response has status 200. Therefore blocks and failures are recognised by the URL path, by the page's route
and by messages. A statement about the post needs such a mark, which the error's details quote: the absence of data
means only that the visitor was throttled. Data is what a page has under the result of a query. The parameters of a
page's route are not data, although they contain the post's shortcode and ids. The link-preview tags (``og:url``) are
used only to find the post that a page is for.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn
from urllib.parse import urlsplit

from web_poet import HttpResponse

from crawler.errors import (
    Detail,
    ExtractionFailed,
    ScrapeError,
    TargetNotFound,
    TargetRestricted,
    UpstreamBlocked,
    UpstreamRateLimited,
    quoted,
)
from crawler.platforms.page import missing_error
from crawler.platforms.photoapp.payload import Ruling
from crawler.platforms.photoapp.urls import shortcode_in
from crawler.reading.contract import Unread, invalid_error
from crawler.reading.documents import all_dicts, decode, dicts, is_json, scripts_with
from crawler.reading.values import text

_ROUTE = re.compile(rb'"canonicalRouteName"\s*:\s*"(?P<name>[^"]{1,200})"')
_POLICY = re.compile(rb'"tracePolicy"\s*:\s*"(?P<name>\w{1,50}\.\w{1,150})"')
"""These match the platform's own names for the kind of page. The route name is missing in pages before 2025 (capture
a6db9bbe1692), which have only the name of the trace policy."""
OWN_ROUTES = ("comet.igweb.", "comet.instagramwebloggedout.", "polaris.")
"""The beginnings of all recorded names. The company's other platforms, which share the frontend, have other names."""
GONE_ROUTES = ("ErrorRoute", "httpErrorPage")
_POST_ROUTE = re.compile("Post|Reel", re.IGNORECASE)
QUERY = b'"adp_Polaris'
"""The beginning of the names of queries whose results are in a page. No page for a throttled visitor has one (8 of 8),
recorded pages with data have 1 to 40."""
_RESULT = b'"result":{"data":'
_POST = _RESULT + b'{"xig_polaris_media":{'
_AFTER_POST = b',"extensions":'
_OG_URL = re.compile(
    rb"""<meta\b(?=[^<>]{0,700}?property=["']og:url["'])[^<>]{0,200}?content=["'](?P<url>[^"'<>]{1,500})"""
)
_OG_CAPTION = re.compile(rb'<meta\s+property="og:title"\s+content="[^"<>]{1,9999}&quot;"')
"""Matches the link-preview title of a post with a caption, which ends with the caption in quotes. The title of a post
without a caption is the owner's name (capture a6db9bbe1692)."""

# A byte order mark, and a guard that keeps other sites from running the response as a script, may precede the JSON.
_BEFORE_JSON = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*+(?:for \(;;\);\s*+)?(?=[\[{])")

LOGIN_PATHS = ("/accounts/login", "/accounts/signup", "/accounts/emailsignup")
CHALLENGE_PATHS = ("/challenge", "/accounts/suspended", "/accounts/disabled", "/auth_platform", "/checkpoint")
GATING_REASONS: dict[int | None, str] = {2: "region_gate", 3: "age_gate"}
"""Error reasons by the ruling's ``gating_type``. A ruling is the platform's statement that it withholds a post."""
MAX_MESSAGE_BYTES = 500
"""Only a response with fewer bytes can be one of the platform's plain-text messages."""

# Words and error codes in the platform's refusals, with the error class and the reason that they mean. Between words,
# the platform writes blanks or underscores. The codes are known from other projects, such as gallery-dl.
_MESSAGES: tuple[tuple[tuple[str, ...], type[ScrapeError], str], ...] = (
    (("wait a few minutes", "rate limit", "1675004"), UpstreamRateLimited, "rate_limited"),
    (("checkpoint required", "challenge required", "feedback required"), UpstreamBlocked, "challenge"),
    (("age-restricted",), TargetRestricted, "age_gate"),
    (("in your region", "in your country"), TargetRestricted, "region_gate"),
    (("available to everyone", "restricted"), TargetRestricted, "sensitive"),
    (("logged out query",), ExtractionFailed, "gated_query"),
    (("secfetch policy", "useragent mismatch", "1357004"), UpstreamBlocked, "bad_client"),
    (("login required", "1357001"), UpstreamBlocked, "login_wall"),
    (("media not found", "does not exist", "4630001"), TargetNotFound, "not_found"),
)


def json_payload(body: bytes) -> Any:
    """Decode a JSON response, without the guard ``for (;;);`` at its start. Return None for HTML or other text.

    Raises:
        ExtractionFailed: the response looks like JSON but is malformed.
    """
    before = _BEFORE_JSON.match(body)
    return decode(body[before.end() :], what="response") if before else None


def page_data(body: bytes, key: str) -> Iterator[Any]:
    """Yield the decoded JSON of each script element of the page whose data contains the key.

    Raises:
        ExtractionFailed: all of these scripts are malformed.
    """
    found = 0
    broken: ExtractionFailed | None = None
    for script in scripts_with(body, b'"%b"' % key.encode()):
        if not is_json(script):
            continue  # not data, but program code that contains the key
        try:
            document = decode(script, what="data-sjs")
        except ExtractionFailed as error:
            broken = error
        else:
            found += 1
            yield document
    if broken is not None and not found:
        raise broken


def post_block(body: bytes) -> bytes | None:
    """Cut the object with the post out of a logged-out page, without decoding the JSON around it.

    The object is found by the texts before and after it. The text before it is long, because ``bytes.find`` is faster
    for longer texts. Return None if the page lacks one of these texts. If the text directly after the post is another
    one, the cut object is too long, and not valid JSON.
    """
    start = body.find(_POST)
    end = body.find(_AFTER_POST, start) if start >= 0 else -1
    return body[start + len(_RESULT) : end] if end >= 0 else None


def query_results(body: bytes, document: object) -> list[dict[str, Any]]:
    """Return the results of queries in a page, or the JSON response itself: objects with ``data`` and ``errors``.

    ``document``: the decoded response if it is JSON, else None.
    """
    if document is not None:
        return dicts([document])
    results: list[Any] = []
    for script in scripts_with(body, b'"data"'):
        with suppress(ExtractionFailed):  # program code, or a block that is not the post's
            results += (each.get("result") for each in all_dicts(decode(script, what="data-sjs")))
    return [each for each in dicts(results) if "data" in each]


def holds_data(data: Any) -> bool:
    """Whether the ``data`` of a query's result has any value, other than null or an empty list or object."""
    return any(value not in (None, [], {}) for value in data.values()) if isinstance(data, dict) else bool(data)


def keys_of(result: dict[str, Any]) -> set[str]:
    """Return the keys in the ``data`` of a query's result, and those that the paths of its errors begin with."""
    paths = (each.get("path") for each in dicts(result.get("errors")))
    data = result.get("data")
    return {
        *(data if isinstance(data, dict) else ()),
        *(text(path[0]) for path in paths if isinstance(path, list) and path),
    }


def route_of(body: bytes) -> str:
    """Return the page's route name, or the name of its trace policy, or ""."""
    found = _ROUTE.search(body) or _POLICY.search(body)
    return found["name"].decode(errors="replace") if found else ""


def preview_shortcode(body: bytes) -> str | None:
    """Return the shortcode in the page's link-preview tags, or None."""
    found = _OG_URL.search(body)
    return shortcode_in(html.unescape(found["url"].decode(errors="replace"))) if found else None


def previews_caption(body: bytes) -> bool:
    """Whether the page's link-preview tags have a caption."""
    return _OG_CAPTION.search(body) is not None


def raise_for_blocks(response: HttpResponse, payload: Any) -> None:
    """Raise an error if the response's URL is one for blocked visitors, or if its message refuses the request.

    ``payload`` is the decoded response if it is JSON, else None.

    Raises:
        UpstreamBlocked: the response is a challenge or the login page, or its message means a block.
        UpstreamRateLimited: the message means a rate limit, or status 403 has the page "Page Not Found".
        TargetRestricted, TargetNotFound, ExtractionFailed: the message in the response means this error.
    """
    raise_for_blocked_path(urlsplit(str(response.url)).path)
    body: bytes = response.body
    if isinstance(payload, dict):
        _raise_for_message(payload)
    elif len(body) < MAX_MESSAGE_BYTES and not body.lstrip().startswith(b"<"):
        _raise_for_words(body.decode(errors="replace"), "")
    if response.status == 403 and b"<title>Page Not Found" in body:
        raise_for_rate_limit(quoted("403 Page Not Found", "status"))


def raise_for_blocked_path(path: str) -> None:
    """Raise an error if the platform redirects blocked visitors to this URL path.

    Raises:
        UpstreamBlocked: the path leads to the login page or to a challenge.
    """
    if path.startswith(CHALLENGE_PATHS):
        message = "The platform returned a challenge page."
        raise UpstreamBlocked(message, reason="challenge", details=quoted(path, "url"))
    if path.startswith(LOGIN_PATHS):
        raise_for_login(quoted(path, "url"))


def raise_for_login(mark: list[Detail]) -> NoReturn:
    """Raise the error for a response that is the login page, or that demands a login."""
    raise UpstreamBlocked("The platform returned its login page.", reason="login_wall", details=mark)


def is_refusal(body: str) -> bool:
    """Whether a response that is neither HTML nor JSON is one of the platform's plain-text messages."""
    return len(body) < MAX_MESSAGE_BYTES and _meaning(body) is not None


def _meaning(message: str) -> tuple[type[ScrapeError], str] | None:
    """Return the error class and the reason that a message means, or None for any other message."""
    folded = message.casefold().replace("_", " ")
    return next(((error, reason) for words, error, reason in _MESSAGES if any(map(folded.__contains__, words))), None)


def _raise_for_message(payload: dict[str, Any]) -> None:
    if payload.get("data"):
        return
    about = text(payload.get("description"))
    message = _texts(payload, "error", "errorSummary", "message") or (about and text(payload.get("title")))
    _raise_for_words(message, about)
    if payload.get("require_login") is True:
        raise_for_login(quoted("true", "require_login"))
    if about and message:  # a ruling in place of the post
        raise_for_ruling(Ruling(title=message, description=about))


def _texts(holder: dict[str, Any], *keys: str) -> str:
    return " ".join(filter(None, (text(holder.get(key)) for key in keys)))


def raise_for_rate_limit(mark: list[Detail]) -> NoReturn:
    """Raise the error for a response that states that the visitor sent too many requests."""
    raise UpstreamRateLimited("The platform's rate limit is reached.", reason="rate_limited", details=mark)


def _raise_for_words(message: str, about: str, *loc: str | int) -> None:
    if found := _meaning(message):
        error, reason = found
        stated = f"The platform refused the request: {(about or message)[:300]}"
        raise error(stated, reason=reason, details=quoted(message, *loc, "message"))


def raise_for_ruling(ruling: Ruling | None) -> None:
    """Raise an error if there is a ruling, the platform's statement that it withholds the post (capture 79e3d77ed295).

    Raises:
        TargetRestricted: the post is withheld. The error message quotes the ruling's title and description.
    """
    words = " ".join(filter(None, (ruling.title, ruling.description))) if ruling else ""
    if ruling is None or not (words or ruling.gating_type):
        return
    message = f"The platform withholds the post: {words[:300] or 'no reason given'}"
    mark = quoted(words or str(ruling.gating_type), "gating_ruling")
    raise TargetRestricted(message, reason=GATING_REASONS.get(ruling.gating_type, "gated"), details=mark)


def raise_for_query_errors(result: dict[str, Any]) -> None:
    """Raise an error if a query's result contains errors. Call this only for a result without a post.

    Raises:
        TargetNotFound: the result contains the error by which the platform reports missing and private posts.
        UpstreamRateLimited, UpstreamBlocked, TargetRestricted: an error of the result means this.
        ExtractionFailed: the result contains another error, as for a query that is out of date.
    """
    errors = dicts(result.get("errors"))
    for number, each in enumerate(errors):
        message = _texts(each, "code", "message")
        _raise_for_words(message, "", "errors", number)
        if "field_exception" in message:
            raise missing_or_private(quoted(message, "errors", number, "message"))
    if errors:
        problem = text(errors[0].get("message"))[:200]
        stated = f"The platform rejected the query: {problem}"
        raise invalid_error(stated, ["errors", 0], problem, "query_error", reason="stale_query")


def is_blind(unread: Unread) -> bool:
    """Whether an unread part means that a whole post could not be read, not only a key of the post."""
    return unread.cause != "missing" or unread.path.endswith((".if_not_gated_logged_out", ".items[]"))


def missing_or_private(mark: list[Detail]) -> TargetNotFound:
    """Create the error for a post of which the platform states that it does not show it to visitors."""
    message = "The post is missing or private: the platform does not show it to visitors."
    return TargetNotFound(message, reason="missing_or_private", details=mark)


def raise_for_landing_page(body: bytes) -> None:
    """Raise an error if the page is the landing page of mobile visitors (capture 00bbddc637de)."""
    route = route_of(body)
    if "LandingPage" in route:
        message = "The page is the landing page of mobile visitors, which has only a stub of the post."
        raise ExtractionFailed(message, reason="stub", details=quoted(route, "route"))


def raise_for_null(path: str) -> NoReturn:
    """Raise the error for a query's result without a post, if neither a ruling nor an error states why."""
    stated = "The query's result has no post, and the page does not state why."
    raise invalid_error(stated, [path], "No post", "null", reason="null_post")


def raise_for_shell(response: HttpResponse, shortcode: str | None, path: str, *, has_results: bool = False) -> NoReturn:
    """Raise the error that matches a page without the expected data.

    ``shortcode``: the requested post, or None. ``path``: the key under which the data was expected. ``has_results``:
    whether the page has results of queries.

    Raises:
        TargetNotFound: the page is the platform's error page (captures c130a4ec26b2, 6ddfea480abf).
        TargetRestricted: the page states a minimum age, as other projects reported in 2026-07 for some accounts.
        UpstreamBlocked: the page is the login page (capture 9208a8c6e6c1), or the home page (``gallery-dl``, issue
            9731).
        UpstreamRateLimited: the page is the post's page without its data, which rate-limited visitors get (captures
            2a9aac385ad4, 9c42b6d6b023, a6db9bbe1692; capture 5db59b3d97f9 has only its preview tags), or a page with a
            message about the rate limit.
        ExtractionFailed: the page belongs to another platform of the company (capture 02008551a853) or to another post,
            its results have unknown keys, or the kind of page is unknown.
    """
    body: bytes = response.body
    route = route_of(body)
    mark = quoted(route, "route")
    if b"wait a few minutes" in body:
        raise_for_rate_limit(quoted("wait a few minutes", "body"))
    if route and not route.startswith(OWN_ROUTES):
        message = f"The page does not belong to this platform: its route is {route[:100]}."
        raise missing_error(message, ["route"], reason="other_platform")
    if has_results:
        raise missing_error("The page's data has unknown keys.", [path], reason="blind")
    if b'"failure_reason":"MA"' in body and b'"restricted_age":' in body:
        message = "The platform withholds the post from visitors below an age."
        raise TargetRestricted(message, reason="age_gate", details=quoted("MA", "failure_reason"))
    if route.endswith(GONE_ROUTES):
        raise TargetNotFound("The post does not exist.", reason="not_found", details=mark)
    if "login" in route.lower() or urlsplit(str(response.url)).path == "/":
        raise_for_login(mark if route else quoted("/", "url"))
    shown = preview_shortcode(body)
    if shown and shortcode and shown != shortcode:
        raise missing_error(f"The page is for the post {shown}, not {shortcode}.", [path], reason="wrong_post")
    if _POST_ROUTE.search(route) or (shown and b"<script" not in body):
        message = "The platform returned the page without its data, as it does for throttled visitors."
        mark = mark if route else quoted(shown or "", "og:url")
        raise UpstreamRateLimited(message, reason="throttled_shell", details=mark)
    raise missing_error("The response has no known form.", [path], reason="unknown_form")
