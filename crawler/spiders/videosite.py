"""Video site: the spider for channels. A record is a channel with one page of items, from several responses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from scrapy import Request

from crawler.items import VideositeProfileItem, VideositeProfileV3Item
from crawler.platforms.page import PlatformPage
from crawler.platforms.videosite import requests as upstream
from crawler.platforms.videosite.channel import ChannelReader
from crawler.platforms.videosite.details import AboutPage, CommentsPage, FeedPage, ResolvePage, VideoPage
from crawler.platforms.videosite.lists import ContinuationPage, PlaylistPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.platforms.videosite.recent import RecentChannels
from crawler.platforms.videosite.record import joined_record
from crawler.platforms.videosite.schema import TABS, ChannelParams, ChannelRecord, ProfileParams, switch
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Entries, Scraper, Target

PAGES = (AboutPage, FeedPage, VideoPage, CommentsPage, ResolvePage, PlaylistPage, ChannelPage, ContinuationPage)


class VideositeSpider(PlatformSpider):
    """Scrapes the video site's channels, with their videos, shorts and live streams."""

    name = "videosite"
    metadata = {"title": "Video site", "description": "Channel profiles with their items."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="videosite-profile-v3",
            platform="videosite",
            summary="A channel with one page of its videos, shorts or live streams.",
            params=ProfileParams,
            data=ChannelRecord,
            item=VideositeProfileV3Item,
            example={"username": "@harborlights"},
            pages=PAGES,
            entries=Entries("posts", "content_id", "published_date"),
        ),
        Scraper(
            name="videosite-profile",
            platform="videosite",
            summary="A channel with one page of its items, from the channel's page alone.",
            params=ChannelParams,
            data=ChannelRecord,
            item=VideositeProfileItem,
            example={"username": "@harborlights"},
            pages=PAGES,
            entries=Entries("posts", "content_id", "published_date"),
        ),
    )

    def request(self, target: Target) -> Request:
        return ChannelReader(self, target, self.recent).request

    @cached_property
    def recent(self) -> RecentChannels:
        """The channels that were read last."""
        return RecentChannels()

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        params = super().page_params(scraper, arguments)
        expected = upstream.expected_echo(upstream.addresses(params["username"])[0]) if "username" in params else {}
        tab = {"tab": TABS[params["type"]]} if params.get("type") in TABS else {}
        about = {"include_about": switch(params["include_about"])} if "include_about" in params else {}
        without = {} if "include_about" in scraper.params.model_fields else {"without_about": True}
        return params | expected | tab | about | without

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        return joined_record({page.source: await page.to_item() for page in pages}, pages[0].page_params)

    async def scrape(self, target: Target, first: First) -> Data:
        """Scrape a channel with a page of its items. If the crawl follows pages, the next page is a separate target."""
        reader = ChannelReader(self, target, self.recent)
        data = await reader.record(first)
        cursor, has_more = data["pagination"]["cursor"], data["pagination"]["has_more"]
        ids = [each["content_id"] for each in data["posts"]]
        self.listings.add(target, ids, None, is_first=reader.continuation is None)
        if not cursor:
            self.close_listing(target, ContinuationPage.source, ended=not has_more and not reader.leads_back)
        elif not self.follow(target, data, cursor=cursor):
            self.close_listing(target, ContinuationPage.source, ended=None)
        return data
