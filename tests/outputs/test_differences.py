"""Records are compared value by value, as the data models declare."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import pytest

from crawler.jobs.changes import Difference, differences
from crawler.outputs.columns import column_type_of_models
from crawler.platforms.microblog.schema import Post
from crawler.platforms.photoapp.schema import Post as PhotoPost
from crawler.platforms.professional.schema import MemberContent
from crawler.platforms.professional.schema import Profile as Member
from crawler.platforms.retail.schema import Listing, Product
from crawler.platforms.videosite.schema import ChannelRecord
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.sandbox.professional.site import Site as Professional
from crawler.sandbox.retail.site import Site as Shop
from crawler.sandbox.videosite.site import Site as VideoSite


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a dotted path, whose numbers are positions in lists."""
    *parents, last = path.split(".")
    found: Any = data
    for each in parents:
        found = found[int(each) if isinstance(found, list) else each]
    found[last] = value


@cache
def record(model: Any) -> dict[str, Any]:
    """Return a record of the sandbox, or one of its rows."""
    listing = Shop(light=True).expected_record({"cat_id": "976759"})
    made: dict[Any, Callable[[], dict[str, Any]]] = {
        Listing: lambda: listing,
        Product: lambda: next(each for each in listing["products"] if each["price"]["current_price"]),
        Post: lambda: next(
            each
            for each in Microblog().expected_record({"username": "relay_station"})["data"]["main"]
            if each["quoted_post"]
        ),
        PhotoPost: lambda: PhotoApp().expected_record({"url": "https://www.instagram.com/p/DaSandbox01/"})["data"][
            "xdt_shortcode_media"
        ],
        MemberContent: lambda: Professional().expected_record({"username": "mara-lindqvist"}),
        Member: lambda: Professional().expected_record({"url": "https://www.linkedin.com/in/mara-lindqvist"}),
        ChannelRecord: lambda: VideoSite().expected_record({"username": "@harborlights"}),
    }
    return made[model]()


WHOLE, LACKING = True, False


def different(model: Any, path: str, old: Any, new: Any) -> list[Difference]:
    """Return the differences of two records that differ at a path. ``...``: the record's own value."""
    before, after = deepcopy(record(model)), deepcopy(record(model))
    for each, value in ((before, old), (after, new)):
        if value is not ...:
            put(each, path, value)
    fields = column_type_of_models([model])
    assert list(differences(fields, before, deepcopy(before))) == []
    return list(differences(fields, before, after))


@pytest.mark.parametrize(
    ("model", "path", "old", "new", "found"),
    [
        (Product, "price.current_price", 12.5, 12.99, ["price.current_price"]),
        (Product, "price.current_price", 12.5, None, ["price.current_price"]),
        (Product, "badges", [], ["Best seller"], ["badges"]),
        (Product, "is_sponsored", False, True, []),
        (Product, "rating.review_count", 10_999, 10_000, []),
        (Product, "rating.review_count", 10_000, 11_100, []),
        (Product, "rating.review_count", 10_999, 12_500, ["rating.review_count"]),
        (Product, "rating.review_count", 3, 4, []),
        (Listing, "max_page", 12, 25, []),
        (Listing, "products", [], ..., []),  # rows are compared by their keys
        (Post, "quoted_post", ..., None, ["quoted_post"]),
        (Post, "quoted_post.caption", "one", "other", ["quoted_post.caption"]),
        (Post, "quoted_post.like_count", 100, 105, []),
        (PhotoPost, "display_url", "https://a/1?sig=1", "https://a/1?sig=2", []),
        (PhotoPost, "owner.username", "one", "other", ["owner.username"]),
        (PhotoPost, "edge_media_preview_like.count", 100, 500, ["edge_media_preview_like.count"]),
        (Member, "followers", "41M followers", "42M followers", []),
        (Member, "followers", "41M followers", "52M followers", ["followers"]),
        (Member, "experience.0.company_image", "https://a/1?e=1", "https://a/1?e=2", []),
        (Member, "experience.0.job_title", "Clerk", "Head", ["experience"]),
        (Member, "people_also_viewed", [], [{"name": "one"}], []),
        (ChannelRecord, "profile.biography", "one", "other", ["profile.biography"]),
        (ChannelRecord, "pagination.cursor", "one", "other", []),
    ],
)
def test_a_value_differs_as_its_field_declares(model: Any, path: str, old: Any, new: Any, *, found: list[str]) -> None:
    assert [".".join(each.path) for each in different(model, path, old, new)] == found


