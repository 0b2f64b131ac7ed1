"""Responses of the photo app that lack the requested post: each raises the right error with the right reason."""

from __future__ import annotations

import asyncio

import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.platforms.photoapp.blocks import preview_shortcode
from crawler.platforms.photoapp.pages import PostPage, ReelsPage, SharePage
from crawler.sandbox.photoapp.page import document
from crawler.sandbox.photoapp.site import FAULTS, Site
from crawler.sandbox.protocol import FakeRequest

SITE = Site(light=True)
CODE = "DaSandbox01"
ORIGIN = "https://www.instagram.com"


def error_of(page: type[PostPage | ReelsPage | SharePage], response: HttpResponse, code: str = CODE) -> ScrapeError:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page(response=response, page_params=PageParams({"shortcode": code})).to_item())
    return raised.value


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("age-gate", "age_gate"),
        ("bad-client", "bad_client"),
        ("blind", "blind"),
        ("broken-json", "broken_data_block"),
        ("checkpoint", "challenge"),
        ("deep-json", "broken_data_block"),
        ("field-exception", "missing_or_private"),
        ("gated-query", "gated_query"),
        ("limit-code", "rate_limited"),
        ("login-route", "login_wall"),
        ("missing-owner", "missing_field"),
        ("missing-time", "missing_field"),
        ("no-data", "unknown_form"),
        ("no-picture", "missing_field"),
        ("not-found-403", "rate_limited"),
        ("null-post", "null_post"),
        ("og-only", "throttled_shell"),
        ("other-gate", "gated"),
        ("please-wait", "rate_limited"),
        ("private", "null_post"),
        ("region-gate", "region_gate"),
        ("require-login", "login_wall"),
        ("ruling", "sensitive"),
        ("sensitive", "sensitive"),
        ("shell", "throttled_shell"),
        ("soft-gone", "not_found"),
        ("stale-query", "stale_query"),
        ("stub", "stub"),
        ("wrong-post", "wrong_post"),
        ("wrong-shell", "wrong_post"),
    ],
)
def test_each_failure_has_its_reason_and_paths(fault: str, reason: str) -> None:
    (code,) = (code for code, name in SITE.faults.items() if name == fault)
    status, headers, body = SITE.damaged(fault, FakeRequest(f"/p/{code}/"))
    response = HttpResponse(f"{ORIGIN}/p/{code}/", body, status=status, headers=headers)
    error = error_of(PostPage, response, code)
    code_of_page = "EXTRACTION_FAILED" if fault == "private" else FAULTS[fault].code  # its embed page is broken
    assert (error.code, error.reason) == (code_of_page, reason)
    assert error.details


@pytest.mark.parametrize("kind", ["age-gate", "region-gate", "other-gate"])
def test_a_restriction_has_the_platforms_message(kind: str) -> None:
    (code,) = (code for code, name in SITE.faults.items() if name == kind)
    body = SITE.damaged(kind, FakeRequest(f"/p/{code}/"))[2]
    assert "It is withheld from you." in error_of(PostPage, HttpResponse(ORIGIN, body), code).message


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/accounts/login/?next=/p/x/", "login_wall"),
        ("/accounts/signup/", "login_wall"),
        ("/challenge/?next=/p/x/", "challenge"),
        ("/accounts/suspended/", "challenge"),
        ("/", "login_wall"),
    ],
)
def test_a_block_is_recognised_by_its_path(path: str, reason: str) -> None:
    error = error_of(PostPage, HttpResponse(ORIGIN + path, b"<html>hello</html>", status=200))
    assert (error.code, error.reason) == ("UPSTREAM_BLOCKED", reason)


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        (b'<meta property="og:url" content="https://www.instagram.com/a.b/p/DaSandbox01/" />', CODE),
        (b'<meta name="x" property="og:url" content="https://www.instagram.com/reel/DaSandbox01/"', CODE),
        (b'<meta content="https://www.instagram.com/reel/DaSandbox01/" property="og:url">', CODE),
        (b"<meta property='og:url' content='/p/DaSandbox01/'>", CODE),
        (b'<meta property="og:url" content="https://www.instagram.com/a.b/">', None),
        (b'<meta property="og:url" content="http://[broken">', None),
        (b'<meta property="og:title" content="/p/DaSandbox01/">', None),
        (b"", None),
    ],
)
def test_the_shortcode_of_the_preview_tags(tag: bytes, code: str | None) -> None:
    assert preview_shortcode(b"<html>" + tag) == code


