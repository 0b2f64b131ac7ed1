"""Microblog: the spider for profiles with their posts. A record is merged from up to four sources, of which some may
fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import structlog
from scrapy import Request

from crawler.errors import (
    BlockedByPolicy,
    ExtractionFailed,
    InvalidRequest,
    ScrapeError,
    TargetError,
    UpstreamRateLimited,
)
from crawler.items import MicroblogProfileItem
from crawler.platforms.coverage import NO_END, Coverage
from crawler.platforms.microblog.api import USER_PATH, GuestTokenPage, TimelinePage, UserPage
from crawler.platforms.microblog.base import BAD_REQUEST
from crawler.platforms.microblog.convert import FIELDS
from crawler.platforms.microblog.embed import EmbedPage
from crawler.platforms.microblog.guest import GUEST_TOKEN, GuestClient, handle_of
from crawler.platforms.microblog.merge import Part, page_mark_of, profile_of, record, representative_error, user_id_of
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.schema import Profile, ProfileParams
from crawler.platforms.microblog.urls import embed_request, profile_request
from crawler.platforms.model import Details, max_details
from crawler.platforms.page import PlatformPage, missing_error
from crawler.platforms.requests import is_repeated, is_used
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Entries, Scraper, Target

logger = structlog.get_logger(__name__)

SOURCES = ("page", "embed", "user", "timeline")
"""The sources of a record, in the order in which their errors are reported."""
AUTHORITATIVE = frozenset({"page", "user"})
"""Sources whose ``TargetError`` (not found, restricted) ends the target. The other sources may be wrong."""
FALLBACKS = ((EmbedPage.source,), (GuestTokenPage.source, UserPage.source, TimelinePage.source))
"""The groups of sources that can replace the profile's page (``PlatformSpider.for_page``)."""
NOT_IN_NEWER_SHAPES = frozenset({"listed_count"})
"""Fields that newer responses to the user query lack. If a profile lacks only these, the user query is not sent."""
PROFILE_PATH = "data.additional.profile_demographics"
"""The path in the record of the fields that the param ``details`` is about."""
START: dict[str, Any] = {"seen": [], "posts": 0, "used": []}
"""The position of a target without a cursor: see ``ProfileParams.continuation``."""
MAX_SKIPPED_PAGES = 3
"""Maximum number of pages that a target skips because earlier targets returned all posts on them."""


@dataclass
class Sources:
    """The items of a target's sources, and the errors of the sources that failed."""

    target: Target
    parts: dict[str, Part] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    """The sources that were not requested because of the param ``details``."""
    _errors: dict[str, ScrapeError] = field(default_factory=dict)

    async def collect(self, source: str, item: Awaitable[Part]) -> None:
        """Await the item of a source, and store it in ``parts``. An error is kept, so that other sources can be tried.

        Raises:
            ScrapeError: the target's deadline has passed, or a source in ``AUTHORITATIVE`` raised a ``TargetError``.
        """
        self.left_out.discard(source)
        try:
            self.parts[source] = await item
        except ScrapeError as error:
            out_of_time = self.target.seconds_left is not None and self.target.seconds_left <= 0
            if out_of_time or (isinstance(error, TargetError) and source in AUTHORITATIVE):
                raise
            self._errors[source] = error

    @property
    def errors(self) -> dict[str, ScrapeError]:
        """Source -> its error, in the order of ``SOURCES``, which does not depend on the source that failed first."""
        return {source: self._errors[source] for source in SOURCES if source in self._errors}


