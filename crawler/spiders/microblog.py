"""Microblog: profiles with their posts, from up to four public sources that fall back on one another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import structlog
from scrapy import Request
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__

from crawler.errors import ExtractionFailed, InvalidRequest, ScrapeError, TargetError, UpstreamBlocked
from crawler.platforms.microblog.api import (
    BAD_REQUEST,
    MISSING_FLAGS,
    STALE_QUERY,
    TOKEN_REFUSED,
    GuestTokenPage,
    TimelinePage,
    UserPage,
)
from crawler.platforms.microblog.embed import EmbedPage
from crawler.platforms.microblog.guest_token import SharedToken
from crawler.platforms.microblog.merge import Part, failure, profile_of, record, user_id_of
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.requests import (
    TIMELINE_QUERIES,
    USER_QUERIES,
    embed_request,
    profile_request,
    timeline_request,
    token_request,
    user_request,
)
from crawler.platforms.microblog.schema import Profile, ProfileParams
from crawler.platforms.microblog.user import FIELDS
from crawler.platforms.page import PlatformPage
from crawler.spiders.base import CrawlArguments, Data, First, PlatformSpider
from crawler.targets.target import Entries, Scraper, Target

logger = structlog.get_logger(__name__)

DECISIVE = frozenset({"page", "user"})
"""Sources that know whether a profile exists. What the others say of it, they say of their own copy."""
NOT_IN_NEWER_SHAPES = frozenset({"listed_count"})
"""A field for whose sake no further call is made."""


class MicroblogArguments(CrawlArguments):
    """The scraper's params, as text, and what only a crawl can do."""

    username: str | None = None
    """Handle of the profile."""
    cursor: str | None = None
    """``nextCursor`` of an earlier answer, to go on from there."""


