"""Photo app: raises the matching error for a response that lacks the requested data.

Nearly every response has status 200. Therefore blocks and failures are recognised by the URL path, by the page's route
name, by the messages in JSON responses, and by missing data. The link-preview tags (``og:url``) are used only to find
the post that a page is for.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
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
)
from crawler.platforms.page import missing_error
from crawler.platforms.photoapp.link import HOSTS, code_of_id, link_of_path
from crawler.platforms.photoapp.payload import Ruling
from crawler.reading.json import all_dicts, decode, dicts, dig, scripts_with
from crawler.reading.unread import Unread, invalid_error
from crawler.reading.values import count, text

ROUTE = re.compile(rb'"canonicalRouteName"\s*:\s*"(?P<name>[^"]{1,200})"')
"""Matches the platform's own name for the kind of page."""
ROUTES = "comet.igweb."
"""The beginning of all recorded route names. The company's other platforms, which share the frontend, have other route
names."""
_RESULT = b'"result":{"data":'
_POST = _RESULT + b'{"xig_polaris_media":{'
_AFTER_POST = b',"extensions":'
_OG_URL = re.compile(
    rb"""<meta\b(?=[^<>]{0,700}?property=["']og:url["'])[^<>]{0,200}?content=["'](?P<url>[^"'<>]{1,500})"""
)

