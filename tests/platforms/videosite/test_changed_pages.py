"""The video site's pages in other languages and formats, and players of unavailable videos."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.commands.extract import extract
from crawler.errors import TargetError
from crawler.platforms.videosite.details import ResolvePage, VideoPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.platforms.videosite.record import post, record
from crawler.reading.values import stated_count
from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.videosite.site import Site
from crawler.spiders import videosite as recent
from tests.platforms.videosite.test_pages import error_of, read
from tests.videosite import ORIGIN, SCRAPER, Stub, scrape

CHANNEL = "UCaaaaaaaaaaaaaaaaaaaaaa"
VIDEO = "abcdefghijk"


def extracted(*bodies: Any) -> dict[str, Any]:
    encoded = [orjson.dumps(body) for body in bodies]
    return asyncio.run(extract(SCRAPER, encoded, {}, url=ORIGIN))


@pytest.mark.parametrize(
    ("text", "views"),
    [
        ("1.7bn views", 1_700_000_000),
        ("1.2 crore views", 12_000_000),
        ("3.4 lakh views", 340_000),
        ("12,34,567 views", 1_234_567),
        ("1,204,331 views", 1_204_331),
        ("1,2 M views", None),
        ("1,2 mil views", None),
        ("1.204.331 views", None),
        ("1,2 views", None),
    ],
)
def test_rounded_numbers_of_other_regions(text: str, views: int | None) -> None:
    assert stated_count(text, "views?") == views


@pytest.mark.parametrize(
    ("stated", "exact", "found"),
    [
        (1_200_000, 1_204_331, 1_204_331),
        (1_200_000, 1_299_999, 1_299_999),
        (1_200_000, 1_180_000, 1_180_000),  # the page was fetched a little earlier
        (1_200_000, 700_000, 1_200_000),
        (1_200_000, 1_900_000, 1_200_000),
        (1_000, 1_099, 1_099),
        (12, 1, 12),
        (2, 1, 1),
        (None, 700_000, 700_000),
    ],
)
def test_an_exact_number_must_round_to_the_stated_one(stated: int | None, exact: int, found: int) -> None:
    channel = {"profile_id": CHANNEL, "display_name": "", "username": ""}
    listed, fed = post(VIDEO, kind="video", view_count=stated), post(VIDEO, kind="video", view_count=exact)
    assert record(channel, [listed], [fed])["posts"][0]["view_count"] == found


def test_a_continuation_with_metadata_keeps_its_rows() -> None:
    row = {"gridVideoRenderer": {"videoId": VIDEO, "title": {"simpleText": "One"}}}
    found = extracted(
        {
            "responseContext": {},
            "metadata": {"channelMetadataRenderer": {"externalId": CHANNEL, "title": "Channel"}},
            "onResponseReceivedActions": [{"appendContinuationItemsAction": {"continuationItems": [row]}}],
        }
    )
    assert [each["content_id"] for each in found["posts"]] == [VIDEO]
    assert (found["profile"]["profile_id"], found["profile"]["display_name"]) == (CHANNEL, "Channel")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b'<form action="https://consent.youtube.com/s">Alle akzeptieren',
            ("UPSTREAM_BLOCKED", "consent"),
        ),
        (b'<form action="https://consent.youtube.com/save">Tout accepter</form>', ("UPSTREAM_BLOCKED", "consent")),
        (b'<div class="g-recaptcha" data-sitekey="x"></div>', ("UPSTREAM_RATE_LIMITED", "captcha")),
    ],
)
def test_consent_and_captcha_pages_in_any_language(body: bytes, expected: tuple[str, str]) -> None:
    assert ChannelPage.recognise(body.decode())
    assert error_of(ChannelPage, b"<html>" + body + b"</html>") == expected


def test_a_renamed_handle_leads_to_the_same_channel() -> None:
    site = Site(light=True)
    expected = scrape(Stub(site), username="@tinychannel1109")["profile"]

    def renamed(_request: FakeRequest, answer: FakeResponse) -> FakeResponse:
        status, headers, body = answer
        return status, headers, body.replace(b"/@tinychannel1109", b"/@newname")

    stub = Stub(site, renamed)
    profile = scrape(stub, username="@tinychannel1109")["profile"]
    assert (profile["profile_id"], profile["username"]) == (expected["profile_id"], "newname")
    assert {"resolve", "browse"} <= set(stub.kinds()), stub.kinds()


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        ("LOGIN_REQUIRED", "This video is private", ("TARGET_RESTRICTED", "login_required")),
        ("LOGIN_REQUIRED", "Sign in to confirm your age", ("TARGET_RESTRICTED", "login_required")),
        ("LOGIN_REQUIRED", "Please sign in", ("UPSTREAM_BLOCKED", "login_wall")),
        ("UNPLAYABLE", "Not available in your country", ("TARGET_RESTRICTED", "unplayable")),
        ("ERROR", "This video has been removed by the uploader", ("TARGET_NOT_FOUND", "unavailable")),
        ("ERROR", "Video both long and unavailable", ("TARGET_NOT_FOUND", "unavailable")),
        ("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot", ("UPSTREAM_BLOCKED", "bot_check")),
        ("LOGIN_REQUIRED", "Melde dich an, um zu bestätigen, dass du kein Bot bist", ("UPSTREAM_BLOCKED", "bot_check")),
        ("OK", "", ("EXTRACTION_FAILED", "no_metadata")),
    ],
)
def test_the_players_reason_is_reported(status: str, reason: str, expected: tuple[str, str]) -> None:
    body = orjson.dumps({"playabilityStatus": {"status": status, "reason": reason}})
    assert error_of(VideoPage, body) == expected
    if expected[0].startswith("TARGET"):
        with pytest.raises(TargetError, match=reason):
            read(VideoPage, body)


def test_a_topic_channel_without_a_playlist_of_videos_has_its_uploads() -> None:
    site = Site(light=True)
    gated = next(each for each in site.channels if each.kind == "gated" and not each.fault)
    missing = orjson.dumps(
        {
            "responseContext": {},
            "alerts": [{"alertRenderer": {"type": "ERROR", "text": {"simpleText": "The playlist does not exist."}}}],
        }
    )
    asked: list[bytes] = []

    def topic(request: FakeRequest, answer: FakeResponse) -> FakeResponse:
        status, headers, body = answer
        if b'"VLUU' in request.body:
            asked.append(request.body.partition(b'"VL')[2][:4])
            if asked[-1] == b"UULF":
                return 200, {}, missing
            return site.page(
                FakeRequest(request.path, request.args, "POST", {}, request.body.replace(b"VLUU", b"VLUULF"))
            )
        return status, headers, body.replace(gated.name.encode(), b"Someone - Topic")

    stub = Stub(site, topic)
    found = scrape(stub, username=gated.id)
    assert found["profile"]["display_name"] == "Someone - Topic"
    assert [each[:2] for each in asked] == [b"UU", b"UU"]
    assert asked[0] == b"UULF" != asked[1]
    assert found["posts"]


@pytest.mark.parametrize("about", [True, False])
def test_a_further_page_needs_one_request_for_its_list(monkeypatch: pytest.MonkeyPatch, *, about: bool) -> None:
    stub = Stub(Site(light=True), VIDEOSITE_ENRICH_MAX=0)
    pages = [scrape(stub, username="@harborlights", include_about=about)]
    stub.requests.clear()
    pages.append(scrape(stub, username="@harborlights", include_about=about, cursor=pages[0]["pagination"]["cursor"]))
    assert stub.kinds() == ["continuation"]
    assert pages[1]["profile"] == pages[0]["profile"]
    assert not {each["content_id"] for each in pages[0]["posts"]} & {each["content_id"] for each in pages[1]["posts"]}
    # The channel's page is requested again when its remembered copy is too old. The record is the same.
    monkeypatch.setattr(recent, "LIFETIME_SECONDS", 0)
    again = scrape(stub, username="@harborlights", include_about=about, cursor=pages[0]["pagination"]["cursor"])
    assert again == pages[1]
    assert "page" in stub.kinds()


def test_a_missing_about_panel_is_requested_again() -> None:
    failing = {"about": True}

    def without_about(request: FakeRequest, answer: FakeResponse) -> FakeResponse:
        return (403, {}, b"Forbidden." * 20) if failing["about"] and site.kind(request).startswith("about") else answer

    site = Site(light=True)
    stub = Stub(site, without_about, VIDEOSITE_ENRICH_MAX=0)
    first = scrape(stub, username="@harborlights", include_about=True)
    failing["about"] = False
    second = scrape(stub, username="@harborlights", include_about=True, cursor=first["pagination"]["cursor"])
    assert first["profile"]["total_views"] is None
    assert second["profile"]["total_views"]


def test_stale_params_of_a_tab_are_replaced_by_its_own() -> None:
    site = Site(light=True)
    fresh = "bmV3IHBhcmFtcw=="
    bodies: list[dict[str, Any]] = []

    def changed(request: FakeRequest, answer: FakeResponse) -> FakeResponse:
        if request.method != "POST":
            return 200, {}, b"<html>no data</html>"
        body = orjson.loads(request.body)
        if not request.path.endswith("browse") or "continuation" in body:
            return answer
        bodies.append(body)
        status, headers, page = answer
        if body.get("params") == fresh:
            known = bodies[0]["params"]
            again = request.body.replace(fresh.encode(), known.encode())
            return site.page(FakeRequest(request.path, request.args, "POST", {}, again))
        data = orjson.loads(page)
        for tab in data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"]:
            shown = tab.get("tabRenderer", {"endpoint": {}})
            url = shown["endpoint"].get("commandMetadata", {}).get("webCommandMetadata", {}).get("url", "")
            shown["selected"] = url.endswith("/featured")
            if url.endswith("/videos"):
                shown["endpoint"]["browseEndpoint"] = {"params": fresh}
        return status, headers, orjson.dumps(data)

    found = scrape(Stub(site, changed), username="@harborlights")
    assert found["posts"]
    assert [body.get("params") == fresh for body in bodies] == [False, False, True]


def test_an_item_without_a_listed_picture_has_none() -> None:
    assert post(VIDEO, kind="video")["thumbnail_image"] == ""
    assert (
        post(VIDEO, kind="video", thumbnail_image="//i.example/a.jpg")["thumbnail_image"] == "https://i.example/a.jpg"
    )


def test_the_schema_states_which_numbers_are_exact() -> None:
    definitions = SCRAPER.data.model_json_schema()["$defs"]
    fields = [item for each in definitions.values() for item in each["properties"].items()]
    texts = {key: value.get("description", "") for key, value in fields}
    for field in ("view_count", "content_count", "follower_count"):
        assert "round" in texts[field], field
    assert "only the day" in texts["account_creation_date"]


# Renamed parts


@pytest.mark.parametrize("data", [{}, {"endpoint": {}}, {"endpoint": {"newEndpoint": {"browseId": CHANNEL}}}])
def test_an_address_in_an_unknown_format_is_not_a_missing_channel(data: dict[str, Any]) -> None:
    assert error_of(ResolvePage, orjson.dumps(data)) == ("EXTRACTION_FAILED", "blind")