@pytest.mark.parametrize(
    ("body", "status", "code", "reason"),
    [
        (b'for (;;);{"error":1675004,"errorSummary":"Rate limit"}', 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (b'{"error":"1675004"}', 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (b'{"errors":[{"code":"1675004"}]}', 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (b'{"message":"checkpoint_required"}', 400, "UPSTREAM_BLOCKED", "challenge"),
        (b"SecFetch Policy violation.", 400, "UPSTREAM_BLOCKED", "bad_client"),
        (b"Please wait a few minutes before you try again.", 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (b'{"message":"x","require_login":true}', 401, "UPSTREAM_BLOCKED", "login_wall"),
        (
            b'{"title":"Restricted Video","description":"Not for you","status":"ok"}',
            200,
            "TARGET_RESTRICTED",
            "sensitive",
        ),
        (b'{"title":"Age-restricted content","description":"Log in"}', 200, "TARGET_RESTRICTED", "age_gate"),
        (b'{"title":"Not available in your region","description":"x"}', 200, "TARGET_RESTRICTED", "region_gate"),
        (b'{"title":"Hidden","description":"Not here"}', 200, "TARGET_RESTRICTED", "gated"),
        (b'{"status":"ok"}', 200, "EXTRACTION_FAILED", "unknown_form"),
        (b'{"data":null}', 200, "EXTRACTION_FAILED", "null_post"),
        (b'{"error":1357001,"errorSummary":"Not logged in"}', 200, "UPSTREAM_BLOCKED", "login_wall"),
        (b'{"error":1357004}', 200, "UPSTREAM_BLOCKED", "bad_client"),
        (b'{"data":null,"errors":[{"code":1357004,"message":"x"}]}', 200, "UPSTREAM_BLOCKED", "bad_client"),
        (b'{"errors":[{"message":"Rate limit exceeded"}]}', 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (b'{"data":null,"errors":[{"message":"rate_limit_exceeded"}]}', 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (b'{"errors":[{"code":"RATE_LIMIT_EXCEEDED"}]}', 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (b"rate_limit_exceeded", 200, "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (
            b'{"data":{"xig_polaris_media":{"if_not_gated_v2":{"code":"x"}}}}',
            200,
            "EXTRACTION_FAILED",
            "blind",
        ),
        (
            b'{"data":{"xig_polaris_media":{"gating_ruling":{"gating_type":2,"title":"No"}}}}',
            200,
            "TARGET_RESTRICTED",
            "region_gate",
        ),
        (
            b'{"data":{"xdt_api__v1__media__shortcode__web_info":{"edges":[{"code":"x"}]}}}',
            200,
            "EXTRACTION_FAILED",
            "blind",
        ),
        (
            b'{"data":{"xdt_api__v1__media__shortcode__web_info":{"items":[]}}}',
            200,
            "EXTRACTION_FAILED",
            "null_post",
        ),
    ],
)
def test_failures_by_message(body: bytes, status: int, code: str, reason: str) -> None:
    assert PostPage.recognise(body.decode())
    error = error_of(PostPage, HttpResponse(f"{ORIGIN}/p/x/", body, status=status))
    assert (error.code, error.reason) == (code, reason)


@pytest.mark.parametrize(
    ("route", "code", "reason"),
    [
        ("PolarisCAAIGLoginHomepageRoute", "UPSTREAM_BLOCKED", "login_wall"),
        ("PolarisLoggedOutDesktopWWWReelsRoute", "UPSTREAM_RATE_LIMITED", "throttled_shell"),
        ("PolarisLoggedOutDesktopWWWProfileRoute", "EXTRACTION_FAILED", "unknown_form"),
    ],
)
def test_a_page_without_data_is_classified_by_its_route(route: str, code: str, reason: str) -> None:
    error = error_of(PostPage, HttpResponse(ORIGIN, document(route, (), light=True)))
    assert (error.code, error.reason) == (code, reason)


def test_another_post_is_never_returned() -> None:
    other = SITE.listed[1]
    body = SITE.page(FakeRequest(f"/p/{other}/"))[2]
    error = error_of(PostPage, HttpResponse(f"{ORIGIN}/p/{CODE}/", body))
    assert error.reason == "wrong_post"
    assert (other in error.message, CODE in error.message) == (True, True)


def test_a_post_of_the_owners_timeline_is_not_returned() -> None:
    listed = SITE.timeline(SITE.posts[CODE].owner)
    other = next(post.code for post in listed if post.code != CODE)
    body = SITE.page(FakeRequest(f"/p/{CODE}/"))[2]
    assert error_of(PostPage, HttpResponse(f"{ORIGIN}/p/{other}/", body), other).reason == "wrong_post"


@pytest.mark.parametrize(("body", "reason"), [(b"<html></html>", "unknown_form"), (b"", "empty_body")])
def test_a_page_without_reels_is_refused(body: bytes, reason: str) -> None:
    assert error_of(ReelsPage, HttpResponse(f"{ORIGIN}/a/reels/", body, status=200)).reason == reason


def share(location: str | None, *, status: int = 302, body: bytes = b"") -> HttpResponse:
    headers = {"Location": location} if location is not None else {}
    return HttpResponse(f"{ORIGIN}/share/p/BAx/", body, status=status, headers=headers)


@pytest.mark.parametrize(
    "location",
    [
        f"/p/{CODE}/",
        f"/a.b/reel/{CODE}/?igsh=x",
        f"{ORIGIN}/p/{CODE}/",
        f"https://instagram.com/p/{CODE}",
        f"../../../p/{CODE}/",
    ],
)
def test_a_share_link_leads_to_a_post(location: str) -> None:
    page = SharePage(response=share(location), page_params=PageParams({}))
    assert asyncio.run(page.to_item()) == {"shortcode": CODE}


def test_a_followed_share_link_gives_its_post() -> None:
    answer = HttpResponse(f"{ORIGIN}/a.b/reel/{CODE}/?igsh=x", b"<html></html>", status=200)
    page = SharePage(response=answer, page_params=PageParams({}))
    assert asyncio.run(page.to_item()) == {"shortcode": CODE}


def test_a_share_link_without_a_redirect_gives_its_post() -> None:
    tag = f'<meta property="og:url" content="{ORIGIN}/a/p/{CODE}/">'.encode()
    page = SharePage(response=share(None, status=200, body=tag), page_params=PageParams({}))
    assert asyncio.run(page.to_item()) == {"shortcode": CODE}


@pytest.mark.parametrize(
    ("location", "code", "reason"),
    [
        ("/accounts/login/?next=/share/", "UPSTREAM_BLOCKED", "login_wall"),
        ("/", "UPSTREAM_BLOCKED", "login_wall"),
        ("/challenge/", "UPSTREAM_BLOCKED", "challenge"),
        ("/natgeo/", "TARGET_NOT_FOUND", "wrong_page_kind"),
        ("/share/p/BAy/", "TARGET_NOT_FOUND", "wrong_page_kind"),
        ("/explore/", "TARGET_NOT_FOUND", "wrong_page_kind"),
        (f"http://169.254.169.254/p/{CODE}/", "UPSTREAM_BLOCKED", "foreign_redirect"),
        (f"https://instagram.com.example.com/p/{CODE}/", "UPSTREAM_BLOCKED", "foreign_redirect"),
        (f"https://www.instagram.com@127.0.0.1/p/{CODE}/", "UPSTREAM_BLOCKED", "foreign_redirect"),
        (f"//127.0.0.1/p/{CODE}/", "UPSTREAM_BLOCKED", "foreign_redirect"),
        ("http://[broken", "UPSTREAM_ERROR", "status"),
        ("javascript:alert(1)", "UPSTREAM_ERROR", "status"),
        (None, "UPSTREAM_ERROR", "status"),
    ],
)
def test_a_share_link_to_another_page_is_refused(location: str | None, code: str, reason: str) -> None:
    error = error_of(SharePage, share(location))
    assert (error.code, error.reason) == (code, reason)