class MicroblogSpider(Args[MicroblogArguments], PlatformSpider):
    """Profiles with their posts."""

    name = "microblog"
    metadata = {"title": "Microblog", "description": "Public profiles with their posts."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="microblog-profile",
            aliases=("microblog-profile-v4",),
            platform="microblog",
            summary="A profile with a page of its posts: identity, counts, reposts, quotes, videos.",
            params=ProfileParams,
            data=Profile,
            example={"username": "quiet_harbor"},
            pages=(EmbedPage, ProfilePage, TimelinePage, UserPage),
            entries=Entries("data.main", "post_id"),
        ),
    )
    args: MicroblogArguments

    def request(self, target: Target) -> Request:
        params = cast("ProfileParams", target.params)
        if params.cursor is None:
            first = self.for_page(ProfilePage, profile_request(self.origin(), params.handle))
        else:
            # A token is asked for where the platform wants one: nothing may be awaited before the target's own request.
            at = params.continuation
            asked = timeline_request(
                self.origin("api"),
                params.handle,
                user_id=at["user_id"],
                token=self._token.value,
                query_id=TIMELINE_QUERIES[0],
                cursor=at["cursor"],
            )
            first = self.for_page(TimelinePage, asked)
        return self._bounded(first)

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        asked = super().page_params(scraper, arguments)
        if "cursor" in asked and "username" in asked:
            asked["cursor"] = ProfileParams(**asked).continuation["cursor"]
        return asked

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        parts: dict[str, Part] = {}
        errors: list[ScrapeError] = []
        for page in pages:
            try:
                parts[page.source] = await page.to_item()
            except ScrapeError as error:
                errors.append(error)
        if errors and not profile_of(parts)["screen_name"]:
            raise failure(errors)
        return record(parts, str(pages[0].page_params.get("username") or "").removeprefix("@"))

    async def scrape(self, target: Target, first: First) -> Data:
        """A profile with a page of its posts; where a crawl follows pages, the next one is a target of its own."""
        if cast("ProfileParams", target.params).cursor is None:
            data = await self._gathered(target, first)
        else:
            data = await self._following(target, first)
        if data["hasMore"]:
            self.follow(target, data, cursor=data["nextCursor"])
        return data

    # The first page of posts: every source adds what the others do not expose

    async def _gathered(self, target: Target, first: First) -> Data:
        """The record from all sources, asked in the order of what they cost.

        A browser that loads the public page would come last, where none of them has the posts.

        Raises:
            ScrapeError: the profile cannot be had, or none of its posts.
        """
        parts: dict[str, Part] = {}
        errors: list[ScrapeError] = []
        handle = cast("ProfileParams", target.params).handle
        await self._try(target, "page", lambda: self._first(first), parts, errors)
        await self._try(target, "embed", lambda: self._embed(target), parts, errors)
        if not user_id_of(parts) or _incomplete(parts):
            await self._try(target, "user", lambda: self._user(target), parts, errors)
        user_id = user_id_of(parts)
        if user_id and profile_of(parts)["protected"] is not True:
            await self._try(target, "timeline", lambda: self._timeline(target, user_id), parts, errors)
        if errors and (_blind(parts) or not profile_of(parts)["screen_name"]):
            raise failure(errors)
        return record(parts, handle)

    async def _try(
        self,
        target: Target,
        source: str,
        ask: Callable[[], Awaitable[Part]],
        parts: dict[str, Part],
        errors: list[ScrapeError],
    ) -> None:
        """One source: its part, or its error, with which the others go on.

        Raises:
            ScrapeError: what ends the target whatever the others would say.
        """
        try:
            parts[source] = await ask()
        except ScrapeError as error:
            out_of_time = target.deadline is not None and asyncio.get_running_loop().time() >= target.deadline
            if out_of_time or (isinstance(error, TargetError) and source in DECISIVE):
                raise
            self.warn(target, source, error)
            errors.append(error)

    # Further pages: only the timeline leads to them

    async def _following(self, target: Target, first: First) -> Data:
        """A further page of posts, with the profile as far as its posts' author tells it."""
        params = cast("ProfileParams", target.params)
        at = params.continuation
        try:
            parts = {"timeline": await self._timeline(target, at["user_id"], at["cursor"], first=first)}
        except ExtractionFailed as error:
            if error.reason == BAD_REQUEST:
                raise InvalidRequest("The platform does not know this cursor (any more): begin anew.") from error
            raise
        errors: list[ScrapeError] = []
        if _incomplete(parts):
            await self._try(target, "user", lambda: self._user(target), parts, errors)
        for source, ask in (("page", self._page), ("embed", self._embed)):
            if not profile_of(parts)["screen_name"]:
                await self._try(target, source, lambda ask=ask: ask(target), parts, errors)  # type: ignore[misc]
                if source in parts:
                    parts[source] = {**parts[source], "posts": []}
        if errors and not profile_of(parts)["screen_name"]:
            raise failure(errors)
        return record(parts, params.handle, at["seen"])

    # The sources

    @staticmethod
    async def _first(first: First) -> Part:
        return await (await first.page(ProfilePage)).to_item()

    async def _page(self, target: Target) -> Part:
        return await self._source(ProfilePage, profile_request(self.origin(), _handle(target)), target)

    async def _embed(self, target: Target) -> Part:
        return await self._source(EmbedPage, embed_request(self.origin("embed"), _handle(target)), target)

    async def _source(self, kind: type[PlatformPage], request: Request, target: Target) -> Part:
        return await (await self.get(kind, self._bounded(request), target)).to_item()

    async def _user(self, target: Target) -> Part:
        def build(**how: Any) -> Request:
            return user_request(self.origin("api"), _handle(target), **how)

        return await self._call(UserPage, target, build, USER_QUERIES)

    async def _timeline(self, target: Target, user_id: str, cursor: str = "", first: First | None = None) -> Part:
        def build(**how: Any) -> Request:
            return timeline_request(self.origin("api"), _handle(target), user_id=user_id, cursor=cursor, **how)

        return await self._call(TimelinePage, target, build, TIMELINE_QUERIES, first)

    async def _call(
        self,
        kind: type[PlatformPage],
        target: Target,
        build: Callable[..., Request],
        query_ids: Sequence[str],
        first: First | None = None,
    ) -> Part:
        """One of the guest calls; again with the next id where one is out of date, with the flags that the platform
        asks for, with a new token where it refuses the old one, and once more where it is not understood: each once.
        ``first`` is its answer where the call was the scheduled request.

        Raises:
            ScrapeError: as the page object does, when all that was tried.
        """
        tried: set[str] = set()
        missing: list[str] = []
        ids = list(query_ids)
        while True:
            if first is None:
                token = await self._token.get(lambda: self._new_token(target))
            else:
                token = _token_of(first.request)
            try:
                if first is not None:
                    page = await first.page(kind, retry=False)
                else:
                    request = self._bounded(build(token=token, query_id=ids[0], missing=missing))
                    page = await self.get(kind, request, target, retry=False)
                return await page.to_item()
            except (UpstreamBlocked, ExtractionFailed) as error:
                first = None
                reason = error.reason if isinstance(error, UpstreamBlocked) or error.reason in REMEDIED else "misread"
                if reason == STALE_QUERY and len(ids) > 1:
                    ids.pop(0)
                elif reason in tried or reason not in {TOKEN_REFUSED, MISSING_FLAGS, "misread"}:
                    raise
                tried.add(reason)
                if reason == TOKEN_REFUSED:
                    self._token.refused(token)
                elif reason == MISSING_FLAGS:
                    missing = [str(detail["loc"][-1]) for detail in error.details]
                logger.info("retried", id=target.id, reason=error.reason)

    # The guest's token

    @property
    def _token(self) -> SharedToken:
        """The token of this platform, shared by all crawlers of the process."""
        lifetime = self.settings.getfloat("GUEST_TOKEN_LIFETIME")
        pause = self.settings.getfloat("GUEST_TOKEN_PAUSE")
        return self.shared.get(SharedToken, self.origin("api"), lambda: SharedToken(lifetime, pause))

    async def _new_token(self, target: Target) -> str:
        page = await self.get(GuestTokenPage, self._bounded(token_request(self.origin("api"))), target, retry=False)
        return str((await page.to_item())["token"])

    def _bounded(self, request: Request) -> Request:
        """A request that leaves time for the sources after it."""
        longest = min(self.settings.getfloat("SOURCE_TIMEOUT"), self.settings.getfloat("DOWNLOAD_TIMEOUT"))
        return request.replace(meta={**request.meta, "download_timeout": longest})


REMEDIED = frozenset({STALE_QUERY, MISSING_FLAGS, BAD_REQUEST})
"""Reasons of calls that are refused as they are, and would be again."""


def _blind(parts: dict[str, Part]) -> bool:
    """Whether no source gave any post of a profile that has some: an empty list would be no answer."""
    profile = profile_of(parts)
    seen = any(part["posts"] for part in parts.values())
    return not seen and profile["protected"] is not True and profile["statuses_count"] != 0


def _incomplete(parts: dict[str, Part]) -> bool:
    """Whether a call for the user can add to the profile."""
    profile = profile_of(parts)
    return any(profile[name] is None for name in FIELDS if name not in NOT_IN_NEWER_SHAPES)


def _handle(target: Target) -> str:
    return cast("ProfileParams", target.params).handle


def _token_of(request: Request) -> str:
    """The token that a call was made with, "" where it was made without."""
    return (request.headers.get("X-Guest-Token") or b"").decode()