class MicroblogSpider(PlatformSpider):
    """Scrapes the microblog's profiles with their posts."""

    name = "microblog"
    required_sources = (TimelinePage.source,)
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
            requests=6 + MAX_SKIPPED_PAGES,  # each source once, a guest token, and an empty page once more
            entries=Entries("data.main", "post_id", "upload_timestamp", "hasMore", source=TimelinePage.source),
        ),
    )

    def request(self, target: Target) -> Request:
        params = cast("ProfileParams", target.params)
        if params.cursor is None:
            page = profile_request(params.handle)
            first = self.for_page(ProfilePage, page, fallbacks=FALLBACKS)
        else:
            first = self._further_request(params.handle, params.continuation)
        return self._api.limited(first)

    def _further_request(self, handle: str, continuation: dict[str, Any]) -> Request:
        """Return the scheduled request for a target with a cursor: for a page of the timeline.

        If the cursor has no user id, the request is for the user. ``on_lane`` adds the guest token of the egress.
        """
        if user_id := continuation["user_id"]:
            return self.for_page(TimelinePage, self._api.request(TimelinePage, handle, user_id, continuation["cursor"]))
        return self.for_page(UserPage, self._api.request(UserPage, handle))

    def on_lane(self, request: Request) -> None:
        """Add the current guest token to a scheduled API request.

        A new token cannot be awaited here. If there is no current token, the request is sent without one and fails, and
        ``GuestClient`` sends it again with a new token.
        """
        source, needed = request.meta.get("source"), {TimelinePage.source, UserPage.source}
        if source in needed and GUEST_TOKEN not in request.headers:
            token = self._api.token(request.meta["target"], source).value
            if token:
                request.headers[GUEST_TOKEN] = token

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
        """Scrape a profile with one page of its posts. The next page of posts becomes a follow-up (see ``follow``)."""
        params = cast("ProfileParams", target.params)
        if params.cursor is None:
            parts, position = await self._first_page(target, first), START
        else:
            parts, position = await self._further_page(target, first), params.continuation
        earlier = position["posts"]
        data = record(parts, params.handle, position["seen"], earlier, position["used"])
        ids = [post["post_id"] for post in data["data"]["main"]]
        stated = data["data"]["additional"]["profile_demographics"]["statuses_count"]
        if ids:  # a page may be empty because earlier pages had all of its posts
            self.count_rows(target, ids, stated, is_first=params.cursor is None)
        if not (data["hasMore"] and self.follow(target, data, cursor=data["nextCursor"])):
            found = None if earlier is None else Coverage(stated, earlier + len(ids), (NO_END,))
            lacks_posts = _stops(parts) and found is not None and (stated is None or found.collected < stated)
            ended, otherwise = (False, found) if lacks_posts else (None, None)
            self.close_listing(target, TimelinePage.source, ended=ended, otherwise=otherwise)
        return data

    # The first page of posts, merged from all sources: each source has fields that the other sources lack

    async def _first_page(self, target: Target, first: First) -> dict[str, Part]:
        """Fetch the sources, the cheapest first. Return source -> its item.

        Raises:
            ScrapeError: sources failed, and the remaining sources lack the profile or its posts; or
                ``Sources.collect`` raised an error.
        """
        found = Sources(target)
        parts = found.parts
        try:
            await self._first_sources(target, first, found)
        finally:
            self._warn_of_failures(found)
        if found.errors and (_lacks_posts(parts) or not profile_of(parts)["screen_name"]):
            raise representative_error(list(found.errors.values()))
        self._warn_of_left_out(found)
        return parts

    async def _first_sources(self, target: Target, first: First, found: Sources) -> None:
        parts = found.parts
        await found.collect("page", self._scheduled_page(first))
        user_id = user_id_of(parts)
        with_embed = not user_id or self._wants(found, EmbedPage.source)
        steps = [found.collect("embed", self._embed(target))] if with_embed else []
        is_listed = bool(user_id) and profile_of(parts)["protected"] is False  # the embed page cannot change this
        is_together = is_listed and (not with_embed or self._has_free_slot(target))
        if is_together:
            steps.append(found.collect("timeline", self._api.timeline(target, user_id)))
        await _together(*steps)
        if not user_id_of(parts) or (_missing_fields(parts) and self._wants(found, UserPage.source)):
            await found.collect("user", self._api.user(target))
        user_id = user_id_of(parts)
        if not is_together and user_id and profile_of(parts)["protected"] is not True:
            await found.collect("timeline", self._api.timeline(target, user_id))
        if not with_embed and ("timeline" in found.errors or _lacks_posts(parts)):  # the embed has posts, too
            await found.collect("embed", self._embed(target))

    def _wants(self, found: Sources, source: str) -> bool:
        """Whether the param ``details`` permits the request for a source that only adds fields to the profile."""
        is_wanted = self.starts_within(found.target, source, _details(found.target)) >= 1
        if not is_wanted:
            found.left_out.add(source)
        return is_wanted

    def _warn_of_left_out(self, found: Sources) -> None:
        """Warn of the profile's missing fields, if ``details=auto`` left out a source that may have them."""
        for source, unknown in ((EmbedPage.source, frozenset()), (UserPage.source, NOT_IN_NEWER_SHAPES)):
            missing = _missing_fields(found.parts, unknown)
            if source in found.left_out and missing and max_details(_details(found.target)):
                self.left_out(found.target, source, PROFILE_PATH, (len(missing), len(FIELDS)), BlockedByPolicy)

    def _warn_of_failures(self, found: Sources) -> None:
        """Add warnings about the sources that failed."""
        for source, error in found.errors.items():
            self.warn(found.target, source, error)

    def _has_free_slot(self, target: Target) -> bool:
        """Whether the target's lane has fewer targets in flight than its budget permits concurrent downloads."""
        lane = target.release.lane
        return lane is None or lane.targets < lane.budget.limit.concurrency

    # Pages of posts after the first page: only the timeline has them

    async def _further_page(self, target: Target, first: First) -> dict[str, Part]:
        """Fetch the page of posts to which the target's cursor leads. The profile is read from the posts' authors.
        Return source -> its item.

        If fields of the profile are missing, the user is queried; if the profile is missing, page and embed are read.

        Raises:
            ScrapeError: the timeline could not be fetched, or sources failed and no source contains the profile.
        """
        params = cast("ProfileParams", target.params)
        continuation = params.continuation
        found = Sources(target)
        parts = found.parts
        if continuation["user_id"]:
            parts["timeline"] = await self._further_timeline(target, continuation["user_id"], first)
        else:
            parts["user"] = await self._api.user(target, first)
            if not user_id_of(parts):
                raise missing_error("The user object has no id.", [*USER_PATH, "rest_id"], reason="no_user_id")
            parts["timeline"] = await self._further_timeline(target, user_id_of(parts))
        is_unknown = not profile_of(parts)["screen_name"]
        if "user" not in parts and (is_unknown or (_missing_fields(parts) and self._wants(found, UserPage.source))):
            await found.collect("user", self._api.user(target))
        for source, fetch in (("page", self._page), ("embed", self._embed)):
            if not profile_of(parts)["screen_name"]:
                await found.collect(source, fetch(target))
                if source in parts:
                    parts[source] = {**parts[source], "posts": []}
        self._warn_of_failures(found)
        if found.errors and not profile_of(parts)["screen_name"]:
            raise representative_error(list(found.errors.values()))
        self._warn_of_left_out(found)
        return parts

    async def _further_timeline(self, target: Target, user_id: str, first: First | None = None) -> Part:
        """Fetch the page of the timeline to which the target's cursor leads.

        Skip at most ``MAX_SKIPPED_PAGES`` pages whose posts are all in records of earlier pages.

        Raises:
            InvalidRequest: the platform rejected the target's cursor.
            ScrapeError: the timeline could not be fetched, or lacks both new posts and the cursor for its next page.
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
        used = continuation["used"]
        if part["next_cursor"] and (is_used(part["next_cursor"], used) or is_repeated(page_mark_of(part), used)):
            part = {**part, "next_cursor": ""}
        if part["next_cursor"] is None and all(post["post_id"] in returned for post in part["posts"]):
            raise missing_error("The timeline's cursor for the next page is missing.", ["cursor"], reason="no_cursor")
        return part

    async def _required_timeline(self, target: Target, user_id: str, cursor: str, first: First | None = None) -> Part:
        """Fetch a page of the timeline. An empty page that is not marked as the end is fetched once more.

        If a rate limit has opened the timeline's circuit breaker, and the target has no deadline, wait until the
        breaker permits a download, and fetch the page once more.

        Raises:
            ScrapeError: the timeline could not be fetched.
        """
        try:
            part = await self._api.timeline(target, user_id, cursor, first, optional=False)
            if not cursor or part["posts"] or part["is_terminated"]:
                return part
        except UpstreamRateLimited:
            has_deadline = target.deadline is not None or self.tracker.timeout
            if has_deadline or self.lanes.of(target, TimelinePage.source).breakers.closed([TimelinePage.source]):
                raise
        logger.info("timeline_repeated", id=target.id)
        return await self._api.timeline(target, user_id, cursor, optional=False)

    # The sources

    @cached_property
    def _api(self) -> GuestClient:
        return GuestClient(self, self._page)

    async def _scheduled_page(self, first: First) -> Part:
        return await self._read_page(await first.page(ProfilePage))

    async def _page(self, target: Target) -> Part:
        request = self._api.limited(profile_request(handle_of(target)))
        return await self._read_page(await self.get(ProfilePage, request, target, optional=True))

    async def _read_page(self, page: ProfilePage) -> Part:
        for outdated, current in self._api.queries.learn(page.queries):
            self.report_stale_id(outdated, f"the page has {current}")
        return await page.to_item()

    async def _embed(self, target: Target) -> Part:
        request = self._api.limited(embed_request(handle_of(target)))
        return await (await self.get(EmbedPage, request, target, optional=True)).to_item()


async def _together(*steps: Awaitable[None]) -> None:
    """Await all steps at once. If steps fail, raise the error of the first of these after all steps have ended."""
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _stops(parts: dict[str, Part]) -> bool:
    """Whether the timeline stops although the platform did not mark its end, or has no post although other sources do.

    The platform marks the end of a timeline with the instruction ``TimelineTerminateTimeline`` and the direction
    "TopAndBottom" (capture 15e277c749c3). With the direction "Top" (capture 8bf3576c7485), the instruction does not
    mark the end.
    """
    part = parts.get("timeline")
    if part is None or part["next_cursor"] != "":
        return False
    is_contradicted = not part["posts"] and any(each["posts"] for each in parts.values())
    has_end = part["is_terminated"] and not is_contradicted
    return not has_end and profile_of(parts)["protected"] is not True


def _lacks_posts(parts: dict[str, Part]) -> bool:
    """Whether no source contains a post, unless the profile is protected or states that it has none.

    An empty list of posts would then be wrong.
    """
    profile = profile_of(parts)
    has_posts = any(part["posts"] for part in parts.values())
    return not has_posts and profile["protected"] is not True and profile["statuses_count"] != 0


def _missing_fields(parts: dict[str, Part], unknown: frozenset[str] = NOT_IN_NEWER_SHAPES) -> list[str]:
    """Return the fields that the merged profile lacks, without ``unknown``. By default, a user query may have them."""
    profile = profile_of(parts)
    return [name for name in FIELDS if profile[name] is None and name not in unknown]


def _details(target: Target) -> Details:
    return cast("ProfileParams", target.params).details
