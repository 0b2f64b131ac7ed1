"""Recorded pages of the professional network that ``../test_captures.py`` does not compare: content, fragments."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from typing import Any

import pytest
from parsel import Selector
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms.professional.pages import ContentPage, ProfilePage
from crawler.platforms.professional.schema import MemberContent, Profile
from scripts.captures import CAPTURES, body_of

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)

TABS = "cfa3fe63800c"
LIST = "961164b53ee7"
GROUPED = "a48a929f0136"
MASKED = "70310b5ddb3a"
LINKED = "8647fd3c40d5"
LINKED_MASKED = "129c77f1e9ab"
FRAGMENTS = "f060ae81202a"

SITE = "https://www.linkedin.com"


def read(name: str | bytes, **params: Any) -> dict[str, Any]:
    """Return the validated data of a recorded page."""
    body = name if isinstance(name, bytes) else body_of(name)
    assert ProfilePage.recognise(body.decode())
    response = HttpResponse(SITE, body, headers={"Content-Type": "text/html; charset=utf-8"})
    data = asyncio.run(ProfilePage(response=response, page_params=PageParams(params)).to_item())
    assert validated(Profile, data) == data
    return data


def test_certifications_and_languages() -> None:
    fragments = body_of(FRAGMENTS)
    head = f'<link rel="canonical" href="{SITE}/in/x"><h1 class="top-card-layout__title">X</h1>'
    data = read(head.encode() + fragments)
    assert data["certifications"][0] == {
        "name": "Agile at Work: Planning with Agile User Stories",
        "issuer": "LinkedIn",
        "issued": "Aug 2022",
        "credential_url": f"{SITE}/learning/certificates/REDACTED",
        "url": f"{SITE}/learning/certificates/REDACTED",
    }
    assert len(data["certifications"]) == len(data["languages"]) == 2
    assert all(row["name"] for row in data["languages"])
    assert all(row["label"] and row["url"] for row in data["websites"])


# The content envelope


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


@pytest.mark.parametrize(
    ("name", "kinds", "followers"),
    [
        (TABS, {"article": 10, "post": 8, "share": 1, "like": 1}, 41_000_000),
        (LIST, {"article": 10, "like": 5, "post": 8}, 12_000_000),
        (GROUPED, {"article": 10, "like": 18}, 10_000_000),
        (MASKED, {"like": 12}, 681),
        (LINKED, {"article": 10, "post": 8}, 40_386_976),
        (LINKED_MASKED, {}, 40_603_288),
        ("b5ed902c9894", {"article": 4}, 35_172_164),
        ("c2bc4aaf692c", {"article": 10}, 37_571_247),
        ("5581d225002d", {"article": 10}, 39_714_156),
        ("7f68ff17fa39", {}, 564),
    ],
)
def test_content_has_the_noted_counts(name: str, kinds: dict[str, int], followers: int) -> None:
    data, flat = content(name), read(name)
    assert Counter(post["content_type"] for post in data["posts"]) == kinds
    assert data["profile"]["follower_count"] == followers
    assert (data["profile"]["username"], data["profile"]["display_name"]) == (
        flat["public_identifier"],
        flat["fullName"],
    )
    assert [post["content_link"] for post in data["posts"]][: len(flat["articles"] + flat["activity"])] == [
        row["link"] for row in flat["articles"] + flat["activity"]
    ]
    ids = [post["content_id"] for post in data["posts"]]
    assert len(ids) == len(set(ids))
    assert all(post["content_id"].isdecimal() for post in data["posts"] if post["content_type"] != "article")


@pytest.mark.parametrize("name", [TABS, LIST, GROUPED, MASKED])
def test_reactions_and_comments_are_those_in_the_markup(name: str) -> None:
    for key, attribute in (("like_count", "data-num-reactions"), ("comment_count", "data-num-comments")):
        found: dict[bool, list[int | None]] = {True: [], False: []}
        for post in content(name)["posts"]:
            found[post["content_type"] == "article"].append(post[key])
        assert found[True] == numbers(name, "articles", attribute)
        shown: list[int | None] = [*numbers(name, "posts", attribute)]
        assert found[False] == (shown or [None] * len(found[False]))


def test_dates_of_articles_and_posts() -> None:
    first, *_ = content(TABS)["posts"]
    assert (first["published_date"], first["like_count"], first["comment_count"]) == (1_785_024_000, 2_656, 377)
    assert (first["content_id"], first["author_username"]) == (
        "memories-from-inspiring-trip-rwanda-bill-gates-ojyye",
        "williamhgates",
    )
    for name in (TABS, LIST, GROUPED):
        articles = [post for post in content(name)["posts"] if post["content_type"] == "article"]
        days = [post["published_date"] for post in articles]
        assert days == sorted(days, reverse=True)
        assert all(day % 86_400 == 0 for day in days)
    post = content(TABS)["posts"][10]
    assert (post["content_id"], post["published_date"]) == ("7487189920416108544", 1_785_085_182), '"21h" before it'
    article, post = content(LINKED)["posts"][0], content(LINKED)["posts"][10]
    assert (article["published_date"], article["like_count"]) == (1_777_682_155, 3_694)
    assert (post["published_date"], post["like_count"], post["comment_count"]) == (1_780_615_052, 1_609, None)
    assert (post["content_id"], post["author_username"]) == ("7468440836972625921", "williamhgates")
    assert content("b5ed902c9894")["posts"][0]["published_date"] is None


def test_authors_of_posts() -> None:
    (liked,) = [post for post in content(TABS)["posts"] if post["content_type"] == "like"]
    assert (liked["author_name"], liked["author_username"]) == (
        "Alzheimer's Disease Data Initiative",
        "alzheimersdata",
    )
    authors = {(post["content_type"], post["author_name"]) for post in content(LIST)["posts"]}
    assert authors == {
        ("article", "Satya Nadella"),
        ("post", "Satya Nadella"),
        ("like", ""),
    }
    assert all(post["author_username"] for post in content(LIST)["posts"])
