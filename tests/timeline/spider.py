"""Its spider, as small as one can be: what ``since=last`` needs is one line of its scraper."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlencode

import orjson
from scrapy import Request
from scrapy.http import Response
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__

from crawler.errors import UpstreamError
from crawler.models import Model, Params
from crawler.spiders.base import CrawlArguments, PlatformSpider
from crawler.targets import Entries, Record, Scraper, Target


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


class Posts(Model):
    """The list of them."""

    main: list[Post]
    """The newest first, but for those that are pinned."""


class Timeline(Model):
    """A page of posts."""

    posts: Posts
    """Its posts."""
    cursor: str
    """Of the next page, empty on the last."""


class TimelineArguments(CrawlArguments):
    """The params, as text."""

    user: str | None = None
    """Whose posts."""


class TimelineSpider(Args[TimelineArguments], PlatformSpider):
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
            entries=Entries("posts.main", "post_id"),
        ),
    )
    args: TimelineArguments

    def request(self, target: Target) -> Request:
        return Request(f"{self.origin()}/?{urlencode(target.params.model_dump())}", callback=self.parse_page)

    async def parse_page(self, response: Response) -> AsyncIterator[Record]:
        """A page's record, and its next page."""
        assert response.request is not None
        target: Target = response.request.meta["target"]
        if response.status != 200:
            raise UpstreamError("It is broken today.")
        data = orjson.loads(response.body)
        if data["cursor"]:
            self.follow(target, data, cursor=data["cursor"])
        yield self.record(target, data)
