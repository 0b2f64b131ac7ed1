"""The simulated photo app's faults. Most of their responses have status 200, as on the real platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.photoapp import embed as photoapp_embed
from crawler.sandbox.photoapp import page as photoapp_page
from crawler.sandbox.photoapp.page import ERROR_ROUTE, LANDING_ROUTE, LOGIN_ROUTE, PROFILE_ROUTE
from crawler.sandbox.protocol import as_json

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeResponse, FaultlessResponse

SHARE_FAULTS = {
    "share-gone": Fault("TARGET_NOT_FOUND", "a share link that leads to the error page"),
    "share-profile": Fault("TARGET_NOT_FOUND", "a share link that redirects to a profile"),
    "share-loop": Fault("TARGET_NOT_FOUND", "a share link that redirects to another share link"),
    "share-login": Fault("UPSTREAM_BLOCKED", "a share link that redirects to the login page"),
    "share-home": Fault("UPSTREAM_BLOCKED", "a share link that redirects to the home page"),
    "share-foreign": Fault("UPSTREAM_BLOCKED", "a share link that redirects to another host"),
    "share-nowhere": Fault("UPSTREAM_ERROR", "a share link with a redirect status but without a `Location` header"),
    "share-shell": Fault("EXTRACTION_FAILED", "a share link that returns a page instead of a redirect"),
}
"""The faults of share links. ``Site.faults`` lists the tokens that select them."""

FAULTS = (
    COMMON
    | SHARE_FAULTS
    | {
        "soft-gone": Fault("TARGET_NOT_FOUND", "200 with the error page"),
        "null-post": Fault("EXTRACTION_FAILED", "the data block contains null, and the embed page has no post"),
        "null-page": Fault("OK", "the data block contains null; the embed page works"),
        "private": Fault("TARGET_NOT_FOUND", "the post is withheld without a ruling, and the embed page is broken"),
        "field-exception": Fault("TARGET_NOT_FOUND", "no data, and the query's error message for missing posts"),
        "age-gate": Fault("TARGET_RESTRICTED", "withheld by a ruling about the visitor's age"),
        "region-gate": Fault("TARGET_RESTRICTED", "withheld by a ruling about the visitor's region"),
        "other-gate": Fault("TARGET_RESTRICTED", "withheld by a ruling of another kind"),
        "sensitive": Fault("TARGET_RESTRICTED", "400 with a refusal as JSON: sensitive content"),
        "ruling": Fault("TARGET_RESTRICTED", "a JSON response with only a ruling, without the post"),
        "login-redirect": Fault("UPSTREAM_BLOCKED", "a redirect to the login page"),
        "login-route": Fault("UPSTREAM_BLOCKED", "200 with the login page"),
        "home": Fault("UPSTREAM_BLOCKED", "a redirect to the home page"),
        "challenge": Fault("UPSTREAM_BLOCKED", "a redirect to the challenge"),
        "checkpoint": Fault("UPSTREAM_BLOCKED", "400 with a demand to pass a checkpoint"),
        "require-login": Fault("UPSTREAM_BLOCKED", "401 with a demand to log in"),
        "bad-client": Fault("UPSTREAM_BLOCKED", "400 that rejects the client's headers"),
        "shell": Fault("UPSTREAM_RATE_LIMITED", "the requested post's page without its data"),
        "shell-to-plain": Fault(
            "UPSTREAM_RATE_LIMITED", "the right page, which has its data only for requests from a browser"
        ),
        "og-only": Fault("UPSTREAM_RATE_LIMITED", "a page with only the link-preview tags"),
        "please-wait": Fault("UPSTREAM_RATE_LIMITED", "401 with a message to wait a few minutes"),
        "not-found-403": Fault("UPSTREAM_RATE_LIMITED", "403 with a Page Not Found page"),
        "limit-code": Fault("UPSTREAM_RATE_LIMITED", "200 with a JSON rate-limit error"),
        "gated-query": Fault("EXTRACTION_FAILED", "400: the query requires a login"),
        "stale-query": Fault("EXTRACTION_FAILED", "no data, and an execution error of the query"),
        "partial-error": Fault("OK", "a response that has errors in addition to complete data"),
        "wrong-post": Fault("EXTRACTION_FAILED", "another post's page"),
        "wrong-post-once": Fault("OK", "another post's page, for the first request only"),
        "wrong-shell": Fault("EXTRACTION_FAILED", "another post's page without its data"),
        "stub": Fault("EXTRACTION_FAILED", "the landing page of mobile visitors, with a stub of the post"),
        "no-data": Fault("EXTRACTION_FAILED", "a page without a data block"),
        "broken-json": Fault("EXTRACTION_FAILED", "a truncated data block"),
        "deep-json": Fault("EXTRACTION_FAILED", "a data block of ten thousand nested lists"),
        "blind": Fault("EXTRACTION_FAILED", "a post with renamed keys"),
        "missing-owner": Fault("EXTRACTION_FAILED", "a post without its owner"),
        "missing-time": Fault("EXTRACTION_FAILED", "a post without its time of publication"),
        "no-picture": Fault("EXTRACTION_FAILED", "a post without a picture"),
        "embed-down": Fault("OK", "500 for the embed page of a video"),
        "embed-forbidden": Fault("OK", "403 for the embed page of a video"),
        "embed-null": Fault("OK", "an embed page without data"),
        "embed-broken": Fault("OK", "a broken embed page of a video"),
        "reels-forbidden": Fault("OK", "403 for the reels of a video's owner"),
        "page-walled": Fault("OK", "a redirect to the login page; the embed page works"),
    }
)
"""The app's faults by name. ``Site.faults`` lists the shortcodes and tokens that select them."""

