"""Photo app: classifies responses without a post's data, and raises the matching error.

Nearly every response has status 200, so blocks and failures are recognised by the route's name, by the messages of JSON
responses and by missing data. The link-preview tags (``og:url``) identify the page's post; they are not a source of
data.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
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
from crawler.platforms.photoapp.link import link_of_path
from crawler.reading.json import decode, dicts, dig, scripts_with
from crawler.reading.values import count, text

ROUTE = re.compile(rb'"canonicalRouteName"\s*:\s*"(?P<name>[^"]{1,200})"')
"""The kind of page, by the platform's own name."""
_OG_URL = re.compile(
    rb"""<meta\b(?=[^<>]{0,700}?property=["']og:url["'])[^<>]{0,200}?content=["'](?P<url>[^"'<>]{1,500})"""
)

# A byte order mark, and the guard that keeps other sites from including the response as a script.
_BEFORE_JSON = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:for \(;;\);)?\s*(?=[\[{])")

LOGIN_PATHS = ("/accounts/login", "/accounts/signup", "/accounts/emailsignup")
CHALLENGE_PATHS = ("/challenge", "/accounts/suspended", "/accounts/disabled", "/auth_platform", "/checkpoint")
GATING_REASONS: dict[int | None, str] = {2: "region_gate", 3: "age_gate"}
"""Error reasons by the ruling's kind (``gating_type``)."""
RATE_LIMIT_ERROR = 1675004
MAX_MESSAGE_BYTES = 500
"""Bytes (exclusive) up to which a response may be a plain-text message."""

MISSING_OR_PRIVATE = "The post is missing or private: the platform does not show it to visitors."

# Words of JSON refusals, with their error and reason.
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
    """Decode a JSON response, without the guard before it. None for an HTML page.

    Raises:
        ExtractionFailed: the JSON is malformed.
    """
    before = _BEFORE_JSON.match(body)
    return decode(body[before.end() :], what="response") if before else None


def page_data(body: bytes, key: str) -> Iterator[Any]:
    """Yield the decoded data scripts of a page that contain a key.

    Raises:
        ExtractionFailed: every one of them is malformed.
    """
    found = 0
    broken: ExtractionFailed | None = None
    for script in scripts_with(body, b'"%b"' % key.encode()):
        if not script.lstrip().startswith((b"{", b"[")):
            continue  # program code that contains the key
        try:
            document = decode(script, what="data-sjs")
        except ExtractionFailed as error:
            broken = error
        else:
            found += 1
            yield document
    if broken is not None and not found:
        raise broken


def route_of(body: bytes) -> str:
    """The last part of the route's name, or ""."""
    found = ROUTE.search(body)
    return found["name"].decode(errors="replace").rpartition(".")[2] if found else ""


def preview_shortcode(body: bytes) -> str | None:
    """The shortcode in the page's link-preview tags, or None."""
    found = _OG_URL.search(body)
    if found is None:
        return None
    try:
        link = link_of_path(urlsplit(html.unescape(found["url"].decode(errors="replace"))).path)
    except ValueError:  # not a URL
        return None
    return link.shortcode if link else None


def raise_for_blocks(response: HttpResponse, payload: Any) -> None:
    """Raise for blocks by URL, and for refusals by message. ``payload`` is the decoded response if it is JSON.

    Raises:
        UpstreamBlocked: a challenge, or the login page by its URL.
        UpstreamRateLimited, TargetRestricted, TargetNotFound, ExtractionFailed: by the response's message.
    """
    raise_for_blocked_path(urlsplit(str(response.url)).path, response.status)
    body: bytes = response.body
    if isinstance(payload, dict):
        _raise_for_message(payload, response.status)
    elif len(body) < MAX_MESSAGE_BYTES and not body.lstrip().startswith(b"<"):
        _raise_for_words(body.decode(errors="replace"), "", response.status)
    if response.status == 403 and b"<title>Page Not Found" in body:
        raise UpstreamRateLimited("The platform's rate limit is reached.", upstream_status=403, reason="rate_limited")


def raise_for_blocked_path(path: str, status: int | None) -> None:
    """Raise for URL paths of blocks: the platform redirects unwanted visitors to them.

    Raises:
        UpstreamBlocked: the login page or a challenge.
    """
    if path.startswith(CHALLENGE_PATHS):
        raise UpstreamBlocked("The platform returned a challenge page.", upstream_status=status, reason="challenge")
    if path.startswith(LOGIN_PATHS):
        raise_for_login(status)


def raise_for_login(status: int | None) -> NoReturn:
    """Raise the error for the login page."""
    raise UpstreamBlocked("The platform returned its login page.", upstream_status=status, reason="login_wall")


def is_refusal(body: str) -> bool:
    """Whether a response that is neither HTML nor JSON is one of the platform's plain-text messages."""
    return len(body) < MAX_MESSAGE_BYTES and any(word in body.casefold() for words, _, _ in _MESSAGES for word in words)


def _raise_for_message(payload: dict[str, Any], status: int | None) -> None:
    if count(payload.get("error")) == RATE_LIMIT_ERROR:
        raise UpstreamRateLimited(
            "The platform's rate limit is reached.", upstream_status=status, reason="rate_limited"
        )
    if payload.get("data") or payload.get("items"):
        return
    about = text(payload.get("description"))
    message = text(payload.get("message")) or (about and text(payload.get("title")))
    _raise_for_words(message, about, status)
    if payload.get("require_login") is True:
        raise_for_login(status)
    if about and message:  # a ruling without a post
        raise_for_ruling({"title": message, "description": about}, status)


def _raise_for_words(message: str, about: str, status: int | None) -> None:
    folded = message.casefold()
    for words, error, reason in _MESSAGES:
        if any(word in folded for word in words):
            raise error(
                f"The platform refused the request: {(about or message)[:300]}", upstream_status=status, reason=reason
            )


def raise_for_ruling(ruling: object, status: int | None) -> None:
    """Raise if the platform withholds the post by a ruling.

    Raises:
        TargetRestricted: with the ruling's title and description.
    """
    if not isinstance(ruling, dict) or not ruling:
        return
    words = " ".join(filter(None, (text(ruling.get("title")), text(ruling.get("description")))))
    raise TargetRestricted(
        f"The platform withholds the post: {words[:300] or 'no reason given'}",
        upstream_status=status,
        reason=GATING_REASONS.get(count(ruling.get("gating_type")), "gated"),
    )


def raise_for_query_errors(payload: Any, status: int | None) -> None:
    """Raise for the errors of a query without data. Errors beside data are harmless.

    Raises:
        TargetNotFound: the query's error for posts that do not exist.
        UpstreamRateLimited: too many queries.
        ExtractionFailed: the query is out of date.
    """
    errors = dicts(dig(payload, "errors"))
    if not errors:
        return
    message = text(errors[0].get("message"))
    if any(count(error.get("code")) == RATE_LIMIT_ERROR for error in errors):
        raise UpstreamRateLimited(
            "The platform's rate limit is reached.", upstream_status=status, reason="rate_limited"
        )
    if "field_exception" in message:
        raise TargetNotFound(MISSING_OR_PRIVATE, upstream_status=status, reason="missing_or_private")
    raise ExtractionFailed(
        f"The platform rejected the query: {message[:200]}",
        details=[{"loc": ["errors", 0], "msg": message[:200], "type": "query_error"}],
        upstream_status=status,
        reason="stale_query",
    )


def raise_if_unrecognised(path: str) -> NoReturn:
    """Raise the error for data under unknown keys, as opposed to missing data."""
    details: list[Detail] = [{"loc": [path], "msg": "Input has unknown names", "type": "unknown_names"}]
    raise ExtractionFailed("The page's data has unknown keys.", details=details, reason="blind")


def raise_for_shell(response: HttpResponse, shortcode: str | None, path: str) -> NoReturn:
    """Raise the error that a response without data stands for. ``path`` is the expected place of the data.

    Raises:
        TargetNotFound: the error page.
        UpstreamBlocked: the login page, a challenge, the home page.
        UpstreamRateLimited: the post's own page without its data, as throttled visitors get it.
        ExtractionFailed: data under unknown keys, another post's page, or an unknown kind of page.
    """
    body: bytes = response.body
    status = response.status
    route = route_of(body)
    if "ErrorRoute" in route:
        raise TargetNotFound("The post does not exist.", upstream_status=status, reason="not_found")
    if "Challenge" in route or "Checkpoint" in route or "Suspended" in route:
        raise UpstreamBlocked("The platform returned a challenge page.", upstream_status=status, reason="challenge")
    if any(word in route for word in ("Login", "Signup", "Home")) or urlsplit(str(response.url)).path == "/":
        raise_for_login(status)
    if b'"__isXIGPolarisMedia"' in body or b'"if_not_gated_logged_out"' in body:
        raise_if_unrecognised(path)
    shown = preview_shortcode(body)
    if shown and shortcode and shown != shortcode:
        raise missing_error(f"The page is for the post {shown}, not {shortcode}.", [path], reason="wrong_post")
    if shown or any(word in route for word in ("Post", "Reel", "Media", "Clips")):
        raise UpstreamRateLimited(
            "The platform returned the page without its data, as it does for throttled visitors.",
            upstream_status=status,
            reason="throttled_shell",
        )
    raise missing_error("The page has no data block.", [path], reason="no_data_block")
