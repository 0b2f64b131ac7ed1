"""A minimal spider for the test platform: ``since=last`` requires only one line in the scraper."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from scrapy import Request
from web_poet import field

from crawler.errors import UpstreamError
from crawler.platforms.model import Model, Params, Selects
from crawler.platforms.page import PlatformPage
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Entries, Scraper, Target

ORIGIN = "https://timeline.example"


class TimelineParams(Params):
    """Params: the user, and the cursor of a page."""

    user: Annotated[str, Selects("echo")]
    """The user whose posts are returned."""
    cursor: Annotated[str, Selects("echo")] = ""
    """The cursor of the page, empty for the first page."""


class Post(Model):
    """A post."""

    post_id: str
    """The id of the post."""
    time: int | None = None
    """The publication time in Unix seconds."""


class Posts(Model):
    """The posts of a page."""

    main: list[Post]
    """The pinned posts, followed by the newest posts."""


class Timeline(Model):
    """A page of posts."""

    posts: Posts
    """The posts of the page."""
    cursor: str
    """The cursor of the next page, empty on the last page."""


class TimelinePage(PlatformPage):
    """Reads a page of posts."""

    source = "timeline"

    def validate_input(self) -> None:
        if self.response.status != 200:
            raise UpstreamError("It is broken today.")

    @field
    def posts(self) -> dict[str, Any]:
        """The posts of the page."""
        found: dict[str, Any] = self.response.json()["posts"]
        return found

    @field
    def cursor(self) -> str:
        """The cursor of the next page."""
        return str(self.response.json()["cursor"])


class TimelineSpider(PlatformSpider):
    """Crawls timelines of posts."""

    name = "timeline"
    allowed_origins = frozenset({ORIGIN})
    scrapers = (
        Scraper(
            name="timeline-posts",
            platform="timeline",
            summary="Posts.",
            params=TimelineParams,
            data=Timeline,
            example={"user": "someone"},
            entries=Entries("posts.main", "post_id", "time", "cursor"),
        ),
    )

    def request(self, target: Target) -> Request:
        return self.for_page(TimelinePage, Request(f"{ORIGIN}/?{urlencode(target.params.model_dump())}"))

    async def scrape(self, target: Target, first: First) -> Data:
        """Return the data of a page, and announce the next page."""
        data = await (await first.page(TimelinePage)).to_item()
        if data["cursor"]:
            self.follow(target, data, cursor=data["cursor"])
        return data