@pytest.mark.parametrize(
    ("path", "old", "new", "whole", "was_read"),
    [
        ("name", "one", "other", (LACKING, LACKING), True),
        ("rating.average", 4.5, None, (WHOLE, WHOLE), False),  # the field does not declare that null is a statement
        ("price.current_price", 4.5, None, (WHOLE, WHOLE), True),
        ("price.current_price", 4.5, None, (WHOLE, LACKING), False),
        ("price.current_price", None, 4.5, (LACKING, WHOLE), False),
        ("flag", "", "Best seller", (WHOLE, WHOLE), True),
        ("flag", "", "Best seller", (LACKING, WHOLE), False),
        ("flag", "", "Best seller", (WHOLE, LACKING), True),
        ("badges", ["Best seller"], [], (WHOLE, LACKING), False),
    ],
)
def test_empty_values_of_records_with_warnings_were_not_read(
    path: str, old: Any, new: Any, whole: tuple[bool, bool], *, was_read: bool
) -> None:
    (found,) = different(Product, path, old, new)
    assert found.was_read(*whole) == was_read


@pytest.mark.parametrize(
    ("model", "path", "old", "new", "was_read"),
    [
        (MemberContent, "profile.biography", "Boats and lakes…", "Boats and lakes, all year", False),
        (MemberContent, "profile.biography", "Boats and lakes, all year", "Boats...", False),
        (MemberContent, "profile.biography", "Trains…", "Boats and lakes", False),
        (MemberContent, "profile.biography", "", "Boats and lakes", False),
        (MemberContent, "profile.biography", "Trains…", "Boats…", True),
        (MemberContent, "profile.biography", "Boats", "Boats and lakes", True),
        (Member, "about", "Boats…", "Boats and lakes", False),
        (Post, "caption", "word " * 55, "word " * 90, False),  # not every shortened text ends with "…"
        (Post, "caption", "word " * 55, "other " * 90, True),
        (Post, "quoted_post.caption", "word " * 55, "word " * 90, False),
        (Post, "hashtags", ["boats"], ["boats", "lakes"], False),
        (Post, "hashtags", ["boats"], ["lakes"], True),
    ],
)
def test_a_part_of_a_value_is_another_reading(model: Any, path: str, old: Any, new: Any, *, was_read: bool) -> None:
    (found,) = different(model, path, old, new)
    assert found.was_read(WHOLE, WHOLE) == was_read


def test_the_formats_of_a_post_are_no_changes() -> None:
    site = PhotoApp(light=True)
    for code in site.listed:
        url = f"https://www.instagram.com/p/{code}/"
        page, item, embed = (
            site.expected_record({"url": url, "form": form})["data"]["xdt_shortcode_media"]
            for form in ("page", "item", "embed")
        )
        for other, is_whole in ((item, WHOLE), (embed, LACKING)):  # an embed page is read with a warning
            found = differences(column_type_of_models([PhotoPost]), page, other)
            assert [each.path for each in found if each.was_read(WHOLE, is_whole)] == []


def test_an_optional_key_that_is_absent_is_empty() -> None:
    before, after = deepcopy(record(Product)), deepcopy(record(Product))
    before.pop("flag", None)
    after["flag"] = "Best seller"
    (found,) = differences(column_type_of_models([Product]), before, after)
    assert (found.path, found.old, found.new) == (("flag",), "", "Best seller")
