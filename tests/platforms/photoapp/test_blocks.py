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
