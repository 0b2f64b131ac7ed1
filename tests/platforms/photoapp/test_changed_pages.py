"""Pages of the photo app without data, with renamed keys or with contradictions, and posts that lack a key."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed, ScrapeError, UpstreamRateLimited
from crawler.platforms.photoapp.link import code_of_id
from crawler.platforms.photoapp.pages import EmbedPage, PostPage
from crawler.sandbox.photoapp import embed
from crawler.sandbox.photoapp.people import PHOTO
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


def result(data: Any) -> dict[str, Any]:
    """Put data where pages have the results of queries."""
    return {"require": [["x", {"result": {"data": data, "extensions": {"is_final": True}}}]]}


# A page is throttled if it has no result of a query, whatever the parameters of its route are

ROUTE_PARAMS = {"shortcode": EXAMPLE, "media_id": PK, "media_type": 1} | {f"key{number}": None for number in range(30)}


@pytest.mark.parametrize(
    "data",
    [
        {"params": ROUTE_PARAMS},
        {"rootView": {"props": {"media_id": PK}}, "hostableView": {"params": ROUTE_PARAMS}},
        {"entityKeyConfig": {"entity_id": {"source": "param", "value": EXAMPLE}}},
        {"gkxData": {"163": {"result": True, "hash": None}}, "ixData": {"1": {"result": {"hash": EXAMPLE}}}},
        {"other": {"code": EXAMPLE, "media_type": 1, "taken_at": 1, "like_count": 2, "image_versions2": {}}},
        {"note": f"media_type of {EXAMPLE}"},
    ],
)
@pytest.mark.parametrize("code", [EXAMPLE, ""])
def test_a_page_without_a_querys_result_is_a_throttled_page(data: dict[str, Any], code: str) -> None:
    error = error_of(page_of(html(data), code=code))
    assert isinstance(error, UpstreamRateLimited)
    assert error.reason == "throttled_shell"
    assert error.details == [{"loc": ["route"], "msg": "comet.igweb.PolarisPostRoute", "type": "mark"}]


def test_the_shell_of_2024_has_no_route_name() -> None:
    policy = '<script>{"action":"*","tracePolicy":"*"}</script><script>{"tracePolicy": "polaris.postPage"}</script>'
    error = error_of(page_of(f"<html><head>{PREVIEW}</head><body>{policy}</body></html>"))
    assert (error.code, error.details[0]["msg"]) == ("UPSTREAM_RATE_LIMITED", "polaris.postPage")


@pytest.mark.parametrize("post", [{"code": EXAMPLE}, {"id": f"POLARIS_{PK}"}, {"short": "x"}])
@pytest.mark.parametrize("code", [EXAMPLE, ""])
def test_a_result_under_an_unknown_key_is_not_a_throttled_page(post: dict[str, Any], code: str) -> None:
    error = error_of(page_of(html(result({"new_root": post})), code=code))
    assert isinstance(error, ExtractionFailed)
    assert (error.reason, error.details[0]["loc"]) == ("blind", ["xig_polaris_media"])


@pytest.mark.parametrize(
    ("other", "code", "reason"),
    [
        ({"data": None}, "EXTRACTION_FAILED", "blind"),
        ({"data": {"viewer": None}}, "EXTRACTION_FAILED", "blind"),
        ({"data": None, "errors": [{"message": "field_exception"}]}, "EXTRACTION_FAILED", "blind"),
        (
            {"data": None, "errors": [{"message": "field_exception", "path": ["xig_polaris_media"]}]},
            "TARGET_NOT_FOUND",
            "missing_or_private",
        ),
        ({"data": {"xig_polaris_media": None}}, "EXTRACTION_FAILED", "null_post"),
    ],
)
def test_a_null_result_of_another_query_says_nothing_about_the_post(
    other: dict[str, Any], code: str, reason: str
) -> None:
    post = {"result": {"data": {"new_root": {"code": EXAMPLE}}}}
    error = error_of(page_of(html({"require": [post, {"result": other}]})))
    assert (error.code, error.reason) == (code, reason)


@pytest.mark.parametrize("cut", [None, [], {"other": 1}])
def test_a_page_that_names_a_query_without_its_result_is_not_a_throttled_page(cut: Any) -> None:
    """The result is null or has moved: pages for throttled visitors name no query."""
    adapter = "adp_PolarisLoggedOutDesktopWWWPostRootContentQueryRelayPreloader_1"
    error = error_of(page_of(html({"require": [["x", [adapter, {"__bbox": {"result": cut}}]]]})))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "blind")


@pytest.mark.parametrize(
    "scripts",
    [
        'window._sharedData = {"entry_data": {"PostPage": [{"graphql": {"shortcode_media": {"id": "1"}}}]}};',
        'window.__additionalDataLoaded(\'/p/x/\', {"graphql": {"shortcode_media": null}});',
    ],
)
def test_a_page_without_a_known_route_is_of_an_unknown_form(scripts: str) -> None:
    """Pages of 2017 to 2021, which no request receives, name the post in their link-preview tags, too."""
    error = error_of(page_of(f"<html><head>{PREVIEW}</head><body><script>{scripts}</script></body></html>"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "unknown_form")


@pytest.mark.parametrize(
    "document",
    [
        {"items": [{"pk": PK, "code": EXAMPLE, "media_type": 1, "taken_at": 1}]},
        {"graphql": {"shortcode_media": {"id": PK, "shortcode": EXAMPLE}}},
        {"data": {"xdt_shortcode_media": {"id": PK}}, "errors": [{"message": "execution error"}]},
        {"if_not_gated_logged_out": {"pk": PK}},
        [],
        [{"pk": PK}],
    ],
)
def test_json_in_no_form_of_a_page_is_of_an_unknown_form(document: Any) -> None:
    error = error_of(page_of(orjson.dumps(document)))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "unknown_form")


# A statement about the post needs a mark


@pytest.mark.parametrize(
    ("data", "more", "code", "reason", "mark"),
    [
        ({"xig_polaris_media": None}, {}, "EXTRACTION_FAILED", "null_post", "No post"),
        (None, {}, "EXTRACTION_FAILED", "null_post", "No post"),
        ({}, {}, "EXTRACTION_FAILED", "null_post", "No post"),
        ({"viewer": None, "ads": [], "dialog": {}}, {}, "EXTRACTION_FAILED", "null_post", "No post"),
        (media(), {}, "EXTRACTION_FAILED", "null_post", "No post"),
        (
            {"xig_polaris_media": None},
            {"errors": [{"message": "A server error field_exception occured."}]},
            "TARGET_NOT_FOUND",
            "missing_or_private",
            "A server error field_exception occured.",
        ),
        (
            {"xig_polaris_media": None},
            {"errors": [{"message": "Rate limit exceeded"}]},
            "UPSTREAM_RATE_LIMITED",
            "rate_limited",
            "Rate limit exceeded",
        ),
        (
            {"xdt_api__v1__media__shortcode__web_info": {"items": []}},
            {"errors": [{"message": "execution error"}]},
            "EXTRACTION_FAILED",
            "stale_query",
            "execution error",
        ),
        ({"xdt_api__v1__media__shortcode__web_info": {"items": []}}, {}, "EXTRACTION_FAILED", "null_post", "No post"),
    ],
)
def test_a_null_post_needs_a_mark(data: Any, more: dict[str, Any], code: str, reason: str, mark: str) -> None:
    if data == media():
        data["xig_polaris_media"] |= {"if_not_gated_logged_out": None, "gating_ruling": None}
    page = html({"require": [["x", {"result": {"data": data, **more}}]]})
    for body in (page, orjson.dumps({"data": data, **more})):
        error = error_of(page_of(body))
        assert (error.code, error.reason, error.details[0]["msg"]) == (code, reason, mark)


@pytest.mark.parametrize(
    ("ruling", "code"),
    [
        ({"gating_type": 3, "title": None, "description": None}, "TARGET_RESTRICTED"),
        ({"gating_type": None, "title": "Not available", "description": ""}, "TARGET_RESTRICTED"),
        ({"gating_type": None, "title": "", "description": None}, "EXTRACTION_FAILED"),
    ],
)
def test_an_empty_ruling_is_no_ruling(ruling: dict[str, Any], code: str) -> None:
    data = media()
    data["xig_polaris_media"] |= {"if_not_gated_logged_out": None, "gating_ruling": ruling}
    assert error_of(page_of(html(result(data)))).code == code


@pytest.mark.parametrize("name", ["EmbedIsBroken", "EmbedBrokenMedia"])
def test_a_broken_embed_page_is_a_missing_post(name: str) -> None:
    box = f'<div class="_aa4c"><div class="{name}"><div class="ebmMessage">It may be broken.</div></div></div>'
    error = error_of(page_of(embed.page(None, box), kind=EmbedPage))
    assert (error.code, error.reason) == ("TARGET_NOT_FOUND", "missing_or_private")
    assert error.details == [{"loc": ["class"], "msg": f"{name} It may be broken.", "type": "mark"}]


@pytest.mark.parametrize("context", [None, {}, {"gql_data": None}, {"gql_data": {}}, {"gql_data": {"x": 1}}])
def test_an_embed_page_without_a_mark_has_no_data_block(context: dict[str, Any] | None) -> None:
    style = "<style>.EmbedIsBroken{color:red}</style>"  # a stylesheet names the class on every page
    error = error_of(page_of(embed.page(context, style), kind=EmbedPage))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "no_data_block")


def test_an_embed_page_of_a_photo_has_the_post_in_its_html() -> None:
    post = replace(
        SITE.posts[EXAMPLE], kind=PHOTO, caption="Two\nlines & <b> #tag", likes=12_345, comment_count=2, hidden=False
    )
    page = page_of(embed.simple(post), kind=EmbedPage)
    found = post_of(page)
    assert (page.unread, page.has_time) == ([], False)
    assert (found["id"], found["shortcode"], found["__typename"]) == (PK, EXAMPLE, "XDTGraphImage")
    assert found["edge_media_to_caption"]["edges"] == [{"node": {"text": "Two\nlines & <b> #tag"}}]
    assert found["edge_media_preview_like"] == {"count": 12_345}
    assert found["edge_media_to_comment"] == {"count": 2, "edges": []}
    assert found["display_url"] == post.image("e35_s1080x1080")
    owner = post.owner
    assert [found["owner"][key] for key in ("id", "username", "profile_pic_url", "is_verified")] == [
        owner.pk,
        owner.username,
        owner.picture,
        None,
    ]
    no_url = page_of(embed.simple(post).replace(b"https://www.instagram.com/p/", b"http://[broken"), kind=EmbedPage)
    assert post_of(no_url)["shortcode"] == EXAMPLE
    for rounded in (b"12.3K likes", b"12.345 likes", b"12 K likes"):
        page = page_of(embed.simple(post).replace(b"12,345 likes", rounded), kind=EmbedPage)
        assert post_of(page)["edge_media_preview_like"] == {"count": None}
    of_unknown_kind = page_of(embed.simple(post).replace(b"data-media-type", b"data-kind"), kind=EmbedPage)
    assert error_of(of_unknown_kind).code == "EXTRACTION_FAILED"


# The identity of a post is one value, made of all its statements


@pytest.mark.parametrize(
    ("inner", "outer", "wrong"),
    [
        ({}, {}, False),
        ({"pk": int(PK)}, {"pk": int(PK)}, False),
        ({"pk": int(PK) // 1000 * 1000}, {}, True),
        ({"pk": float(PK)}, {}, False),
        ({"pk": "not a number"}, {}, True),
        ({"id": f"POLARIS_{int(PK) + 1}"}, {}, True),
        ({"id": f"{PK}_12"}, {}, False),
        ({}, {"pk": str(int(PK) + 1)}, True),
        ({"pk": None}, {}, False),
        ({"code": None}, {}, False),
        ({"code": None, "pk": None}, {}, False),
        ({"code": None, "pk": None}, {"code": None}, False),
        ({"code": None, "pk": None, "id": None}, {"code": None}, False),
    ],
)
def test_the_code_decides_the_id(inner: dict[str, Any], outer: dict[str, Any], *, wrong: bool) -> None:
    data = media(**inner)
    data["xig_polaris_media"] |= outer
    page = page_of(html(data))
    post = post_of(page)
    assert (post["id"], post["shortcode"]) == (PK, EXAMPLE)
    contradictions = [each for each in page.unread if each.cause == "contradiction"]
    assert [each.path for each in contradictions] == ["xig_polaris_media.if_not_gated_logged_out.pk"] * wrong


def test_a_post_without_any_identity_is_not_returned() -> None:
    data = media(code=None, pk=None, id=None)
    data["xig_polaris_media"] |= {"code": None, "pk": None}
    assert error_of(page_of(html(data))).reason == "missing_field"


# The embed page


def test_a_renamed_root_of_the_embed_page_is_not_a_missing_post() -> None:
    body = SITE.page(FakeRequest(f"/p/{EXAMPLE}/embed/captioned/"))[2]
    error = error_of(page_of(body.replace(b"shortcode_media", b"new_media"), kind=EmbedPage))
    assert isinstance(error, ExtractionFailed)
    assert error.reason == "blind"


# Values


@pytest.mark.parametrize("value", [True, False, None])
def test_a_statement_about_the_visitor_does_not_fill_comments_disabled(*, value: bool | None) -> None:
    assert post_of(page_of(html(media(commenting_disabled_for_viewer=value))))["comments_disabled"] is None
    item = copy.deepcopy(SITE.data(SITE.posts[EXAMPLE], "item"))
    item["xdt_api__v1__media__shortcode__web_info"]["items"][0]["comments_disabled"] = True
    assert post_of(page_of(html(item)))["comments_disabled"] is True


def test_the_shortcode_follows_from_the_id() -> None:
    found = media()
    del found["xig_polaris_media"]["if_not_gated_logged_out"]["code"]
    post = post_of(page_of(html(found)))
    assert (post["id"], post["shortcode"]) == (PK, EXAMPLE) == (PK, code_of_id(PK))


# Renamed keys


@pytest.mark.parametrize("key", ["caption", "like_count", "comment_count", "usertags", "coauthor_producers"])
def test_a_post_without_a_key_that_every_post_has_is_a_warning(key: str) -> None:
    body = SITE.page(FakeRequest(f"/p/{EXAMPLE}/"))[2]
    whole = page_of(body)
    asyncio.run(whole.to_item())
    assert whole.unread == []
    renamed = page_of(body.replace(b'"%b"' % key.encode(), b'"new_key"'))
    asyncio.run(renamed.to_item())
    assert {each.cause for each in renamed.unread} == {"missing"}
    assert f"xig_polaris_media.if_not_gated_logged_out.{key}" in {
        each.path.removesuffix("[]") for each in renamed.unread
    }


REEL = next(
    post
    for post in SITE.posts.values()
    if post.product == "clips" and post.sound and post.layout == "wrapped" and post.timing == "manifest"
)


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ("page", "video_versions"),
        ("page", "clips_metadata"),
        ("item", "video_versions"),
        ("item", "clips_metadata"),
    ],
)
def test_a_reel_that_loses_its_file_or_its_sound_is_a_warning(form: str, key: str) -> None:
    data = orjson.dumps({"data": SITE.data(REEL, form)})
    page = page_of(data.replace(b'"%b"' % key.encode(), b'"new_key"'), code=REEL.code)
    post = post_of(page)
    assert None in (post["video_url"], post["clips_music_attribution_info"])
    assert any(f".{key}" in each.path and each.cause == "missing" for each in page.unread)


@pytest.mark.parametrize(
    ("form", "key", "unread"),
    [
        ("page", "video_versions", "video_versions: contradiction"),
        ("page", "has_audio", "has_audio: contradiction"),
        ("page", "clips_metadata", "clips_metadata: contradiction"),
        ("page", "text", "caption.text: null"),
        ("page", "profile_image_uri", "user.profile_image_uri: null"),
        ("page", "polaris_ordered_timeline_connection", "user.polaris_ordered_timeline_connection.edges[].node: null"),
        ("item", "video_versions", "video_versions: contradiction"),
        ("item", "has_audio", "has_audio: contradiction"),
        ("item", "clips_metadata", "clips_metadata: contradiction"),
        ("item", "video_dash_manifest", "video_dash_manifest: contradiction"),
        ("item", "text", "caption.text: null"),
        ("item", "in", "usertags.in[]: null"),
    ],
)
def test_a_null_that_another_value_contradicts_is_a_warning(form: str, key: str, unread: str) -> None:
    wrapper = copy.deepcopy(SITE.data(REEL, form))
    found = next(iter(wrapper.values()))
    post = found["items"][0] if form == "item" else found["if_not_gated_logged_out"]
    post["usertags"] = post["usertags"] or {"in": []}
    parts = [post, post["user"], post["caption"], post["usertags"]]
    (part,) = (each for each in parts if each and key in each)
    part[key] = None
    page = page_of(html(wrapper), code=REEL.code)
    post_of(page)
    path = "xdt_api__v1__media__shortcode__web_info.items[]"
    root = path if form == "item" else "xig_polaris_media.if_not_gated_logged_out"
    assert f"{root}.{unread}" in {str(each).partition(" in ")[0].partition(",")[0] for each in page.unread}


@pytest.mark.parametrize(
    ("title", "unread"),
    [
        (
            "Mara on the photo app: &quot;Boats&quot;",
            ["xig_polaris_media.if_not_gated_logged_out.caption: contradiction"],
        ),
        ("Mara &quot;Sails&quot; on the photo app", []),
    ],
)
def test_a_post_without_a_caption_has_none_in_the_preview(title: str, unread: list[str]) -> None:
    """A recorded page of a post without a caption (a6db9bbe1692) has only the name of its owner as the title."""
    preview = f'<meta property="og:title" content="{title}" />'
    page = page_of(html(media(caption=None)).replace(PREVIEW, PREVIEW + preview))
    assert post_of(page)["edge_media_to_caption"] == {"edges": []}
    assert [str(each) for each in page.unread] == unread


# The embed page, messages and other pages


def embedded(**changed: Any) -> bytes:
    found = embed.embedded(SITE.posts[EXAMPLE]) | changed
    return embed.page({"gql_data": {"shortcode_media": found}})


@pytest.mark.parametrize(("likes", "shown"), [(0, None), (-1, None), (12, 12)])
def test_the_embed_page_has_0_in_place_of_a_hidden_number_of_likes(likes: int, shown: int | None) -> None:
    page = page_of(embedded(edge_liked_by={"count": likes}), kind=EmbedPage)
    assert post_of(page)["edge_media_preview_like"] == {"count": shown}


@pytest.mark.parametrize("body", [{"error": 4630001}, {"data": None, "errors": [{"code": 4630001, "message": "x"}]}])
def test_the_error_of_a_post_that_is_gone(body: dict[str, Any]) -> None:
    error = error_of(page_of(orjson.dumps(body)))
    assert (error.code, error.reason) == ("TARGET_NOT_FOUND", "not_found")


def test_an_error_beside_the_post_is_not_its_error() -> None:
    body = orjson.dumps({"data": media(), "errors": [{"code": 1675004}]})
    assert post_of(page_of(body))["id"] == PK


def test_a_page_with_the_text_of_a_rate_limit() -> None:
    text = "<p>Please wait a few minutes before you try again.</p>"
    error = error_of(page_of(f"<html><head><title>Photo app</title></head><body>{text}{'<br>' * 200}</body></html>"))
    assert (error.code, error.reason) == ("UPSTREAM_RATE_LIMITED", "rate_limited")


@pytest.mark.parametrize("preview", ["", PREVIEW, PREVIEW.replace("www.instagram", "www.threads")])
def test_a_page_of_a_sister_platform_is_not_a_rate_limit(preview: str) -> None:
    route = ROUTE.replace("comet.igweb.PolarisPostRoute", "comet.barcelona.BarcelonaPostRoute")
    error = error_of(page_of(f"<html><head>{preview}</head><body>{route}</body></html>"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "other_platform")


def test_the_stub_of_the_mobile_landing_page_is_not_the_post() -> None:
    (code,) = (code for code, name in SITE.faults.items() if name == "stub")
    error = error_of(page_of(SITE.damaged("stub", FakeRequest(f"/p/{code}/"))[2], code=code))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "stub")
    assert error.details[0]["msg"].startswith("comet.instagramwebloggedout.")


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
    page = page_of(html({"xig_polaris_media": wrapper}), code=REEL.code)
    assert post_of(page) == expected


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
        ("item", "usertags", "full_name", "usertags.in[].user.full_name"),
        ("item", "usertags", "usertags", "items[].usertags"),
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
    """No recorded response of this query has a coauthor."""
    code, data = first_with("coauthor_producers", "item")
    for coauthor in data["xdt_api__v1__media__shortcode__web_info"]["items"][0]["coauthor_producers"]:
        del coauthor["full_name"]
    page = page_of(orjson.dumps({"data": data}), code=code)
    assert [each["full_name"] for each in post_of(page)["coauthor_producers"]].count("") > 0
    assert page.unread == []


def test_an_embed_page_may_lack_the_time() -> None:
    """An independent project lists all keys of the embed pages of 2026-07. No time is among them."""
    post = next(p for p in (SITE.posts[code] for code in SITE.listed) if p.is_video and p.timing == "embed")
    found = embed.embedded(post)
    del found["taken_at_timestamp"]
    page = page_of(embed.page({"gql_data": {"shortcode_media": found}}), code=post.code, kind=EmbedPage)
    assert post_of(page)["video_duration"] == post.duration
    assert (page.unread, page.has_time) == ([], False)


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
    for form, key in (("item", "taken_at"), ("page", "taken_at")):
        data = SITE.data(SITE.posts[EXAMPLE], form)
        name = b'"%b":' % key.encode()
        text = orjson.dumps({"data": data}).replace(name, name + orjson.dumps(time) + b',"old":')
        assert name + orjson.dumps(time) in text
        error = error_of(page_of(text))
        assert (error.code, f".{key}: type" in str(error)) == ("EXTRACTION_FAILED", True)
