"""Microblog: the spider for profiles with their posts. It reads up to four public sources; some of them may fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any, cast

import structlog
from scrapy import Request

from crawler.errors import (
    ExtractionFailed,
    InvalidRequest,
    ScrapeError,
    TargetError,
    UpstreamBlocked,
    UpstreamRateLimited,
)
from crawler.items import MicroblogProfileItem
from crawler.platforms.ids import platform_ids
from crawler.platforms.microblog.api import (
    BAD_REQUEST,
    STALE_QUERY,
    TOKEN_REFUSED,
    USER_PATH,
    ApiPage,
    GuestTokenPage,
    TimelinePage,
    UserPage,
)
from crawler.platforms.microblog.embed import EmbedPage
from crawler.platforms.microblog.guest_query import CurrentQueries, GuestQuery
from crawler.platforms.microblog.guest_token import SharedToken
from crawler.platforms.microblog.ids import Ids
from crawler.platforms.microblog.merge import Part, profile_of, record, representative_error, user_id_of
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.requests import (
    Credentials,
    embed_request,
    profile_request,
    timeline_request,
    token_request,
    user_request,
)
from crawler.platforms.microblog.schema import Profile, ProfileParams
from crawler.platforms.microblog.user import FIELDS
from crawler.platforms.page import PlatformPage, missing_error
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.coverage import NO_END, Coverage
from crawler.targets.target import Entries, Scraper, Target
from crawler.targets.warning import OutcomeWarning

logger = structlog.get_logger(__name__)

SOURCES = ("page", "embed", "user", "timeline")
"""The sources, in the order in which they are requested one at a time."""
AUTHORITATIVE = frozenset({"page", "user"})
"""Sources whose target errors are final. The other sources are copies and may be out of date."""
FALLBACKS = ((EmbedPage.source,), (GuestTokenPage.source, UserPage.source, TimelinePage.source))
"""The sources that can replace the page."""
NOT_IN_NEWER_SHAPES = frozenset({"listed_count"})
"""Fields that the user query may lack. If only these are missing, the query is not sent."""
MAX_SKIPPED_PAGES = 3
"""Maximum number of pages that a target skips because earlier targets returned all posts on them."""


class MicroblogSpider(PlatformSpider):
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
            item=MicroblogProfileItem,
            example={"username": "quiet_harbor"},
            pages=(EmbedPage, ProfilePage, TimelinePage, UserPage),
            entries=Entries("data.main", "post_id", "upload_timestamp"),
        ),
    )

    def request(self, target: Target) -> Request:
        params = cast("ProfileParams", target.params)
        if params.cursor is None:
            page = profile_request(self.origin(), params.handle)
            first = self.for_page(ProfilePage, page, fallbacks=FALLBACKS)
        else:
            first = self._further_request(params.handle, params.continuation)
        return self._with_source_timeout(first)

    def _further_request(self, handle: str, continuation: dict[str, Any]) -> Request:
        """Return the scheduled request for a cursor: for the timeline, or for the user if the cursor has no user id.

        ``on_lane`` adds the guest token, which belongs to an egress.
        """
        user_id = continuation["user_id"]
        query = self._timeline_query(handle, user_id, continuation["cursor"]) if user_id else self._user_query(handle)
        return self.for_page(query.page, query.request(self._credentials("")))

    def on_lane(self, request: Request) -> None:
        """Add the current guest token to a scheduled API request.

        A new token cannot be awaited here. Without a token, the request fails, and is sent again with one.
        """
        source, needed = request.meta.get("source"), {TimelinePage.source, UserPage.source}
        if source in needed and "X-Guest-Token" not in request.headers:
            token = self._token(request.meta["target"], source).value
            if token:
                request.headers["X-Guest-Token"] = token

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
        """Scrape a profile with one page of its posts. The next page becomes a follow-up target."""
        if cast("ProfileParams", target.params).cursor is None:
            data = await self._first_page(target, first)
        else:
            data = await self._further_page(target, first)
        if data["hasMore"]:
            self.follow(target, data, cursor=data["nextCursor"])
        return data

    # The first page of posts, merged from all sources: each has fields that the other sources do not expose

    async def _first_page(self, target: Target, first: First) -> Data:
        """Fetch the sources, the cheapest first, and merge them into one record.

        Raises:
            ScrapeError: sources failed, and the remaining sources lack the profile or its posts.
        """
        parts: dict[str, Part] = {}
        errors: dict[str, ScrapeError] = {}
        try:
            await self._first_sources(target, first, parts, errors)
        finally:
            self._warn_of_failures(target, errors)
        if errors and (_lacks_posts(parts) or not profile_of(parts)["screen_name"]):
            raise representative_error(_in_order(errors))
        self._warn_of_missing_posts(target, parts)
        return record(parts, cast("ProfileParams", target.params).handle)

    async def _first_sources(
        self, target: Target, first: First, parts: dict[str, Part], errors: dict[str, ScrapeError]
    ) -> None:
        await self._try_source(target, "page", lambda: self._scheduled_page(first), parts, errors)
        steps = [self._try_source(target, "embed", lambda: self._embed(target), parts, errors)]
        user_id = user_id_of(parts)
        is_listed = bool(user_id) and profile_of(parts)["protected"] is False  # the embed cannot change this
        if is_listed and self._has_free_slot(target):
            steps.append(self._try_source(target, "timeline", lambda: self._timeline(target, user_id), parts, errors))
        await _together(*steps)
        if not user_id_of(parts) or _incomplete(parts):
            await self._try_source(target, "user", lambda: self._user(target), parts, errors)
        user_id = user_id_of(parts)
        if len(steps) == 1 and user_id and profile_of(parts)["protected"] is not True:
            await self._try_source(target, "timeline", lambda: self._timeline(target, user_id), parts, errors)

    def _warn_of_failures(self, target: Target, errors: dict[str, ScrapeError]) -> None:
        """Add warnings about the sources that failed. Their order does not depend on which failed first."""
        for source in SOURCES:
            if source in errors:
                self.warn(target, source, errors[source])

    def _has_free_slot(self, target: Target) -> bool:
        """Whether the platform's budget permits more requests at once than targets are in flight."""
        lane = target.release.lane
        return lane is None or lane.targets < int(lane.limits["concurrency"])

    def _warn_of_missing_posts(self, target: Target, parts: dict[str, Part], earlier: int | None = 0) -> None:
        """Add a warning if the timeline ends before as many posts as the profile states, and the platform is silent.

        ``earlier``: number of posts on earlier pages, None if it is unknown. The platform states the end of a timeline
        with the instruction ``TimelineTerminateTimeline``, as in 9 of 21 recorded timelines (capture 8bf3576c7485).
        """
        part, stated = parts.get("timeline"), profile_of(parts)["statuses_count"]
        if part is None or part["next_cursor"] != "" or part["is_terminated"] or None in {earlier, stated}:
            return
        collected = (earlier or 0) + len(part["posts"])
        if collected < stated:
            coverage = Coverage(stated, collected, (NO_END,))
            self.tracker.warn(target, OutcomeWarning.of_coverage(TimelinePage.source, coverage))

    async def _try_source(
        self,
        target: Target,
        source: str,
        fetch: Callable[[], Awaitable[Part]],
        parts: dict[str, Part],
        errors: dict[str, ScrapeError],
    ) -> None:
        """Fetch one source. Store its item in ``parts``, or its error in ``errors`` so that the next source is tried.

        Raises:
            ScrapeError: the target's deadline is over, or a source in ``AUTHORITATIVE`` raised a ``TargetError``.
        """
        try:
            parts[source] = await fetch()
        except ScrapeError as error:
            out_of_time = target.seconds_left is not None and target.seconds_left <= 0
            if out_of_time or (isinstance(error, TargetError) and source in AUTHORITATIVE):
                raise
            errors[source] = error

    # Further pages of posts: only the timeline has them

    async def _further_page(self, target: Target, first: First) -> Data:
        """Scrape a further page of posts, with the profile from the author objects of its posts.

        Raises:
            ScrapeError: the timeline could not be fetched, or no source has the profile.
        """
        params = cast("ProfileParams", target.params)
        continuation = params.continuation
        parts: dict[str, Part] = {}
        errors: dict[str, ScrapeError] = {}
        if continuation["user_id"]:
            parts["timeline"] = await self._further_timeline(target, continuation["user_id"], first)
        else:
            parts["user"] = await self._user(target, first)
            if not user_id_of(parts):
                raise missing_error("The user object has no id.", [*USER_PATH, "rest_id"], reason="no_user_id")
            parts["timeline"] = await self._further_timeline(target, user_id_of(parts))
        if "user" not in parts and _incomplete(parts):
            await self._try_source(target, "user", lambda: self._user(target), parts, errors)
        for source, fetch in (("page", self._page), ("embed", self._embed)):
            if not profile_of(parts)["screen_name"]:
                await self._try_source(target, source, lambda fetch=fetch: fetch(target), parts, errors)  # type: ignore[misc]
                if source in parts:
                    parts[source] = {**parts[source], "posts": []}
        self._warn_of_failures(target, errors)
        if errors and not profile_of(parts)["screen_name"]:
            raise representative_error(_in_order(errors))
        self._warn_of_missing_posts(target, parts, continuation["posts"])
        return record(parts, params.handle, continuation["seen"], continuation["posts"])

    async def _further_timeline(self, target: Target, user_id: str, first: First | None = None) -> Part:
        """Fetch the timeline page that the cursor names. Skip pages whose posts were all returned before.

        Raises:
            ScrapeError: the timeline could not be fetched, or the platform rejected the cursor.
        """
        continuation = cast("ProfileParams", target.params).continuation
        cursor, returned = continuation["cursor"], set(continuation["seen"])
        try:
            part = await self._required_timeline(target, user_id, cursor, first)
            for _ in range(MAX_SKIPPED_PAGES):
                ids = {post["post_id"] for post in part["posts"]}
                if not part["next_cursor"] or not ids or not ids <= returned:
                    break
                cursor = part["next_cursor"]
                part = await self._required_timeline(target, user_id, cursor)
        except ExtractionFailed as error:
            if cursor and error.reason == BAD_REQUEST:
                raise InvalidRequest("The platform rejected this cursor. Start again without one.") from error
            raise
        if part["next_cursor"] is None and all(post["post_id"] in returned for post in part["posts"]):
            raise missing_error("The timeline's cursor for the next page is missing.", ["cursor"], reason="no_cursor")
        return part

    async def _required_timeline(self, target: Target, user_id: str, cursor: str, first: First | None = None) -> Part:
        """Fetch a page of the timeline. After a rate limit, fetch it once more when the timeline's breaker permits it.

        It is not fetched again if the target has a deadline, or if the rate limit has not opened the breaker.

        Raises:
            ScrapeError: the timeline could not be fetched.
        """
        try:
            return await self._timeline(target, user_id, cursor, first, optional=False)
        except UpstreamRateLimited:
            has_deadline = target.deadline is not None or self.tracker.timeout
            if has_deadline or self.lanes.of(target, TimelinePage.source).breakers.closed([TimelinePage.source]):
                raise
        logger.info("rate_limit_waited_for", id=target.id)
        return await self._timeline(target, user_id, cursor, optional=False)

    # The sources

    async def _scheduled_page(self, first: First) -> Part:
        return await self._read_page(await first.page(ProfilePage))

    async def _page(self, target: Target) -> Part:
        request = self._with_source_timeout(profile_request(self.origin(), _handle(target)))
        return await self._read_page(await self.get(ProfilePage, request, target, optional=True))

    async def _read_page(self, page: ProfilePage) -> Part:
        for outdated, current in self._queries.learn(page.queries):
            self.report_stale_id(outdated, f"the page has {current}")
        return await page.to_item()

    async def _embed(self, target: Target) -> Part:
        request = self._with_source_timeout(embed_request(self.origin("embed"), _handle(target)))
        return await (await self.get(EmbedPage, request, target, optional=True)).to_item()

    async def _user(self, target: Target, first: First | None = None) -> Part:
        return await (
            await self._send(self._user_query(_handle(target)), target, first, optional=first is None)
        ).to_item()

    async def _timeline(
        self, target: Target, user_id: str, cursor: str = "", first: First | None = None, *, optional: bool = True
    ) -> Part:
        query = self._timeline_query(_handle(target), user_id, cursor)
        page = cast("TimelinePage", await self._send(query, target, first, optional=optional))
        return {**await page.to_item(), "is_terminated": page.is_terminated}

    def _user_query(self, handle: str) -> GuestQuery:
        def build(**options: Any) -> Request:
            return user_request(self.origin("api"), handle, **options)

        return GuestQuery("user", UserPage, build, self._queries.forms("user"))

    def _timeline_query(self, handle: str, user_id: str, cursor: str) -> GuestQuery:
        def build(**options: Any) -> Request:
            return timeline_request(self.origin("api"), handle, user_id=user_id, cursor=cursor, **options)

        return GuestQuery("timeline", TimelinePage, build, self._queries.forms("timeline"))

    async def _send(self, query: GuestQuery, target: Target, first: First | None, *, optional: bool) -> ApiPage:
        """Send a query. After an error with a remedy, apply the remedy and send the query again.

        ``first`` is the response if the query was the scheduled request. With ``optional``, the
        query fails at once if a circuit breaker is open; otherwise it waits.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        shared = self._token(target, query.page.source)
        while True:
            if first is None:
                token = await shared.get(lambda: self._new_token(target, optional=optional))
            else:
                token = _token_of(first.request)
            try:
                if first is not None:
                    return await first.page(query.page, retry=False)
                request = self._with_source_timeout(query.request(self._credentials(token)))
                return await self.get(query.page, request, target, retry=False, optional=optional)
            except UpstreamRateLimited as limit:
                shared.keep(token, limit)
                raise
            except (UpstreamBlocked, ExtractionFailed) as error:
                first = None
                if error.reason == STALE_QUERY:
                    self._queries.mark_stale(query.form)
                    self.report_stale_id(f"{query.form.name} {query.form.query_id}", "not found by the platform")
                if not query.apply_remedy(error) and not await self._refreshed(query, error, target):
                    if error.reason == TOKEN_REFUSED:  # the platform refused a new token, too
                        await self.lanes.count(target, query.page.source, error)
                    raise
                if error.reason == TOKEN_REFUSED:
                    shared.invalidate(token)
                logger.info("retried", id=target.id, reason=error.reason)

    async def _refreshed(self, query: GuestQuery, error: ScrapeError, target: Target) -> bool:
        """If no id of a query is known to be current, load the profile's page, and return whether it names a new id.

        Only a further page of posts may need this: for the first page of posts, the profile's page was already loaded.
        """
        if error.reason != STALE_QUERY or not self._queries.page_is_useful:
            return False
        try:
            await self._page(target)
        except ScrapeError as failed:
            logger.info("optional_source_failed", id=target.id, source=ProfilePage.source, reason=failed.reason)
            return False
        newest = self._queries.forms(query.kind)[0]
        is_new = newest.query_id != query.form.query_id and newest.query_id not in self._queries.stale_ids
        if is_new:
            query.forms = [newest]
        return is_new

    # The ids of the queries, and the guest token: shared by all targets

    @cached_property
    def _ids(self) -> Ids:
        return platform_ids(Ids, self.platform, self.settings)

    @property
    def _queries(self) -> CurrentQueries:
        """The current ids of the guest API's queries, which all crawlers in this process share."""
        return self.shared.get(CurrentQueries, self.origin("api"), lambda: CurrentQueries(self._ids))

    def _credentials(self, token: str) -> Credentials:
        return Credentials(self._ids.bearer, token)

    def _token(self, target: Target, source: str) -> SharedToken:
        """Return the guest token of the target's egress, which all crawlers in this process share.

        ``source``: the source of the request that will contain the token.
        """
        egress = self.lanes.of(target, source).egress
        lifetime = self.settings.getfloat("GUEST_TOKEN_LIFETIME")
        pause = self.settings.getfloat("GUEST_TOKEN_PAUSE")
        max_limit = self.settings.getfloat("RETRY_AFTER_MAX")
        return self.shared.get(
            SharedToken, self.origin("api") + egress.key, lambda: SharedToken(lifetime, pause, max_limit)
        )

    async def _new_token(self, target: Target, *, optional: bool) -> str:
        request = self._with_source_timeout(token_request(self.origin("api"), bearer=self._ids.bearer))
        page = await self.get(GuestTokenPage, request, target, retry=False, optional=optional)
        return str((await page.to_item())["token"])

    def _with_source_timeout(self, request: Request) -> Request:
        """Limit the time for a request, so that enough of the target's time is left for the next sources."""
        longest = min(self.settings.getfloat("SOURCE_TIMEOUT"), self.settings.getfloat("DOWNLOAD_TIMEOUT"))
        request.meta["download_timeout"] = longest
        return request


def _in_order(errors: dict[str, ScrapeError]) -> list[ScrapeError]:
    return [errors[source] for source in SOURCES if source in errors]


async def _together(*steps: Awaitable[None]) -> None:
    """Await all steps at once. If steps raise errors, the first step's error is raised after all have ended."""
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _lacks_posts(parts: dict[str, Part]) -> bool:
    """Whether no source has any post, although the profile seems to have posts. An empty list would be wrong data."""
    profile = profile_of(parts)
    has_posts = any(part["posts"] for part in parts.values())
    return not has_posts and profile["protected"] is not True and profile["statuses_count"] != 0


def _incomplete(parts: dict[str, Part]) -> bool:
    """Whether the merged profile lacks fields that the user query may have."""
    profile = profile_of(parts)
    return any(profile[name] is None for name in FIELDS if name not in NOT_IN_NEWER_SHAPES)


def _handle(target: Target) -> str:
    return cast("ProfileParams", target.params).handle


def _token_of(request: Request) -> str:
    """Return the guest token that a request was sent with, or ""."""
    return (request.headers.get("X-Guest-Token") or b"").decode()
