"""The video site's pages in other languages and formats, and players of unavailable videos."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.commands.extract import extract
from crawler.platforms.videosite.record import post, record
from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.videosite.site import Site
from crawler.spiders import videosite as recent
from tests.videosite import ORIGIN, SCRAPER, Stub, scrape

CHANNEL = "UCaaaaaaaaaaaaaaaaaaaaaa"
VIDEO = "abcdefghijk"


def extracted(*bodies: Any) -> dict[str, Any]:
    encoded = [orjson.dumps(body) for body in bodies]
    return asyncio.run(extract(SCRAPER, encoded, {}, url=ORIGIN))


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
