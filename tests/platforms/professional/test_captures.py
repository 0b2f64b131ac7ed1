"""Recorded pages of the professional network: the numbers of reactions and comments are those in the markup."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import pytest
from parsel import Selector
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms.professional.pages import ContentPage
from crawler.platforms.professional.schema import MemberContent
from scripts.captures import CAPTURES, body_of

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)

TABS = "cfa3fe63800c"
LIST = "961164b53ee7"
GROUPED = "a48a929f0136"
MASKED = "70310b5ddb3a"

SITE = "https://www.linkedin.com"


@cache
def content(name: str) -> dict[str, Any]:
    """Return the validated content record of a recorded page."""
    body = body_of(name)
    assert ContentPage.recognise(body.decode())
    response = HttpResponse(SITE, body, headers={"Content-Type": "text/html; charset=utf-8"})
    data = asyncio.run(ContentPage(response=response, page_params=PageParams({})).to_item())
    assert validated(MemberContent, data) == data
    return data


def numbers(name: str, section: str, attribute: str) -> list[int]:
    """Return the numbers in an attribute of all elements of a page's section, in document order."""
    page = body_of(name).decode()
    found = Selector(page, type="html").css(f'section[data-section="{section}"] [{attribute}]::attr({attribute})')
    return [int(each) for each in found.getall()]


@pytest.mark.parametrize("name", [TABS, LIST, GROUPED, MASKED])
def test_reactions_and_comments_are_those_in_the_markup(name: str) -> None:
    for key, attribute in (("like_count", "data-num-reactions"), ("comment_count", "data-num-comments")):
        found: dict[bool, list[int | None]] = {True: [], False: []}
        for post in content(name)["posts"]:
            found[post["content_type"] == "article"].append(post[key])
        assert found[True] == numbers(name, "articles", attribute)
        shown: list[int | None] = [*numbers(name, "posts", attribute)]
        assert found[False] == (shown or [None] * len(found[False]))
