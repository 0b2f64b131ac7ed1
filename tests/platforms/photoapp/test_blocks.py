"""Responses of the photo app that lack the requested post: each raises the right error with the right reason."""

from __future__ import annotations

import asyncio

import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.platforms.photoapp.blocks import is_refusal, preview_shortcode
from crawler.platforms.photoapp.pages import PostPage, ReelsPage, SharePage
from crawler.sandbox.photoapp.page import document
from crawler.sandbox.photoapp.site import Site

SITE = Site(light=True)
CODE = "DaSandbox01"
ORIGIN = "https://www.instagram.com"


def error_of(page: type[PostPage | ReelsPage | SharePage], response: HttpResponse, code: str = CODE) -> ScrapeError:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page(response=response, page_params=PageParams({"shortcode": code})).to_item())
    return raised.value


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


@pytest.mark.parametrize(
    "message",
    [
        "Please wait a few minutes before you try again.",
        "Rate limit exceeded",
        "error 1675004",
        "checkpoint_required",
        "Challenge required",
        "feedback_required",
        "This age-restricted post is hidden.",
        "Not available in your region.",
        "Not available in your country.",
        "It is not available to everyone.",
        "restricted",
        "Unauthorized logged out query",
        "SecFetch Policy violation.",
        "useragent mismatch",
        "1357004",
        "login_required",
        "1357001",
        "Media not found or unavailable",
        "The page does not exist.",
        "4630001",
    ],
)
def test_a_short_text_with_the_words_of_a_refusal_is_one(message: str) -> None:
    assert is_refusal(message)
    assert is_refusal(f"{message:<499}")
    assert not is_refusal(f"{message:<500}"), "a longer text is a page"
    assert not is_refusal("Nothing is wrong.")
