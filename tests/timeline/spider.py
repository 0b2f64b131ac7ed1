"""Its spider, as small as one can be: what ``since=last`` needs is one line of its scraper."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from scrapy import Request
from web_poet import field

from crawler.errors import UpstreamError
from crawler.platforms.model import Model, Params
from crawler.platforms.page import PlatformPage
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Entries, Scraper, Target


class TimelineParams(Params):
    """Whose posts, and from where on."""

    user: str
    """Whose."""
    cursor: str = ""
    """From where on."""


class Post(Model):
    """A post."""

    post_id: str
    """Its id."""
    time: int | None = None
    """When it was published."""


class Posts(Model):
    """The list of them."""

    main: list[Post]
    """The pinned posts first, then the newest."""


class Timeline(Model):
    """A page of posts."""

    posts: Posts
    """Its posts."""
    cursor: str
    """Of the next page, empty on the last."""


class TimelinePage(PlatformPage):
    """Reads a page of posts."""

    source = "timeline"

    def validate_input(self) -> None:
        if self.response.status != 200:
            raise UpstreamError("It is broken today.")

    @field
    def posts(self) -> dict[str, Any]:
        """Its posts."""
        found: dict[str, Any] = self.response.json()["posts"]
        return found

    @field
    def cursor(self) -> str:
        """Of the next page."""
        return str(self.response.json()["cursor"])


class TimelineSpider(PlatformSpider):
    """Posts by id."""

    name = "timeline"
    scrapers = (
        Scraper(
            name="timeline-posts",
            platform="timeline",
            summary="Posts.",
            params=TimelineParams,
            data=Timeline,
            example={"user": "someone"},
            entries=Entries("posts.main", "post_id", "time"),
        ),
    )

    def request(self, target: Target) -> Request:
        return self.for_page(TimelinePage, Request(f"{self.origin()}/?{urlencode(target.params.model_dump())}"))

    async def scrape(self, target: Target, first: First) -> Data:
        """A page's data, and its next page."""
        data = await (await first.page(TimelinePage)).to_item()
        if data["cursor"]:
            self.follow(target, data, cursor=data["cursor"])
        return data
