"""Channel pages that are rare among the recordings: no requested tab, other languages, unusual texts."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import orjson
import pytest

from crawler.platforms.videosite.item import item_of
from crawler.platforms.videosite.pages import ChannelPage
from crawler.platforms.videosite.payload import Short
from crawler.reading.careful import read_plain
from tests.platforms.videosite.test_findings import CHANNEL, Change, header, lockups, page_of, read, rows_of


def problems(change: Change, tab: str = "videos") -> tuple[dict[str, Any], list[str]]:
    """Return the item that is read from a changed channel, and the unread parts."""
    changed = copy.deepcopy(CHANNEL)
    change(changed)
    page = page_of(ChannelPage, orjson.dumps(changed), tab=tab)
    return asyncio.run(page.to_item()), page.problems()


@pytest.mark.parametrize("shelf", ["channelFeaturedContentRenderer", "aShelfThatNobodyKnows"])
def test_a_channel_without_the_requested_tab_is_read_whatever_its_home_tab_shows(shelf: str) -> None:
    def change(data: Any) -> None:
        tabs = data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"]
        del tabs[1]  # the tab with the videos
        section: dict[str, Any] = {"itemSectionRenderer": {"contents": [{shelf: {"items": []}}]}}
        tabs[0]["tabRenderer"] |= {"selected": True, "content": {"sectionListRenderer": {"contents": [section]}}}

    item, unread = problems(change)
    assert ("videos" in item["tabs"], item["posts"], item["more"], unread) == (False, [], False, [])
    assert item["profile"]["follower_count"] is not None


@pytest.mark.parametrize(
    "lines",
    [
        [["@a"], ["チャンネル登録者数 12万人", "123 本の動画"]],
        [["@a"], ["12万位订阅者", "123 个视频"]],
        [["@a"], ["1,2 mln subskrybentów", "123 filmy"]],
        [["@a"], ["12.345 Abonnenten"]],
        [["@a"], ["Keine Abonnenten", "3 Videos"]],
    ],
)
def test_numbers_of_a_header_in_any_other_language_are_reported(lines: list[list[str]]) -> None:
    _, unread = problems(with_lines(lines))
    assert unread == ["EXTRACTION_FAILED: The page's header is not in English: its numbers are missing."]


@pytest.mark.parametrize(
    "lines",
    [
        *(
            [["@a2020", "she/her"], ["1 subscriber", "1 video"]],
            [["@a"], ["12 videos"]],
            [["@a"], ["No videos"]],
            [["@a"]],
        ),
        [["@a"], ["8.2M subscribers", "300 videos", "29.1M monthly audience"]],
    ],
)
def test_headers_with_few_numbers_are_whole(lines: list[list[str]]) -> None:
    assert problems(with_lines(lines))[1] == []


def with_lines(lines: list[list[str]]) -> Change:
    def change(data: Any) -> None:
        rows = [{"metadataParts": [{"text": {"content": part}} for part in line]} for line in lines]
        header(data)["metadata"] = {"contentMetadataViewModel": {"metadataRows": rows}}

    return change


@pytest.mark.parametrize("text", ["1.2Mn views", "1.234.567 views", "1.2万 views"])
def test_a_row_that_states_its_views_in_an_unknown_form_is_reported(text: str) -> None:
    def change(data: Any) -> None:
        about = lockups(data)[3]["metadata"]["lockupMetadataViewModel"]["metadata"]["contentMetadataViewModel"]
        about["metadataRows"] = [{"metadataParts": [{"text": {"content": part}} for part in (text, "3 days ago")]}]

    item, unread = read(change)
    assert item["posts"][3]["view_count"] is None
    assert [(each.cause, each.rows, each.of, each.names) for each in unread] == [("unknown", 1, 30, (text,))]


def test_the_length_is_also_read_from_the_overlay_of_2025() -> None:
    def change(data: Any) -> None:
        badge = {"thumbnailBadgeViewModel": {"text": "1:02"}}
        for lockup in lockups(data):
            overlays = [{"thumbnailOverlayBadgeViewModel": {"thumbnailBadges": [badge]}}]
            lockup["contentImage"]["thumbnailViewModel"]["overlays"] = overlays

    item, unread = read(change)
    assert ({each["video_duration_seconds"] for each in item["posts"]}, unread) == ({62}, [])


def test_a_banner_under_another_key_is_reported_and_a_missing_one_is_not() -> None:
    def renamed(data: Any) -> None:
        header(data)["bannerNew"] = header(data).pop("banner")

    assert [each.path.rpartition(".")[2] for each in read(renamed)[1]] == ["banner"]
    assert read(lambda data: header(data).pop("banner"))[1] == []


@pytest.mark.parametrize(
    ("text", "views"),
    [
        ("My first 100 views - play Short", None),
        ("My first 100 views, 2.4 thousand views – play Short", 2_400),
        ("Lantern, no views - play Short", 0),
        ("Lantern - play Short", None),
    ],
)
def test_a_number_of_views_in_a_title_is_not_the_number_of_views(text: str, views: int | None) -> None:
    short = {
        "accessibilityText": text,
        "onTap": {"innertubeCommand": {"reelWatchEndpoint": {"videoId": "aaaaaaaaaaa"}}},
        "overlayMetadata": {"primaryText": {"content": text.partition(",")[0]}},
        "thumbnailViewModel": {"thumbnailViewModel": {"image": {"sources": [{"url": "https://i.example/a.jpg"}]}}},
    }
    shape, _ = read_plain(Short, short)
    assert shape is not None
    assert item_of(shape, "shorts")["view_count"] == views


def test_titles_and_pictures_that_are_empty_in_all_rows_are_reported() -> None:
    def emptied(data: Any) -> None:
        for lockup in lockups(data):
            lockup["metadata"]["lockupMetadataViewModel"]["title"]["content"] = ""
            lockup["contentImage"]["thumbnailViewModel"]["image"]["sources"] = []

    ends = {(each.path.partition("lockupViewModel.")[2], each.cause, each.rows) for each in read(emptied)[1]}
    assert ends == {
        ("metadata.lockupMetadataViewModel.title.content", "null", 30),
        ("contentImage.thumbnailViewModel.image.sources[-1].url", "null", 30),
    }


def test_an_empty_token_is_not_the_end_of_the_list() -> None:
    def emptied(data: Any) -> None:
        rows_of(data)[-1]["continuationItemRenderer"]["continuationEndpoint"]["continuationCommand"]["token"] = ""

    item, unread = read(emptied)
    assert (len(item["posts"]), item["more"], [each.loses_rows for each in unread]) == (30, True, [True])