# A byte order mark, and a guard that keeps other sites from running the response as a script, may precede the JSON.
_BEFORE_JSON = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:for \(;;\);)?\s*(?=[\[{])")

LOGIN_PATHS = ("/accounts/login", "/accounts/signup", "/accounts/emailsignup")
CHALLENGE_PATHS = ("/challenge", "/accounts/suspended", "/accounts/disabled", "/auth_platform", "/checkpoint")
GATING_REASONS: dict[int | None, str] = {2: "region_gate", 3: "age_gate"}
"""Error reasons by the ruling's ``gating_type``. A ruling is the platform's statement that it withholds a post."""
RATE_LIMIT_ERROR, GONE_ERROR = 1675004, 4630001
"""The platform's error codes for too many requests (known from ``gallery-dl``), and for a post that is gone (PH3-3)."""
MAX_MESSAGE_BYTES = 500
"""Only a response with fewer bytes can be one of the platform's plain-text messages."""
POST_KEYS = frozenset({"image_versions2", "display_url", "taken_at", "taken_at_timestamp", "like_count", "media_type"})
"""Keys that only posts have."""
STUB_KEYS = frozenset({"id", "__typename", "__isXIGPolarisMedia", "video_image"})
"""Keys of the stub that the mobile landing page contains instead of the post (PH3-6)."""
_ID = re.compile(r"(?:POLARIS_)?(?P<id>\d+)(?:_\d+)?", re.ASCII)
"""Matches a post's numeric id: ``POLARIS_<id>``, ``<id>_<owner's id>`` or ``<id>``."""
MIN_POST_KEYS = 15
"""An object with a post's code or id, and at least this many keys, counts as the post even if its keys are unknown."""

MISSING_OR_PRIVATE = "The post is missing or private: the platform does not show it to visitors."

# Words in the platform's refusals, with the error class and the reason that they mean.
_MESSAGES: tuple[tuple[tuple[str, ...], type[ScrapeError], str], ...] = (
    (("wait a few minutes", "rate limit"), UpstreamRateLimited, "rate_limited"),
    (("checkpoint_required", "challenge_required", "feedback_required"), UpstreamBlocked, "challenge"),
    (("age-restricted",), TargetRestricted, "age_gate"),
    (("in your region", "in your country"), TargetRestricted, "region_gate"),
    (("available to everyone", "restricted"), TargetRestricted, "sensitive"),
    (("logged out query",), ExtractionFailed, "gated_query"),
    (("secfetch policy", "useragent mismatch"), UpstreamBlocked, "bad_client"),
    (("login_required",), UpstreamBlocked, "login_wall"),
    (("media not found", "does not exist"), TargetNotFound, "not_found"),
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
        if not script.lstrip().startswith((b"{", b"[")):
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


def route_of(body: bytes) -> str:
    """Return the page's route name, or ""."""
    found = ROUTE.search(body)
    return found["name"].decode(errors="replace") if found else ""


def preview_shortcode(body: bytes) -> str | None:
    """Return the shortcode in the page's link-preview tags, or None."""
    found = _OG_URL.search(body)
    if found is None:
        return None
    try:
        url = urlsplit(html.unescape(found["url"].decode(errors="replace")))
    except ValueError:  # not a URL
        return None
    link = link_of_path(url.path) if url.netloc.lower() in {"", *HOSTS} else None
    return link.shortcode if link else None


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
        raise_for_rate_limit()


def raise_for_blocked_path(path: str) -> None:
    """Raise an error if the platform redirects blocked visitors to this URL path.

    Raises:
        UpstreamBlocked: the path leads to the login page or to a challenge.
    """
    if path.startswith(CHALLENGE_PATHS):
        raise UpstreamBlocked("The platform returned a challenge page.", reason="challenge")
    if path.startswith(LOGIN_PATHS):
        raise_for_login()


def raise_for_login() -> NoReturn:
    """Raise the error for a response that is the login page."""
    raise UpstreamBlocked("The platform returned its login page.", reason="login_wall")


def is_refusal(body: str) -> bool:
    """Whether a response that is neither HTML nor JSON is one of the platform's plain-text messages."""
    return len(body) < MAX_MESSAGE_BYTES and any(word in body.casefold() for words, _, _ in _MESSAGES for word in words)


def _raise_for_message(payload: dict[str, Any]) -> None:
    _raise_for_code([payload.get("error")])
    if payload.get("data") or payload.get("items"):
        return
    about = text(payload.get("description"))
    message = text(payload.get("message")) or (about and text(payload.get("title")))
    _raise_for_words(message, about)
    if payload.get("require_login") is True:
        raise_for_login()
    if about and message:  # a ruling in place of the post
        raise_for_ruling(Ruling(title=message, description=about))


def _raise_for_code(stated: list[Any]) -> None:
    codes = set(map(count, stated))
    if RATE_LIMIT_ERROR in codes:
        raise_for_rate_limit()
    if GONE_ERROR in codes:
        raise TargetNotFound("The post does not exist.", reason="not_found")


def raise_for_rate_limit() -> NoReturn:
    """Raise the error for a response that states that the visitor sent too many requests."""
    raise UpstreamRateLimited("The platform's rate limit is reached.", reason="rate_limited")


def _raise_for_words(message: str, about: str) -> None:
    folded = message.casefold()
    for words, error, reason in _MESSAGES:
        if any(word in folded for word in words):
            detail: Detail = {"loc": ["message"], "msg": message[:200], "type": "query_error"}
            raise error(
                f"The platform refused the request: {(about or message)[:300]}",
                details=[detail] if error is ExtractionFailed else None,
                reason=reason,
            )


def raise_for_ruling(ruling: Ruling | None) -> None:
    """Raise an error if there is a ruling, the platform's statement that it withholds the post (capture 79e3d77ed295).

    Raises:
        TargetRestricted: the post is withheld. The error message quotes the ruling's title and description.
    """
    if ruling is None:
        return
    words = " ".join(filter(None, (ruling.title, ruling.description)))
    message = f"The platform withholds the post: {words[:300] or 'no reason given'}"
    raise TargetRestricted(message, reason=GATING_REASONS.get(ruling.gating_type, "gated"))


def raise_for_query_errors(payload: Any) -> None:
    """Raise an error if a query's response contains errors. Call this only for a response without data.

    Raises:
        TargetNotFound: the response contains the error by which the platform reports missing and private posts.
        UpstreamRateLimited: too many queries were sent.
        ExtractionFailed: the response contains another error, as for a query that is out of date.
    """
    errors = dicts(dig(payload, "errors"))
    if not errors:
        return
    _raise_for_code([each.get("code") for each in errors])
    message = text(errors[0].get("message"))
    if "field_exception" in message:
        raise TargetNotFound(MISSING_OR_PRIVATE, reason="missing_or_private")
    problem = message[:200]
    stated = f"The platform rejected the query: {problem}"
    raise invalid_error(stated, ["errors", 0], problem, "query_error", reason="stale_query")


def is_stub(post: object) -> bool:
    """Whether an object has only keys of the stub that the mobile landing page contains instead of the post."""
    return isinstance(post, dict) and len(post) > 0 and post.keys() <= STUB_KEYS


def is_blind(unread: Unread) -> bool:
    """Whether an unread part means that a whole post could not be read, not only a key of the post."""
    return unread.cause != "missing" or unread.path.endswith((".if_not_gated_logged_out", ".items[]"))


def has_post(documents: Iterable[Any], shortcode: str | None) -> bool:
    """Whether JSON documents contain a post under any keys. In pages for rate-limited visitors, there is no post.

    An object counts as a post if it contains the requested code or id, and has a key of ``POST_KEYS`` or at least
    ``MIN_POST_KEYS`` keys. If ``shortcode`` is None, the object must have at least two keys of ``POST_KEYS``.
    """
    for each in (found for document in documents for found in all_dicts(document)):
        known = len(POST_KEYS & each.keys())
        if shortcode is None:
            if known > 1:
                return True
        elif (known or len(each) >= MIN_POST_KEYS) and any(_names(value, shortcode) for value in each.values()):
            return True
    return False


def _names(value: object, shortcode: str) -> bool:
    found = _ID.fullmatch(value) if isinstance(value, str) else None
    return value == shortcode or (found is not None and code_of_id(found["id"]) == shortcode)


def raise_for_unknown_keys(path: str) -> NoReturn:
    """Raise the error for a page whose data is under unknown keys. ``path`` is the key that was expected."""
    raise missing_error("The page's data has unknown keys.", [path], reason="blind")


def raise_for_shell(response: HttpResponse, shortcode: str | None, path: str) -> NoReturn:
    """Raise the error that matches a page without data.

    ``shortcode`` is the requested post, or None. ``path`` is the key under which the data was expected.

    Raises:
        TargetNotFound: the page is the platform's error page (capture c130a4ec26b2).
        TargetRestricted: the page states a minimum age, as other projects reported in 2026-07 for some accounts.
        UpstreamBlocked: the page is the login page (capture 9208a8c6e6c1), or the home page (``gallery-dl``, issue
            9731).
        UpstreamRateLimited: the page is the post's page without its data, which rate-limited visitors get (captures
            2a9aac385ad4, 5db59b3d97f9), or a page with a message about the rate limit (PH3-3).
        ExtractionFailed: the page belongs to another platform of the company (PH3-5) or to another post, the data has
            unknown keys, or the kind of page is unknown.
    """
    body: bytes = response.body
    route = route_of(body)
    if b"wait a few minutes" in body:
        raise_for_rate_limit()
    if route and not route.startswith(ROUTES):
        message = f"The page does not belong to this platform: its route is {route[:100]}."
        raise missing_error(message, ["canonicalRouteName"], reason="other_platform")
    if b'"failure_reason":"MA"' in body and b'"restricted_age":' in body:
        raise TargetRestricted("The platform withholds the post from visitors below an age.", reason="age_gate")
    if "ErrorRoute" in route:
        raise TargetNotFound("The post does not exist.", reason="not_found")
    if "Login" in route or urlsplit(str(response.url)).path == "/":
        raise_for_login()
    if b'"__isXIGPolarisMedia"' in body or b'"if_not_gated_logged_out"' in body:
        raise_for_unknown_keys(path)
    shown = preview_shortcode(body)
    if shown and shortcode and shown != shortcode:
        raise missing_error(f"The page is for the post {shown}, not {shortcode}.", [path], reason="wrong_post")
    if shown or "Post" in route or "Reel" in route:
        message = "The platform returned the page without its data, as it does for throttled visitors."
        raise UpstreamRateLimited(message, reason="throttled_shell")
    raise missing_error("The page contains no data block.", [path], reason="no_data_block")
