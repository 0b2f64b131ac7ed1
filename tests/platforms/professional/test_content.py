"""The content page object on the sandbox's pages: it returns the expected records, and nothing of other members."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any
from urllib.parse import quote, unquote

import pytest
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms.professional.masked import MEMBERS_ONLY, availability
from crawler.platforms.professional.pages import ContentPage, ProfilePage
from crawler.platforms.professional.schema import MemberContent
from tests.platforms.professional.test_pages import page, site
from tests.sandbox.test_videosite import POST_KEYS, PROFILE_KEYS

SITE = "https://www.linkedin.com"
HEAD = f'<link rel="canonical" href="{SITE}/in/x"><h1 class="top-card-layout__title">Jo</h1>'
# Fields of specification 2.4 that no profile page shows. They are always empty.
NEVER_SHOWN_IN_POSTS = {
    *("age_restriction_status", "author_id", "content_language", "first_comment", "mentions"),
    *("slideshow_status", "subtitles", "transcript", "video_duration_seconds", "video_link"),
    "view_count",
}
NEVER_SHOWN_IN_PROFILES = {
    *("account_creation_date", "account_creation_date_text", "available_country_codes", "content_count"),
    *("is_family_safe", "keywords", "privacy_status", "profile_id", "total_views", "verification_status"),
}


POSITION = {"company_name": "A", "job_title": "B", "date_range": "2015 - 2016", "start_date": "2015", "masked": False}


@pytest.mark.parametrize(
    ("change", "withheld"),
    [
        ({}, []),
        ({"about": ""}, ["about"]),
        ({"about_truncated": True}, ["about"]),
        ({"education": [{"masked": False}, {"masked": True}]}, ["education"]),
        ({"headline": ""}, ["headline"]),
        ({"skills": []}, ["skills"]),
        ({"experience": []}, []),
        ({"experience": [POSITION, POSITION | {"company_name": ""}]}, ["experience.company_name"]),
        ({"experience": [POSITION, POSITION | {"job_title": ""}]}, ["experience.job_title"]),
        ({"experience": [POSITION, POSITION | {"date_range": "", "start_date": ""}]}, []),
        ({"experience": [POSITION | {"date_range": ""}]}, []),
        ({"experience": [POSITION | {"date_range": "", "start_date": ""}]}, ["experience.date_range"]),
    ],
)
@pytest.mark.parametrize("masked", [True, False])
def test_a_masked_profile_names_the_fields_that_it_lacks(
    change: dict[str, Any], withheld: list[str], *, masked: bool
) -> None:
    lists = {"education": [{"masked": False}], "experience": [POSITION], "skills": ["C"]}
    found = {"about": "D", "about_truncated": False, "headline": "E", **lists, **change}
    stated = availability(found, masked=masked, source="json_ld", locale="en_US", is_unread=False)
    assert stated["fields_withheld_by_linkedin"] == sorted([*MEMBERS_ONLY, *(withheld if masked else [])])


CANONICAL = re.compile(rb'<link rel="canonical" href="https://[a-z]+\.linkedin\.com/in/([^"/]+)')


def read(body: str | bytes, *, slug: str = "", status: int = 200) -> dict[str, Any]:
    """Return the validated data of a page. By default, the requested member is the one whom the page names."""
    raw = body.encode() if isinstance(body, str) else body
    canonical = CANONICAL.search(raw)
    slug = slug or (unquote(canonical[1].decode()) if canonical else "somebody")
    response = HttpResponse(
        f"{SITE}/in/{quote(slug)}",
        raw,
        status=status,
        headers={"Content-Type": "text/html; charset=utf-8"},
    )
    page = ContentPage(response=response, page_params=PageParams({"slug": slug}))
    return validated(MemberContent, asyncio.run(page.to_item()))


@pytest.mark.parametrize("slug", ["mara-lindqvist", "tomas-okafor-4a0756", "nobody-yet"])
def test_content_has_the_keys_of_the_specification(slug: str) -> None:
    data = read(page(slug))
    assert set(data) == {"pagination", "posts", "profile"}
    assert data["pagination"] == {"cursor": "", "has_more": False}
    assert set(data["profile"]) == PROFILE_KEYS
    assert not {key for key in NEVER_SHOWN_IN_PROFILES if data["profile"][key]}
    for post in data["posts"]:
        assert set(post) == POST_KEYS
        assert not {key for key in NEVER_SHOWN_IN_POSTS if post[key]}
        assert all(post[key] for key in ("content_id", "content_code", "content_link", "content_type"))


@pytest.mark.parametrize("words", [("Posted by", "Liked by"), ("Опубликовано", "Нравится"), ("投稿", "いいね")])
def test_links_and_lines_give_type_and_author_in_any_language(words: tuple[str, str]) -> None:
    """The page has the member's own post, and posts of two other members: one with the same line, one with another."""
    posted, liked = words
    ghost = '<img class="main-activity-card__img" src="https://static.licdn.com/ghost">'
    cards = "".join(
        f"""<li><a class="base-card__full-link" href="/posts/{owner}_a-activity-{n}-Xq_9"></a>{ghost}<h3>Hello</h3>
        <h4>{line} <a href="/in/x">Jo</a></h4></li>"""
        for n, (owner, line) in enumerate((("x", posted), ("ana", posted), ("bo", liked)), 7_400_000_000_000_000_000)
    )
    posts = read(f"""{HEAD}<section data-section="posts"><ul>{cards}</ul></section>""")["posts"]
    assert [(post["content_type"], post["author_username"], post["author_name"]) for post in posts] == [
        ("post", "x", "Jo"),
        ("share", "ana", ""),
        ("like", "bo", ""),
    ]
    assert {post["published_date"] for post in posts} == {7_400_000_000_000_000_000 // 2**22 // 1000}


def test_linked_posts_replace_a_section_that_is_missing() -> None:
    member = next(each for each in site().members.values() if each.linked and each.layout == "tabs" and own(each))
    body = page(quote(member.slug))
    without = re.sub(
        r'<section[^>]*data-section="(posts|articles)".*?Join now to see all activity</a>', "", body, flags=re.DOTALL
    )
    found = {post["content_id"]: post for post in read(without)["posts"]}
    expected = {post["content_id"]: post for post in site().expected_record({"username": member.slug})["posts"]}
    assert {post["content_type"] for post in found.values()} <= {"post", "article"}
    assert own(member)
    for key, post in found.items():
        for same in ("author_name", "author_username", "caption", "like_count", "published_date"):
            assert post[same] == expected[key][same], same
        assert post["comment_count"] is None


def own(member: Any) -> list[Any]:
    return [row for row in member.rows["activity"] if row["author"] == member.name]


# Links, authors, hashtags


def content_page(body: str) -> ContentPage:
    response = HttpResponse(f"{SITE}/in/x", body.encode(), headers={"Content-Type": "text/html; charset=utf-8"})
    return ContentPage(response=response, page_params=PageParams({}))


def cards(*paths: str, text: str = "Hello", image: str = "https://static.licdn.com/ghost") -> str:
    """Return a page with cards in the layout with a list."""
    rows = "".join(
        f"""<li><a class="base-card__full-link" href="/{path}"></a><img class="main-activity-card__img" src="{image}">
        <h3>{text}</h3><h4>Liked by <a href="/in/x">Jo</a></h4></li>"""
        for path in paths
    )
    return f"""{HEAD}<section data-section="posts"><ul>{rows}</ul></section>"""


def test_both_scrapers_read_the_author_of_a_card_alike() -> None:
    """The linked data names the author of a post whose link has another name; nothing names the author of the last."""
    own, linked, other = (f"posts/{name}_a-activity-740000000000000000{n}-x" for n, name in enumerate(("x", "y", "z")))
    posting = {"@type": "DiscussionForumPosting", "url": f"{SITE}/{linked}", "text": "Hello"}
    author = {"author": {"name": "Ana", "url": f"{SITE}/in/ana"}}
    block = f'<script type="application/ld+json">{json.dumps(posting | author)}</script>'
    body = block + cards(own, linked, other)
    flat = asyncio.run(ProfilePage(content_page(body).response, PageParams({})).to_item())["activity"]
    expected = [("Jo", f"{SITE}/in/x"), ("Ana", f"{SITE}/in/ana"), ("", "")]
    assert [(row["author"], row["author_url"]) for row in flat] == expected
    posts = [(post["author_name"], post["author_username"]) for post in read(body)["posts"]]
    assert posts == [("Jo", "x"), ("Ana", "ana"), ("", "z")]