NEWER = ("reels-forbidden", "page-walled", "null-page", "stub", "embed-broken")
"""Faults that were added later. These faults are numbered after all others, so that existing faults keep their
shortcodes."""

EMBED_FAULTS = {"null-post": photoapp_embed.page(None), "private": photoapp_embed.broken()}
"""The embed pages of posts with faults that change the embed page, too."""

EVERYWHERE = ("login-redirect", "login-route", "home", "require-login")
"""Faults that affect a post's embed page as well as its page."""


def damaged(name: str, honest: FaultlessResponse, wrong: FaultlessResponse) -> FakeResponse:
    """Build the damaged response for a fault that only this app has. ``wrong`` renders the page of another post."""
    if name in _ANSWERS:
        return _ANSWERS[name]
    if name in _WRONG_POST:
        status, headers, page = wrong()
        return status, headers, _WRONG_POST[name](page)
    status, headers, page = honest()
    if name in _PAGES:
        return status, headers, _PAGES[name](page)
    return status, headers, photoapp_page.with_result(page, _RESULTS[name])


def other_page(path: str, *, light: bool) -> FakeResponse:
    """Respond to a path that is not a post's: robots.txt, login (also at ``/``), challenge, or else the error page."""
    if path == "/robots.txt":
        return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /api/\n"
    if path == "/" or path.startswith("/accounts/login"):
        return 200, {}, photoapp_page.document(LOGIN_ROUTE, (), light=light)
    if path.startswith("/challenge"):
        return 200, {}, photoapp_page.plain("Confirm that it is you")
    return 200, {}, photoapp_page.document(ERROR_ROUTE, (), light=light)


def _refused(code: int, **words: Any) -> FakeResponse:
    return as_json({**words, "status": "fail"}, code)


def _failed(message: str, **more: str) -> FakeResponse:
    return as_json({"data": None, "errors": [{"message": message, **more}]})


def _redirect(where: str) -> FakeResponse:
    return 302, {"Location": where}, b""


# Responses that are not a post's page

_RULING = {"title": "Restricted Photo", "description": "You must be 18 years old or over to see this.", "status": "ok"}

