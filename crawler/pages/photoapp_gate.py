"""Photo app: what an answer says of itself, and what is said of an answer without data.

The platform answers nearly everything with status 200: an answer is told by its route's name, by the words of its
JSON and by what its data lacks. What the page says of itself for link previews (``og:url``) is a witness only: of
which post the page is, never of what is in it.
"""

from __future__ import annotations

import html
import re
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
)
from crawler.normalise import text
from crawler.payload import decode, dig, objects, scripts_with
from crawler.schemas.photoapp_link import link_of_path

ROUTE = re.compile(rb'"canonicalRouteName"\s*:\s*"(?P<name>[^"]{1,200})"')
"""Which page the platform believes to have sent."""
_OG_URL = re.compile(
    rb"""<meta\b[^<>]{0,200}?property=["']og:url["'][^<>]{0,200}?content=["'](?P<url>[^"'<>]{1,500})"""
)

# A byte order mark, and what keeps other sites from including the answer as a program.
_BEFORE_JSON = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:for \(;;\);)?\s*(?=[\[{])")

LOGIN_PATHS = ("/accounts/login", "/accounts/signup", "/accounts/emailsignup")
CHALLENGE_PATHS = ("/challenge", "/accounts/suspended", "/accounts/disabled", "/auth_platform", "/checkpoint")
GATES = {2: "region_gate", 3: "age_gate"}
"""Kinds of ruling by which the platform withholds a post."""
RATE_LIMIT_ERROR = 1675004

_GONE = ("The platform has no such post.", "not_found")
MISSING_OR_PRIVATE = "The platform shows no such post to visitors: it is missing or private."

# Words of the JSON refusals, and what each means.
_MESSAGES: tuple[tuple[tuple[str, ...], type[ScrapeError], str], ...] = (
    (("wait a few minutes", "rate limit"), UpstreamRateLimited, "rate_limited"),
    (("checkpoint_required", "challenge_required", "feedback_required"), UpstreamBlocked, "challenge"),
    (("available to everyone", "restricted"), TargetRestricted, "sensitive"),
    (("logged out query",), ExtractionFailed, "gated_query"),
    (("secfetch policy", "useragent mismatch"), UpstreamBlocked, "bad_client"),
    (("login_required",), UpstreamBlocked, "login_wall"),
    (("media not found", "does not exist"), TargetNotFound, "not_found"),
)


def documents(body: bytes, marks: tuple[str, ...]) -> list[Any]:
    """The JSON of an answer: the whole of it, or of a page the data scripts that contain a mark.

    Raises:
        ExtractionFailed: none of them can be read.
    """
    if is_json(body):
        return [decode(_BEFORE_JSON.sub(b"", body, count=1), what="answer")]
    found: list[Any] = []
    broken: ExtractionFailed | None = None
    for mark in marks:
        for script in scripts_with(body, b'"%b"' % mark.encode()):
            if not script.lstrip().startswith((b"{", b"[")):
                continue  # a program that names the key
            try:
                found.append(decode(script, what="data-sjs"))
            except ExtractionFailed as error:
                broken = error
    if broken is not None and not found:
        raise broken
    return found


def is_json(body: bytes) -> bool:
    """Whether an answer is JSON and no page, behind whatever may stand before it."""
    return _BEFORE_JSON.match(body) is not None


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


def refuse_walls(response: HttpResponse) -> None:
    """Raises for answers that are walls by where they were found, or that are JSON and say no.

    Raises:
        UpstreamBlocked: a challenge, or the login page by its address.
        UpstreamRateLimited, TargetRestricted, TargetNotFound, ExtractionFailed: the JSON says so.
    """
    refuse_wall_path(urlsplit(str(response.url)).path, response.status)
    body: bytes = response.body
    if is_json(body) and b'"if_not_gated_logged_out"' not in body:
        document = None
        with suppress(ExtractionFailed):  # what is no JSON is told by its status first
            (document,) = documents(body, ())
        _refuse_message(document, response.status)
    elif response.status == 403 and b"<title>Page Not Found" in body:
        raise UpstreamRateLimited("The platform asks for fewer requests.", upstream_status=403, reason="rate_limited")


def refuse_wall_path(path: str, status: int | None) -> None:
    """Raises for the addresses to which the platform leads visitors that it does not want.

    Raises:
        UpstreamBlocked: the login page or a challenge.
    """
    if path.startswith(CHALLENGE_PATHS):
        raise UpstreamBlocked("The platform asks for a proof.", upstream_status=status, reason="challenge")
    if path.startswith(LOGIN_PATHS):
        refuse_login(status)


def refuse_login(status: int | None) -> NoReturn:
    """Raises for the login page, under whatever address."""
    raise UpstreamBlocked("The platform shows its login page.", upstream_status=status, reason="login_wall")


def _refuse_message(document: Any, status: int | None) -> None:
    if dig(document, "error") == RATE_LIMIT_ERROR:
        raise UpstreamRateLimited(
            "The platform asks for fewer requests.", upstream_status=status, reason="rate_limited"
        )
    if text(dig(document, "status")) != "fail" and not text(dig(document, "description")):
        return
    message = text(dig(document, "message")) or text(dig(document, "title"))
    about = text(dig(document, "description")) or message
    for words, error, reason in _MESSAGES:
        if any(word in message.casefold() for word in words):
            raise error(f"The platform says: {about[:300]}", upstream_status=status, reason=reason)
    if dig(document, "require_login") is True:
        refuse_login(status)


def refuse_ruling(ruling: object, status: int | None) -> None:
    """Raises where the platform says why it withholds a post.

    Raises:
        TargetRestricted: with the platform's title and description.
    """
    if not isinstance(ruling, dict) or not ruling:
        return
    kind = ruling.get("gating_type")
    words = " ".join(filter(None, (text(ruling.get("title")), text(ruling.get("description")))))
    raise TargetRestricted(
        f"The platform withholds the post: {words[:300] or 'it does not say why'}",
        upstream_status=status,
        reason=GATES.get(kind, "gated") if isinstance(kind, int) else "gated",
    )


def refuse_query_errors(found: list[Any], status: int | None) -> None:
    """Raises for the errors of a query that gave no data. Where it gave some they do no harm.

    Raises:
        TargetNotFound: how the query of single items says that there is none.
        UpstreamRateLimited: too many queries.
        ExtractionFailed: the query is an old one.
    """
    errors = [error for document in found for error in objects(dig(document, "errors"))]
    if not errors:
        return
    message = text(errors[0].get("message"))
    if any(error.get("code") == RATE_LIMIT_ERROR for error in errors):
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


def refuse_shell(response: HttpResponse, shortcode: str | None, path: str) -> NoReturn:
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
    if "Login" in route or "Signup" in route or urlsplit(str(response.url)).path == "/":
        refuse_login(status)
    details: list[Detail] = [{"loc": [path], "msg": "Field required", "type": "missing"}]
    if b'"__isXIGPolarisMedia"' in body or b'"if_not_gated_logged_out"' in body:
        raise ExtractionFailed("The page has data whose names are not known.", details=details, reason="blind")
    witness = witnessed_shortcode(body)
    if witness and shortcode and witness != shortcode:
        raise ExtractionFailed("The page is of another post than asked for.", details=details, reason="wrong_post")
    if witness or any(word in route for word in ("Post", "Reel", "Media", "Clips")):
        raise UpstreamRateLimited(
            "The platform sent the page without its data, as it does for visitors that ask too often.",
            upstream_status=status,
            reason="throttled_shell",
        )
    raise ExtractionFailed("The page has no data block.", details=details, reason="no_data_block")
