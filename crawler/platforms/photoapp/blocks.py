"""Photo app: what an answer says of itself, and what is said of an answer without data.

The platform answers nearly everything with status 200: an answer is told by its route's name, by the words of its
JSON and by what its data lacks. What the page says of itself for link previews (``og:url``) is a witness only: of
which post the page is, never of what is in it.
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
from crawler.platforms.page import missing
from crawler.platforms.photoapp.link import link_of_path
from crawler.reading.json import decode, dicts, dig, scripts_with
from crawler.reading.values import count, text

ROUTE = re.compile(rb'"canonicalRouteName"\s*:\s*"(?P<name>[^"]{1,200})"')
"""Which page the platform believes to have sent."""
_OG_URL = re.compile(
    rb"""<meta\b(?=[^<>]{0,700}?property=["']og:url["'])[^<>]{0,200}?content=["'](?P<url>[^"'<>]{1,500})"""
)

# A byte order mark, and what keeps other sites from including the answer as a program.
_BEFORE_JSON = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:for \(;;\);)?\s*(?=[\[{])")

LOGIN_PATHS = ("/accounts/login", "/accounts/signup", "/accounts/emailsignup")
CHALLENGE_PATHS = ("/challenge", "/accounts/suspended", "/accounts/disabled", "/auth_platform", "/checkpoint")
GATES: dict[int | None, str] = {2: "region_gate", 3: "age_gate"}
"""Kinds of ruling by which the platform withholds a post."""
RATE_LIMIT_ERROR = 1675004
SHORT = 500
"""Bytes of the longest answer that is only a sentence."""

_GONE = ("The platform has no such post.", "not_found")
MISSING_OR_PRIVATE = "The platform shows no such post to visitors: it is missing or private."

# Words of the JSON refusals, and what each means.
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


def json_answer(body: bytes) -> Any:
    """An answer that is JSON, behind whatever may stand before it; None for a page.

    Raises:
        ExtractionFailed: it breaks off.
    """
    before = _BEFORE_JSON.match(body)
    return decode(body[before.end() :], what="answer") if before else None


def page_data(body: bytes, key: str) -> Iterator[Any]:
    """The data scripts of a page that have a key.

    Raises:
        ExtractionFailed: none of them can be read.
    """
    found = 0
    broken: ExtractionFailed | None = None
    for script in scripts_with(body, b'"%b"' % key.encode()):
        if not script.lstrip().startswith((b"{", b"[")):
            continue  # a program that names the key
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
    """The name of the route, without what stands before it; "" where there is none."""
    found = ROUTE.search(body)
    return found["name"].decode(errors="replace").rpartition(".")[2] if found else ""


def witnessed_shortcode(body: bytes) -> str | None:
    """The post that the page's preview tags name, None where they name none."""
    found = _OG_URL.search(body)
    if found is None:
        return None
    try:
        link = link_of_path(urlsplit(html.unescape(found["url"].decode(errors="replace"))).path)
    except ValueError:  # no URL
        return None
    return link.shortcode if link else None


def raise_for_blocks(response: HttpResponse, answer: Any) -> None:
    """Raises for answers that are walls by where they were found, or that say no. ``answer`` is what is JSON.

    Raises:
        UpstreamBlocked: a challenge, or the login page by its address.
        UpstreamRateLimited, TargetRestricted, TargetNotFound, ExtractionFailed: the answer says so.
    """
    raise_for_blocked_path(urlsplit(str(response.url)).path, response.status)
    body: bytes = response.body
    if isinstance(answer, dict):
        _raise_for_message(answer, response.status)
    elif len(body) < SHORT and not body.lstrip().startswith(b"<"):
        _raise_for_words(body.decode(errors="replace"), "", response.status)
    if response.status == 403 and b"<title>Page Not Found" in body:
        raise UpstreamRateLimited("The platform asks for fewer requests.", upstream_status=403, reason="rate_limited")


def raise_for_blocked_path(path: str, status: int | None) -> None:
    """Raises for the addresses to which the platform leads visitors that it does not want.

    Raises:
        UpstreamBlocked: the login page or a challenge.
    """
    if path.startswith(CHALLENGE_PATHS):
        raise UpstreamBlocked("The platform asks for a proof.", upstream_status=status, reason="challenge")
    if path.startswith(LOGIN_PATHS):
        raise_for_login(status)


def raise_for_login(status: int | None) -> NoReturn:
    """Raises for the login page, under whatever address."""
    raise UpstreamBlocked("The platform shows its login page.", upstream_status=status, reason="login_wall")


def is_refusal(body: str) -> bool:
    """Whether an answer that is neither a page nor JSON is one of the platform's short sentences."""
    return len(body) < SHORT and any(word in body.casefold() for words, _, _ in _MESSAGES for word in words)


def _raise_for_message(answer: dict[str, Any], status: int | None) -> None:
    if count(answer.get("error")) == RATE_LIMIT_ERROR:
        raise UpstreamRateLimited(
            "The platform asks for fewer requests.", upstream_status=status, reason="rate_limited"
        )
    if answer.get("data") or answer.get("items"):
        return
    about = text(answer.get("description"))
    message = text(answer.get("message")) or (about and text(answer.get("title")))
    _raise_for_words(message, about, status)
    if answer.get("require_login") is True:
        raise_for_login(status)
    if about and message:  # a ruling without the post
        raise_for_ruling({"title": message, "description": about}, status)


def _raise_for_words(message: str, about: str, status: int | None) -> None:
    said = message.casefold()
    for words, error, reason in _MESSAGES:
        if any(word in said for word in words):
            raise error(f"The platform says: {(about or message)[:300]}", upstream_status=status, reason=reason)


def raise_for_ruling(ruling: object, status: int | None) -> None:
    """Raises where the platform says why it withholds a post.

    Raises:
        TargetRestricted: with the platform's title and description.
    """
    if not isinstance(ruling, dict) or not ruling:
        return
    words = " ".join(filter(None, (text(ruling.get("title")), text(ruling.get("description")))))
    raise TargetRestricted(
        f"The platform withholds the post: {words[:300] or 'it does not say why'}",
        upstream_status=status,
        reason=GATES.get(count(ruling.get("gating_type")), "gated"),
    )


def raise_for_query_errors(answer: Any, status: int | None) -> None:
    """Raises for the errors of a query that gave no data. Where it gave some they do no harm.

    Raises:
        TargetNotFound: how the query of single items says that there is none.
        UpstreamRateLimited: too many queries.
        ExtractionFailed: the query is an old one.
    """
    errors = dicts(dig(answer, "errors"))
    if not errors:
        return
    message = text(errors[0].get("message"))
    if any(count(error.get("code")) == RATE_LIMIT_ERROR for error in errors):
        raise UpstreamRateLimited(
            "The platform asks for fewer requests.", upstream_status=status, reason="rate_limited"
        )
    if "field_exception" in message:
        raise TargetNotFound(MISSING_OR_PRIVATE, upstream_status=status, reason="missing_or_private")
    raise ExtractionFailed(
        f"The platform does not answer the query: {message[:200]}",
        details=[{"loc": ["errors", 0], "msg": message[:200], "type": "query_error"}],
        upstream_status=status,
        reason="stale_query",
    )


def raise_if_unrecognised(path: str) -> NoReturn:
    """Raises for data that nobody here can read: that is not the same as none."""
    details: list[Detail] = [{"loc": [path], "msg": "Input has unknown names", "type": "unknown_names"}]
    raise ExtractionFailed("The page has data whose names are not known.", details=details, reason="blind")


def raise_for_shell(response: HttpResponse, shortcode: str | None, path: str) -> NoReturn:
    """Raises what an answer without data stands for. ``path`` is where the data should be.

    Raises:
        TargetNotFound: the error page.
        UpstreamBlocked: the login page, a challenge, the home page.
        UpstreamRateLimited: the post's own page without its data, as throttled visitors get it.
        ExtractionFailed: the data has other names than ours, another post's page, or a page that says nothing.
    """
    body: bytes = response.body
    status = response.status
    route = route_of(body)
    if "ErrorRoute" in route:
        raise TargetNotFound(_GONE[0], upstream_status=status, reason=_GONE[1])
    if "Challenge" in route or "Checkpoint" in route or "Suspended" in route:
        raise UpstreamBlocked("The platform asks for a proof.", upstream_status=status, reason="challenge")
    if any(word in route for word in ("Login", "Signup", "Home")) or urlsplit(str(response.url)).path == "/":
        raise_for_login(status)
    if b'"__isXIGPolarisMedia"' in body or b'"if_not_gated_logged_out"' in body:
        raise_if_unrecognised(path)
    witness = witnessed_shortcode(body)
    if witness and shortcode and witness != shortcode:
        raise missing("The page is of another post than asked for.", [path], reason="wrong_post")
    if witness or any(word in route for word in ("Post", "Reel", "Media", "Clips")):
        raise UpstreamRateLimited(
            "The platform sent the page without its data, as it does for visitors that ask too often.",
            upstream_status=status,
            reason="throttled_shell",
        )
    raise missing("The page has no data block.", [path], reason="no_data_block")
