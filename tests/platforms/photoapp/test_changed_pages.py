"""Pages of the photo app with renamed keys, and posts that lack a key (findings PH-1, PH-4 to PH-9, PH3)."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed, ScrapeError, UpstreamRateLimited
from crawler.platforms.photoapp.link import code_of_id
from crawler.platforms.photoapp.pages import EmbedPage, PostPage
from crawler.sandbox.photoapp import graph
from crawler.sandbox.photoapp.page import embed
from crawler.sandbox.photoapp.site import EXAMPLE, Site
from crawler.sandbox.protocol import FakeRequest

SITE = Site(light=True)
PK = SITE.posts[EXAMPLE].pk
ROUTE = '<script type="application/json">{"canonicalRouteName":"comet.igweb.PolarisPostRoute"}</script>'
PREVIEW = f'<meta property="og:url" content="https://www.instagram.com/p/{EXAMPLE}/" />'


def page_of(body: str | bytes, *, code: str = EXAMPLE, kind: type[PostPage] = PostPage) -> PostPage:
    content = body.encode() if isinstance(body, str) else body
    response = HttpResponse(f"https://www.instagram.com/p/{EXAMPLE}/", content, status=200)
    return kind(response=response, page_params=PageParams({"shortcode": code} if code else {}))


def error_of(page: PostPage) -> ScrapeError:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    return raised.value


def html(data: Any) -> str:
    text = orjson.dumps(data).decode().replace("</", "<\\/")
    script = f'<script type="application/json">{text}</script>'
    return f"<html><head>{PREVIEW}</head><body>{ROUTE}{script}</body></html>"


def media(**changed: Any) -> dict[str, Any]:
    """Return a post in the format of the logged-out page, with some values changed."""
    wrapper = copy.deepcopy(SITE.data(SITE.posts[EXAMPLE], "page"))["xig_polaris_media"]
    wrapper["if_not_gated_logged_out"] |= changed
    return {"xig_polaris_media": wrapper}


def post_of(page: PostPage) -> dict[str, Any]:
    return asyncio.run(page.to_item())


# PH-1


@pytest.mark.parametrize(
    "post",
    [
        {"code": EXAMPLE, "media_type": 1, "taken_at": 1_760_000_000, "image_versions2": {}},
        {"pk": PK, "like_count": 3},
        {"id": f"POLARIS_{PK}", "display_url": "https://cdn.example/a.jpg"},
        {"short": EXAMPLE, "taken_at": 1},
        {"short": EXAMPLE, **{f"key{number}": None for number in range(14)}},
    ],
)
@pytest.mark.parametrize("code", [EXAMPLE, ""])
def test_ph_1_a_post_under_an_unknown_key_is_not_a_throttled_page(post: dict[str, Any], code: str) -> None:
    several = sum(key in post for key in ("media_type", "taken_at", "image_versions2")) > 1
    error = error_of(page_of(html({"new_root": post}), code=code))
    if code or several:
        assert isinstance(error, ExtractionFailed)
        assert (error.reason, error.details[0]["loc"]) == ("blind", ["xig_polaris_media"])
    else:  # no post was requested: one known key does not prove that this is a post
        assert isinstance(error, UpstreamRateLimited)


@pytest.mark.parametrize(
    "data",
    [
        {"params": {"shortcode": EXAMPLE, "locale": "en"}},
        {"other": {"code": "DbSandbox02", "media_type": 1}},
        {"note": f"media_type of {EXAMPLE}"},
    ],
)
def test_ph_1_a_page_that_only_names_the_post_is_a_throttled_page(data: dict[str, Any]) -> None:
    error = error_of(page_of(html(data)))
    assert isinstance(error, UpstreamRateLimited)
    assert error.reason == "throttled_shell"


def test_ph_1_a_renamed_root_of_the_embed_page_is_not_a_missing_post() -> None:
    body = SITE.page(FakeRequest(f"/p/{EXAMPLE}/embed/captioned/"))[2]
    error = error_of(page_of(body.replace(b"shortcode_media", b"new_media"), kind=EmbedPage))
    assert isinstance(error, ExtractionFailed)
    assert error.reason == "blind"


# PH-4, PH-5, PH-6


@pytest.mark.parametrize("value", [True, False, None])
def test_ph_4_a_statement_about_the_visitor_does_not_fill_comments_disabled(*, value: bool | None) -> None:
    assert post_of(page_of(html(media(commenting_disabled_for_viewer=value))))["comments_disabled"] is None
    item = copy.deepcopy(SITE.data(SITE.posts[EXAMPLE], "item"))
    item["xdt_api__v1__media__shortcode__web_info"]["items"][0]["comments_disabled"] = True
    assert post_of(page_of(html(item)))["comments_disabled"] is True


def test_ph_5_the_shortcode_follows_from_the_id() -> None:
    found = media()
    del found["xig_polaris_media"]["if_not_gated_logged_out"]["code"]
    post = post_of(page_of(html(found)))
    assert (post["id"], post["shortcode"]) == (PK, EXAMPLE) == (PK, code_of_id(PK))


def test_ph_6_an_item_of_the_app_is_read() -> None:
    picture = {
        "candidates": [{"url": f"https://cdn.example/{n}.jpg", "width": n, "height": n} for n in (1080, 320, 640)]
    }
    item = {
        "pk": int(PK),
        "code": EXAMPLE,
        "taken_at": 1_760_000_000,
        "media_type": 8,
        "user": {"pk": 12, "username": "someone"},
        "carousel_media": [{"original_height": 900, "original_width": 720, "image_versions2": picture}],
        "image_versions2": picture,
        "preview_comments": [{"pk": 5, "text": "first", "created_at": 9, "user": {"pk": 3, "username": "other"}}],
    }
    post = asyncio.run(page_of(orjson.dumps({"items": [item]})).to_item())
    assert post["dimensions"] == {"height": 900, "width": 720}
    assert post["thumbnail_src"] == "https://cdn.example/320.jpg"
    assert [edge["node"]["text"] for edge in post["edge_media_to_comment"]["edges"]] == ["first"]
    video = {**item, "media_type": 2, "video_duration": 12.5, "carousel_media": None}
    assert asyncio.run(page_of(orjson.dumps({"items": [video]})).to_item())["video_duration"] == 12.5


# PH-9, PH3-1


@pytest.mark.parametrize("key", ["caption", "like_count", "comment_count", "usertags", "coauthor_producers"])
def test_ph_9_a_post_without_a_key_that_every_post_has_is_a_warning(key: str) -> None:
    body = SITE.page(FakeRequest(f"/p/{EXAMPLE}/"))[2]
    whole = page_of(body)
    asyncio.run(whole.to_item())
    assert whole.unread == []
    renamed = page_of(body.replace(b'"%b"' % key.encode(), b'"new_key"'))
    asyncio.run(renamed.to_item())
    assert {each.cause for each in renamed.unread} == {"missing"}
    assert f"xig_polaris_media.if_not_gated_logged_out.{key}" in {
        each.path.removesuffix(".text").removesuffix(".in[]").removesuffix("[]") for each in renamed.unread
    }


REEL = next(post for post in SITE.posts.values() if post.is_video and post.sound and post.layout == "wrapped")


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ("page", "video_versions"),
        ("page", "clips_metadata"),
        ("item", "video_versions"),
        ("item", "clips_metadata"),
        ("graph", "video_url"),
        ("graph", "clips_music_attribution_info"),
    ],
)
def test_ph3_1_a_reel_that_loses_its_file_or_its_sound_is_a_warning(form: str, key: str) -> None:
    data = orjson.dumps({"data": SITE.data(REEL, form)})
    page = page_of(data.replace(b'"%b"' % key.encode(), b'"new_key"'), code=REEL.code)
    post = post_of(page)
    assert None in (post["video_url"], post["clips_music_attribution_info"])
    assert any(f".{key}" in each.path and each.cause == "missing" for each in page.unread)


# PH3-2 to PH3-6


def embedded(**changed: Any) -> bytes:
    found = graph.embedded(SITE.posts[EXAMPLE]) | changed
    return embed({"gql_data": {"shortcode_media": found}}, light=True)


@pytest.mark.parametrize(("likes", "shown"), [(0, None), (-1, None), (12, 12)])
def test_ph3_2_the_embed_page_has_0_in_place_of_a_hidden_number_of_likes(likes: int, shown: int | None) -> None:
    page = page_of(embedded(edge_liked_by={"count": likes}), kind=EmbedPage)
    assert post_of(page)["edge_media_preview_like"] == {"count": shown}


@pytest.mark.parametrize("body", [{"error": 4630001}, {"data": None, "errors": [{"code": 4630001, "message": "x"}]}])
def test_ph3_3_the_error_of_a_post_that_is_gone(body: dict[str, Any]) -> None:
    error = error_of(page_of(orjson.dumps(body)))
    assert (error.code, error.reason) == ("TARGET_NOT_FOUND", "not_found")


def test_an_error_beside_the_post_is_not_its_error() -> None:
    body = orjson.dumps({"data": media(), "errors": [{"code": 1675004}]})
    assert post_of(page_of(body))["id"] == PK


def test_ph3_3_a_page_with_the_text_of_a_rate_limit() -> None:
    text = "<p>Please wait a few minutes before you try again.</p>"
    error = error_of(page_of(f"<html><head><title>Photo app</title></head><body>{text}{'<br>' * 200}</body></html>"))
    assert (error.code, error.reason) == ("UPSTREAM_RATE_LIMITED", "rate_limited")


def test_ph3_4_an_item_of_the_app_without_tags_and_coauthors_is_complete() -> None:
    (item,) = SITE.data(SITE.posts[EXAMPLE], "item")["xdt_api__v1__media__shortcode__web_info"]["items"]
    for key in ("usertags", "coauthor_producers", "clips_metadata", "view_count", "video_dash_manifest"):
        del item[key]
    for document in ({"items": [item]}, item):
        page = page_of(orjson.dumps(document))
        assert post_of(page)["id"] == PK
        assert page.unread == []


@pytest.mark.parametrize("preview", ["", PREVIEW, PREVIEW.replace("www.instagram", "www.threads")])
def test_ph3_5_a_page_of_a_sister_platform_is_not_a_rate_limit(preview: str) -> None:
    route = ROUTE.replace("comet.igweb.PolarisPostRoute", "comet.barcelona.BarcelonaPostRoute")
    error = error_of(page_of(f"<html><head>{preview}</head><body>{route}</body></html>"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "other_platform")


def test_ph3_6_the_stub_of_the_mobile_landing_page_is_a_page_without_the_post() -> None:
    stub = {"id": f"POLARIS_{PK}", "__typename": "XIGPolarisVideoMedia", "video_image": {"uri": "https://x/a.jpg"}}
    for body in (html({"xig_polaris_media": stub}), html({"result": {"data": {"xig_polaris_media": stub}}})):
        error = error_of(page_of(body))
        assert (error.code, error.reason) == ("UPSTREAM_RATE_LIMITED", "throttled_shell")


# The JSON block is cut out of the page without decoding the rest of the page


def block(**beside: Any) -> str:
    return html({"require": [["x", {"result": {"data": media(), **beside, "extensions": {"is_final": True}}}]]})


@pytest.mark.parametrize("beside", [{}, {"errors": [{"message": "execution error"}]}, {"a": {"extensions": {}}}])
def test_the_post_is_found_whatever_follows_it(beside: dict[str, Any]) -> None:
    page = page_of(block(**beside))
    assert post_of(page)["id"] == PK
    assert page.unread == []


def test_a_post_in_a_later_block_is_found() -> None:
    other = SITE.data(SITE.posts[SITE.listed[1]], "page")
    first = html({"result": {"data": other, "extensions": {}}})
    assert post_of(page_of(first + block()))["id"] == PK


# Values in the formats of other clients and other dates


@pytest.mark.parametrize(("likes", "shown"), [("1,234", 1234), (12.0, 12), (-1, None)])
def test_a_count_may_be_a_text_or_a_whole_float(likes: Any, shown: int | None) -> None:
    page = page_of(html(media(like_count=likes)))
    assert post_of(page)["edge_media_preview_like"] == {"count": shown}
    assert page.unread == []


@pytest.mark.parametrize("likes", ["1.2M", "many", 1.5])
def test_a_count_that_is_not_a_number_is_a_warning(likes: Any) -> None:
    page = page_of(html(media(like_count=likes)))
    assert post_of(page)["edge_media_preview_like"] == {"count": None}
    assert [str(each) for each in page.unread] == ["xig_polaris_media.if_not_gated_logged_out.like_count: type"]


def test_the_time_and_the_kind_may_be_texts() -> None:
    expected = post_of(page_of(html(media())))
    wrapper = media()
    post = wrapper["xig_polaris_media"]["if_not_gated_logged_out"]
    post |= {"taken_at": str(post["taken_at"]), "media_type": str(post["media_type"])}
    for edge in post["user"]["polaris_ordered_timeline_connection"]["edges"]:
        edge["node"]["media_type"] = str(edge["node"]["media_type"])
    page = page_of(html(wrapper))
    assert post_of(page) == expected
    assert page.unread == []


def test_a_post_may_have_the_type_of_the_web_info_query() -> None:
    """Trap 15 of the platform notes: seen in pages of 2026-10 that had fewer keys."""
    wrapper = copy.deepcopy(SITE.data(REEL, "page"))["xig_polaris_media"]
    expected = post_of(page_of(html({"xig_polaris_media": wrapper}), code=REEL.code))
    post = wrapper["if_not_gated_logged_out"]
    post["__typename"] = wrapper["__typename"] = "XDTMediaDict"
    del post["usertags"], post["location"]
    page = page_of(html({"xig_polaris_media": wrapper}), code=REEL.code)
    assert post_of(page) == {**expected, "edge_media_to_tagged_user": {"edges": []}}
    assert page.unread == []


def test_a_reel_of_the_graph_before_2026_has_no_manifest() -> None:
    data = SITE.data(REEL, "graph")
    del data["xdt_shortcode_media"]["dash_info"]
    page = page_of(orjson.dumps({"data": data}), code=REEL.code)
    assert post_of(page)["video_duration"]
    assert page.unread == []


def first_with(key: str, form: str) -> tuple[str, dict[str, Any]]:
    """Return shortcode and data of the first post (in the given format) whose key is not empty."""
    for each in SITE.posts.values():
        data = SITE.data(each, form)
        found = next(iter(data.values()), None) or {}
        post = found.get("items", [found])[0]
        value = post.get(key)
        if isinstance(value, dict):
            value = value.get("edges", value.get("in", value))
        if value:
            return each.code, data
    raise AssertionError(key)


@pytest.mark.parametrize(
    ("form", "holder", "key", "path"),
    [
        ("graph", "location", "slug", "xdt_shortcode_media.location.slug"),
        ("graph", "location", "has_public_page", "xdt_shortcode_media.location.has_public_page"),
        ("graph", "edge_media_to_tagged_user", "full_name", "edge_media_to_tagged_user.edges[].node.user.full_name"),
        ("item", "usertags", "full_name", "usertags.in[].user.full_name"),
        ("item", "usertags", "usertags", "items[].usertags.in[]"),
        ("item", "coauthor_producers", "coauthor_producers", "items[].coauthor_producers[]"),
    ],
)
def test_a_part_of_a_place_or_an_account_that_is_renamed_is_a_warning(
    form: str, holder: str, key: str, path: str
) -> None:
    code, data = first_with(holder, form)
    whole = page_of(orjson.dumps({"data": data}), code=code)
    post_of(whole)
    assert whole.unread == []
    text = orjson.dumps({"data": data}).replace(b'"%b":' % key.encode(), b'"new_key":')
    page = page_of(text, code=code)
    post_of(page)
    assert [each.path for each in page.unread if each.path.endswith(path) and each.cause == "missing"]


def test_coauthors_of_the_web_info_query_may_have_no_full_name() -> None:
    """No recorded response of this query has a coauthor. Those of the classic graph have no full name."""
    code, data = first_with("coauthor_producers", "item")
    for coauthor in data["xdt_api__v1__media__shortcode__web_info"]["items"][0]["coauthor_producers"]:
        del coauthor["full_name"]
    page = page_of(orjson.dumps({"data": data}), code=code)
    assert [each["full_name"] for each in post_of(page)["coauthor_producers"]].count("") > 0
    assert page.unread == []


def test_a_tagged_account_of_the_app_has_another_key_for_its_id() -> None:
    code, data = first_with("usertags", "item")
    (item,) = data["xdt_api__v1__media__shortcode__web_info"]["items"]
    expected = post_of(page_of(orjson.dumps({"items": [item]}), code=code))["edge_media_to_tagged_user"]
    for tag in item["usertags"]["in"]:
        tag["user"].pop("id", None)
        assert tag["user"]["pk"]
    assert expected["edges"]
    assert post_of(page_of(orjson.dumps({"items": [item]}), code=code))["edge_media_to_tagged_user"] == expected


def test_an_embed_page_may_lack_the_time() -> None:
    """An independent project lists all keys of the embed pages of 2026-07. No time is among them."""
    post = next(p for p in (SITE.posts[code] for code in SITE.listed) if p.is_video and p.timing == "embed")
    found = graph.embedded(post)
    del found["taken_at_timestamp"]
    page = page_of(embed({"gql_data": {"shortcode_media": found}}, light=True), code=post.code, kind=EmbedPage)
    assert post_of(page)["video_duration"] == post.duration
    assert (page.unread, page.has_time) == ([], False)
    text = orjson.dumps({"data": SITE.data(post, "graph")}).replace(b'"taken_at_timestamp"', b'"new_key"')
    assert error_of(page_of(text, code=post.code)).reason == "missing_field"


def test_an_error_page_that_states_an_age_is_not_that_of_a_missing_post() -> None:
    """These keys were seen on the error page of accounts with a minimum age (2026-07)."""
    gone = ROUTE.replace("PolarisPostRoute", "PolarisErrorRoute")
    stated = '<script type="application/json">{"failure_reason":"MA","restricted_age":25}</script>'
    assert error_of(page_of(f"<html>{gone}</html>")).code == "TARGET_NOT_FOUND"
    error = error_of(page_of(f"<html>{gone}{stated}</html>"))
    assert (error.code, error.reason) == ("TARGET_RESTRICTED", "age_gate")


@pytest.mark.parametrize("time", [1_784_372_418_000, "1784372418000", 0, "2026-07-18T11:00:18Z"])
def test_a_time_that_is_not_in_seconds_is_not_read(time: Any) -> None:
    """Milliseconds gave a time in the year 58,000."""
    for form, key in (("graph", "taken_at_timestamp"), ("item", "taken_at"), ("page", "taken_at")):
        data = SITE.data(SITE.posts[EXAMPLE], form)
        name = b'"%b":' % key.encode()
        text = orjson.dumps({"data": data}).replace(name, name + orjson.dumps(time) + b',"old":')
        assert name + orjson.dumps(time) in text
        error = error_of(page_of(text))
        assert (error.code, f".{key}: type" in str(error)) == ("EXTRACTION_FAILED", True)
