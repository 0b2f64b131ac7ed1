"""Microblog: sends the queries of the guest API with a guest token, and repeats them after errors with a remedy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import structlog
from scrapy import Request

from crawler.errors import ExtractionFailed, ScrapeError, UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.ids import platform_ids
from crawler.platforms.microblog.api import GuestTokenPage, TimelinePage, UserPage
from crawler.platforms.microblog.api_page import STALE_QUERY, TOKEN_REFUSED, ApiPage
from crawler.platforms.microblog.guest_query import CurrentQueries, GuestQuery
from crawler.platforms.microblog.guest_token import SharedToken
from crawler.platforms.microblog.ids import Ids
from crawler.platforms.microblog.merge import Part
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.requests import Credentials, timeline_request, token_request, user_request

if TYPE_CHECKING:
    from crawler.platforms.microblog.schema import ProfileParams
    from crawler.spiders.base import First, PlatformSpider
    from crawler.targets.target import Target

logger = structlog.get_logger(__name__)

GUEST_TOKEN = "X-Guest-Token"  # noqa: S105  # the name of a header


class GuestClient:
    """Sends the queries for a user and for a user's posts.

    ``load_page``: loads the page of a target's profile, which contains the current ids of the queries.
    """

    def __init__(self, spider: PlatformSpider, load_page: Callable[[Target], Awaitable[object]]) -> None:
        self.spider = spider
        self._load_page = load_page
        self._ids = platform_ids(Ids, spider.platform, spider.settings)

    @property
    def _origin(self) -> str:
        return self.spider.origin("api")  # the sandbox sets it when the spider is opened

    async def user(self, target: Target, first: First | None = None) -> Part:
        """Query a target's user, and return the item. ``first``: the response, if the query was the scheduled request.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        return await (
            await self._send(self.user_query(handle_of(target)), target, first, optional=first is None)
        ).to_item()

    async def timeline(
        self, target: Target, user_id: str, cursor: str = "", first: First | None = None, *, optional: bool = True
    ) -> Part:
        """Query a page of a user's posts, and return the item, with the key ``is_terminated``. See ``user``.

        ``cursor``: the platform's cursor for the page, "" for the first page. ``optional``: fail at once if a circuit
        breaker is open.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        query = self.timeline_query(handle_of(target), user_id, cursor)
        page = cast("TimelinePage", await self._send(query, target, first, optional=optional))
        return {**await page.to_item(), "is_terminated": page.is_terminated}

    def user_query(self, handle: str) -> GuestQuery:
        """Return the query for a user."""

        def build(**options: Any) -> Request:
            return user_request(self._origin, handle, **options)

        return GuestQuery("user", UserPage, build, self.queries.forms("user"))

    def timeline_query(self, handle: str, user_id: str, cursor: str) -> GuestQuery:
        """Return the query for a page of a user's posts."""

        def build(**options: Any) -> Request:
            return timeline_request(self._origin, handle, user_id=user_id, cursor=cursor, **options)

        return GuestQuery("timeline", TimelinePage, build, self.queries.forms("timeline"))

    async def _send(self, query: GuestQuery, target: Target, first: First | None, *, optional: bool) -> ApiPage:
        """Send a query. After an error with a remedy, apply the remedy and send the query again.

        ``first``: the response, if the query was the scheduled request. ``optional``: fail at once if a circuit breaker
        is open, instead of waiting.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        shared = self.token(target, query.page.source)
        while True:
            if first is None:
                token = await shared.get(lambda: self._new_token(target, optional=optional))
            else:
                token = token_of(first.request)
            try:
                if first is not None:
                    return await first.page(query.page, retry=False)
                request = self.limited(query.request(self.credentials(token)))
                return await self.spider.get(query.page, request, target, retry=False, optional=optional)
            except UpstreamRateLimited as limit:
                shared.keep(token, limit)
                raise
            except (UpstreamBlocked, ExtractionFailed) as error:
                first = None
                if error.reason == STALE_QUERY:
                    self.queries.mark_stale(query.form)
                    self.spider.report_stale_id(f"{query.form.name} {query.form.query_id}", "not found by the platform")
                if not query.apply_remedy(error) and not await self._refreshed(query, error, target):
                    if error.reason == TOKEN_REFUSED:  # the platform refused a new token, too
                        await self.spider.lanes.count(target, query.page.source, error)
                    raise
                if error.reason == TOKEN_REFUSED:
                    shared.invalidate(token)
                logger.info("retried", id=target.id, reason=error.reason)

    async def _refreshed(self, query: GuestQuery, error: ScrapeError, target: Target) -> bool:
        """If all ids of a query are out of date, load the profile's page, and return whether it contains a new id.

        Only targets for further pages of posts may need this: for the first page, the profile's page was already
        loaded.
        """
        if error.reason != STALE_QUERY or not self.queries.page_is_useful:
            return False
        try:
            await self._load_page(target)
        except ScrapeError as failed:
            logger.info("optional_source_failed", id=target.id, source=ProfilePage.source, reason=failed.reason)
            return False
        newest = self.queries.forms(query.kind)[0]
        is_new = newest.query_id != query.form.query_id and newest.query_id not in self.queries.stale_ids
        if is_new:
            query.forms = [newest]
        return is_new

    @property
    def queries(self) -> CurrentQueries:
        """The current ids of the guest API's queries, which all crawlers in this process share."""
        return self.spider.shared.get(CurrentQueries, self._origin, lambda: CurrentQueries(self._ids))

    def credentials(self, token: str) -> Credentials:
        return Credentials(self._ids.bearer, token)

    def token(self, target: Target, source: str) -> SharedToken:
        """Return the guest token of the target's egress, which all crawlers in this process share.

        ``source``: the source of the request that will contain the token.
        """
        egress = self.spider.lanes.of(target, source).egress
        lifetime = self.spider.settings.getfloat("GUEST_TOKEN_LIFETIME")
        pause = self.spider.settings.getfloat("GUEST_TOKEN_PAUSE")
        max_limit = self.spider.settings.getfloat("RETRY_AFTER_MAX")
        return self.spider.shared.get(
            SharedToken, self._origin + egress.key, lambda: SharedToken(lifetime, pause, max_limit)
        )

    async def _new_token(self, target: Target, *, optional: bool) -> str:
        request = self.limited(token_request(self._origin, bearer=self._ids.bearer))
        page = await self.spider.get(GuestTokenPage, request, target, retry=False, optional=optional)
        return str((await page.to_item())["token"])

    def limited(self, request: Request) -> Request:
        """Limit the duration of a new request, so that time is left for the target's next sources."""
        settings = self.spider.settings
        longest = min(settings.getfloat("SOURCE_TIMEOUT"), settings.getfloat("DOWNLOAD_TIMEOUT"))
        request.meta["download_timeout"] = longest
        return request


def handle_of(target: Target) -> str:
    """Return the handle of the profile that a target requests."""
    return cast("ProfileParams", target.params).handle


def token_of(request: Request) -> str:
    """Return the guest token that a request was sent with, or ""."""
    return (request.headers.get(GUEST_TOKEN) or b"").decode()