_ANSWERS: dict[str, FakeResponse] = {
    "soft-gone": (200, {}, photoapp_page.document(ERROR_ROUTE, (), light=True)),
    "login-route": (200, {}, photoapp_page.document(LOGIN_ROUTE, (), light=True)),
    "page-walled": _redirect("/accounts/login/?next=%2Fp%2F"),
    "login-redirect": _redirect("/accounts/login/?next=%2Fp%2F"),
    "home": _redirect("/"),
    "challenge": _redirect("/challenge/?next=%2Fp%2F"),
    "checkpoint": _refused(400, message="checkpoint_required", checkpoint_url="/challenge/"),
    "sensitive": _refused(400, message="This content isn't available to everyone: some people may find it upsetting."),
    "ruling": as_json(_RULING),
    "please-wait": _refused(
        401, message="Please wait a few minutes before you try again.", require_login=True, igweb_rollout=True
    ),
    "require-login": _refused(401, message="", require_login=True),
    "bad-client": _refused(400, message="SecFetch Policy violation."),
    "gated-query": _refused(400, message="Unauthorized logged out query"),
    "limit-code": (200, {}, b'for (;;);{"__ar":1,"error":1675004,"errorSummary":"Rate limit exceeded"}'),
    "not-found-403": (403, {}, photoapp_page.plain("Page Not Found")),
    "stale-query": _failed("execution error", severity="CRITICAL"),
    "field-exception": _failed("A server error field_exception occured."),
    "no-data": (200, {}, photoapp_page.plain("Back in a moment")),
    "embed-null": (200, {}, photoapp_embed.page({"gql_data": None})),
    "embed-broken": (200, {}, photoapp_embed.broken()),
    "share-gone": (200, {}, photoapp_page.document(ERROR_ROUTE, (), light=True)),
    "share-profile": _redirect("/northwood.lodge/"),
    "share-loop": _redirect("/share/p/BAelsewhere/"),
    "share-login": _redirect("/accounts/login/?next=%2Fshare%2F"),
    "share-home": _redirect("/"),
    "share-foreign": _redirect("http://127.0.0.9:9/p/DaSandbox01/"),
    "share-nowhere": (302, {}, b"moved"),
    "share-shell": (200, {}, photoapp_page.document(PROFILE_ROUTE, (), light=True)),
}


# Pages of a post with damaged or missing data


_DEEP = b'{"xig_polaris_media":' + b"[" * 10_000 + b"]" * 10_000 + b"}"


def _leave_stub(result: dict[str, Any]) -> None:
    post = result["data"]["xig_polaris_media"]["if_not_gated_logged_out"]
    stub = {"__typename": post["__typename"], "user_for_shid_logged_out": None, "id": post["id"]}
    stub |= {"__isXIGPolarisMedia": post["__typename"], "video_image": {"uri": "https://static.example/cover.jpg"}}
    result["data"] = {"xig_polaris_media": stub}


_PAGES: dict[str, Callable[[bytes], bytes]] = {
    "shell": photoapp_page.without_block,
    "shell-to-plain": photoapp_page.without_block,
    "og-only": lambda page: b"<!DOCTYPE html><html><head>" + photoapp_page.previews_of(page) + b"</head></html>",
    "broken-json": lambda page: photoapp_page.with_block(page, lambda block: block[:-4_000]),
    "stub": lambda page: photoapp_page.with_result(page, _leave_stub).replace(
        b"igweb." + photoapp_page.POST_ROUTE.encode(), b"instagramwebloggedout." + LANDING_ROUTE.encode()
    ),
    "deep-json": lambda page: photoapp_page.with_block(page, lambda _: _DEEP),
}
_WRONG_POST: dict[str, Callable[[bytes], bytes]] = {
    "wrong-post": lambda page: page,
    "wrong-shell": photoapp_page.without_block,
}


# Pages whose post has changed data

_Damage = Callable[[dict[str, Any]], None]
"""A function that damages, in place, the query result in a page's data block."""


def _gated(kind: int, title: str) -> _Damage:
    def withhold(result: dict[str, Any]) -> None:
        ruling = {"gating_type": kind, "title": title, "description": "It is withheld from you."}
        wrapper = result["data"]["xig_polaris_media"] | {"if_not_gated_logged_out": None, "gating_ruling": ruling}
        wrapper |= {"comments_connection": {"edges": [], "page_info": None}}
        result["data"] = {"xig_polaris_media": wrapper}

    return withhold


def _without(*keys: str) -> _Damage:
    def cut(result: dict[str, Any]) -> None:
        for key in keys:
            del result["data"]["xig_polaris_media"]["if_not_gated_logged_out"][key]

    return cut


_PARTIAL_ERROR = {"message": "execution error", "path": ["xig_polaris_media", "location"], "severity": "ERROR"}

_RESULTS: dict[str, _Damage] = {
    "partial-error": lambda result: result.update(errors=[_PARTIAL_ERROR]),
    "null-post": lambda result: result["data"].update(xig_polaris_media=None),
    "null-page": lambda result: result["data"].update(xig_polaris_media=None),
    "private": lambda result: result["data"]["xig_polaris_media"].update(if_not_gated_logged_out=None),
    "age-gate": _gated(3, "Age-restricted content"),
    "region-gate": _gated(2, "Not available in your region"),
    "other-gate": _gated(9, "Unavailable"),
    "blind": lambda result: result["data"].update(xig_polaris_media_v2=result["data"].pop("xig_polaris_media")),
    "missing-owner": _without("user"),
    "missing-time": _without("taken_at"),
    "no-picture": _without("image_versions2", "display_uri"),
}
