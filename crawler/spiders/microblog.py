"""Microblog: profiles with their posts, from up to four public sources, each a fallback for the others."""

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
from crawler.platforms.microblog.merge import Part, profile_of, record, representative_error, user_id_of
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

AUTHORITATIVE = frozenset({"page", "user"})
"""Sources whose target errors are final. The other sources are copies and may be out of date."""
FALLBACKS = ((EmbedPage.source,), (GuestTokenPage.source, UserPage.source, TimelinePage.source))
"""The sources that can replace the page."""
NOT_IN_NEWER_SHAPES = frozenset({"listed_count"})
"""Fields that the user query may lack, so their absence does not cause a request for it."""


class MicroblogArguments(CrawlArguments):
    """The scraper's params as text, and the arguments of crawls."""

    username: str | None = None
    """Handle of the profile."""
    cursor: str | None = None
    """``nextCursor`` of an earlier response, for the page after it."""


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
            page = profile_request(self.origin(), params.handle)
            first = self.for_page(ProfilePage, page, fallbacks=FALLBACKS)
        else:
            # Nothing may be awaited before the scheduled request: without a token it fails, and is sent again with one.
            continuation = params.continuation
            timeline = timeline_request(
                self.origin("api"),
                params.handle,
                user_id=continuation["user_id"],
                token=self._token.value,
                query_id=TIMELINE_QUERIES[0],
                cursor=continuation["cursor"],
            )
            first = self.for_page(TimelinePage, timeline)
        return self._with_source_timeout(first)

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        params = super().page_params(scraper, arguments)
        if "cursor" in params and "username" in params:
            params["cursor"] = ProfileParams(**params).continuation["cursor"]
        return params

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
            raise representative_error(errors)
        return record(parts, str(pages[0].page_params.get("username") or "").removeprefix("@"))

    async def scrape(self, target: Target, first: First) -> Data:
        """Scrape a profile with a page of its posts. The next page is a follow-up target of its own."""
        if cast("ProfileParams", target.params).cursor is None:
            data = await self._first_page(target, first)
        else:
            data = await self._further_page(target, first)
        if data["hasMore"]:
            self.follow(target, data, cursor=data["nextCursor"])
        return data

    # The first page of posts: every source adds fields that the others do not expose

    async def _first_page(self, target: Target, first: First) -> Data:
        """Merge the record from all sources, the cheapest first.

        Raises:
            ScrapeError: no source has the profile, or none has any of its posts.
        """
        parts: dict[str, Part] = {}
        errors: list[ScrapeError] = []
        handle = cast("ProfileParams", target.params).handle
        await self._try_source(target, "page", lambda: self._scheduled_page(first), parts, errors)
        await self._try_source(target, "embed", lambda: self._embed(target), parts, errors)
        if not user_id_of(parts) or _incomplete(parts):
            await self._try_source(target, "user", lambda: self._user(target), parts, errors)
        user_id = user_id_of(parts)
        if user_id and profile_of(parts)["protected"] is not True:
            await self._try_source(target, "timeline", lambda: self._timeline(target, user_id), parts, errors)
        if errors and (_lacks_posts(parts) or not profile_of(parts)["screen_name"]):
            raise representative_error(errors)
        return record(parts, handle)

    async def _try_source(
        self,
        target: Target,
        source: str,
        fetch: Callable[[], Awaitable[Part]],
        parts: dict[str, Part],
        errors: list[ScrapeError],
    ) -> None:
        """Fetch one source. Store its part, or its error, so that the other sources are still tried.

        Raises:
            ScrapeError: the error is final for the target: its deadline, or a target error of a reliable source.
        """
        try:
            parts[source] = await fetch()
        except ScrapeError as error:
            out_of_time = target.deadline is not None and asyncio.get_running_loop().time() >= target.deadline
            if out_of_time or (isinstance(error, TargetError) and source in AUTHORITATIVE):
                raise
            self.warn(target, source, error)
            errors.append(error)

    # Further pages: only the timeline has them

    async def _further_page(self, target: Target, first: First) -> Data:
        """Scrape a further page of posts, with the profile from the author objects of its posts."""
        params = cast("ProfileParams", target.params)
        continuation = params.continuation
        try:
            parts = {
                "timeline": await self._timeline(target, continuation["user_id"], continuation["cursor"], first=first)
            }
        except ExtractionFailed as error:
            if error.reason == BAD_REQUEST:
                raise InvalidRequest("The platform rejected this cursor. Start again without one.") from error
            raise
        errors: list[ScrapeError] = []
        if _incomplete(parts):
            await self._try_source(target, "user", lambda: self._user(target), parts, errors)
        for source, fetch in (("page", self._page), ("embed", self._embed)):
            if not profile_of(parts)["screen_name"]:
                await self._try_source(target, source, lambda fetch=fetch: fetch(target), parts, errors)  # type: ignore[misc]
                if source in parts:
                    parts[source] = {**parts[source], "posts": []}
        if errors and not profile_of(parts)["screen_name"]:
            raise representative_error(errors)
        return record(parts, params.handle, continuation["seen"])

    # The sources

    @staticmethod
    async def _scheduled_page(first: First) -> Part:
        return await (await first.page(ProfilePage)).to_item()

    async def _page(self, target: Target) -> Part:
        return await self._source(ProfilePage, profile_request(self.origin(), _handle(target)), target)

    async def _embed(self, target: Target) -> Part:
        return await self._source(EmbedPage, embed_request(self.origin("embed"), _handle(target)), target)

    async def _source(self, kind: type[PlatformPage], request: Request, target: Target) -> Part:
        return await (await self.get(kind, self._with_source_timeout(request), target, optional=True)).to_item()

    async def _user(self, target: Target) -> Part:
        def build(**options: Any) -> Request:
            return user_request(self.origin("api"), _handle(target), **options)

        return await self._call(UserPage, target, build, USER_QUERIES)

    async def _timeline(self, target: Target, user_id: str, cursor: str = "", first: First | None = None) -> Part:
        def build(**options: Any) -> Request:
            return timeline_request(self.origin("api"), _handle(target), user_id=user_id, cursor=cursor, **options)

        return await self._call(TimelinePage, target, build, TIMELINE_QUERIES, first)

    async def _call(
        self,
        kind: type[PlatformPage],
        target: Target,
        build: Callable[..., Request],
        query_ids: Sequence[str],
        first: First | None = None,
    ) -> Part:
        """Send a query of the guest API, with one retry for each remedy.

        The remedies: the next query id for an outdated one, flags that the platform requires, a new token for a
        rejected one, and the same request again for a response that was not recognised. ``first`` is the response if
        the query was the scheduled request.

        Raises:
            ScrapeError: the page object's error, after all remedies.
        """
        tried: set[str] = set()
        missing: list[str] = []
        ids = list(query_ids)
        optional = first is None
        while True:
            if first is None:
                token = await self._token.get(lambda: self._new_token(target, optional=optional))
            else:
                token = _token_of(first.request)
            try:
                if first is not None:
                    page = await first.page(kind, retry=False)
                else:
                    request = self._with_source_timeout(build(token=token, query_id=ids[0], missing=missing))
                    page = await self.get(kind, request, target, retry=False, optional=optional)
                return await page.to_item()
            except (UpstreamBlocked, ExtractionFailed) as error:
                first = None
                reason = (
                    error.reason
                    if isinstance(error, UpstreamBlocked) or error.reason in PERMANENT_REASONS
                    else "unrecognised"
                )
                if reason == STALE_QUERY and len(ids) > 1:
                    ids.pop(0)
                elif reason in tried or reason not in {TOKEN_REFUSED, MISSING_FLAGS, "unrecognised"}:
                    if reason == TOKEN_REFUSED:  # a new token, too
                        await self.breakers.count(kind.source, error)
                    raise
                tried.add(reason)
                if reason == TOKEN_REFUSED:
                    self._token.invalidate(token)
                elif reason == MISSING_FLAGS:
                    missing = [str(detail["loc"][-1]) for detail in error.details]
                logger.info("retried", id=target.id, reason=error.reason)

    # The guest token

    @property
    def _token(self) -> SharedToken:
        """The token of this platform, shared by all crawlers of the process."""
        lifetime = self.settings.getfloat("GUEST_TOKEN_LIFETIME")
        pause = self.settings.getfloat("GUEST_TOKEN_PAUSE")
        return self.shared.get(SharedToken, self.origin("api"), lambda: SharedToken(lifetime, pause))

    async def _new_token(self, target: Target, *, optional: bool) -> str:
        request = self._with_source_timeout(token_request(self.origin("api")))
        page = await self.get(GuestTokenPage, request, target, retry=False, optional=optional)
        return str((await page.to_item())["token"])

    def _with_source_timeout(self, request: Request) -> Request:
        """Bound a request's time, so that it leaves time for the next sources."""
        longest = min(self.settings.getfloat("SOURCE_TIMEOUT"), self.settings.getfloat("DOWNLOAD_TIMEOUT"))
        return request.replace(meta={**request.meta, "download_timeout": longest})


PERMANENT_REASONS = frozenset({STALE_QUERY, MISSING_FLAGS, BAD_REQUEST})
"""Reasons for which the same request would fail again."""


def _lacks_posts(parts: dict[str, Part]) -> bool:
    """Whether no source has any post of a profile with posts. An empty list would be wrong data."""
    profile = profile_of(parts)
    has_posts = any(part["posts"] for part in parts.values())
    return not has_posts and profile["protected"] is not True and profile["statuses_count"] != 0


def _incomplete(parts: dict[str, Part]) -> bool:
    """Whether the profile lacks fields that the user query may have."""
    profile = profile_of(parts)
    return any(profile[name] is None for name in FIELDS if name not in NOT_IN_NEWER_SHAPES)


def _handle(target: Target) -> str:
    return cast("ProfileParams", target.params).handle


def _token_of(request: Request) -> str:
    """The token that a request was sent with, or ""."""
    return (request.headers.get("X-Guest-Token") or b"").decode()
