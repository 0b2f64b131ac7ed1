"""Microblog: sends the queries of the guest API with a guest token, and repeats them after errors with a remedy.

The platform issues guest tokens to every visitor. All crawlers in a process share one token per egress. A token serves
all targets of its egress until the token expires or the platform rejects it. Only one request for a token is in flight;
other targets wait for its response. After a refusal, no token is requested until a pause is over. A rate-limited token
is kept until its limit ends: a new token would evade the limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import urlsplit

import structlog
from scrapy import Request

from crawler.errors import ExtractionFailed, ScrapeError, UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.microblog.api import GuestTokenPage, TimelinePage, UserPage
from crawler.platforms.microblog.base import PERMANENT_REASONS, STALE_QUERY, TOKEN_REFUSED, ApiPage
from crawler.platforms.microblog.merge import Part
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.urls import Ids, NamedQuery, Query, query_request, token_request
from crawler.platforms.requests import platform_ids

if TYPE_CHECKING:
    from crawler.platforms.microblog.schema import ProfileParams
    from crawler.spiders.base import First, PlatformSpider
    from crawler.targets.target import Target


P = TypeVar("P", bound=ApiPage)

LIMIT_WINDOW_SECONDS = 900.0
"""Seconds for which a rate limit is assumed to last if the response does not state its end: the platform's window."""


@dataclass
class SharedToken:
    """The guest token of one egress, which all targets on this egress share.

    ``lifetime`` is the number of seconds for which a token is used. ``pause`` is the number of seconds without requests
    for a token after the platform refused a token. ``max_limit`` is the setting ``RETRY_AFTER_MAX``: if the platform
    states a longer rate limit, the limit is assumed to end after this number of seconds.
    """

    lifetime: float
    pause: float = 0.0
    max_limit: float = 3_600.0
    _value: str = ""
    _until: float = 0.0
    _refusal: ScrapeError | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def value(self) -> str:
        """The current token, "" without a valid token."""
        return self._value if time.monotonic() < self._until and self._refusal is None else ""

    async def get(self, fetch: Callable[[], Awaitable[str]]) -> str:
        """Return the current token. If there is no valid token, await ``fetch`` for a new token.

        Raises:
            ScrapeError: ``fetch`` failed. If the platform refused a token, every call raises the same error until the
                pause ends.
        """
        async with self._lock:
            if time.monotonic() < self._until:
                if self._refusal is not None:
                    raise self._refusal
                return self._value
            try:
                self._value = await fetch()
            except (UpstreamBlocked, UpstreamRateLimited) as refusal:
                stated = min(refusal.retry_after or 0, self.max_limit)
                self._refusal, self._until = refusal, time.monotonic() + max(self.pause, stated)
                raise
            self._refusal, self._until = None, time.monotonic() + self.lifetime
            return self._value

    def keep(self, token: str, limit: UpstreamRateLimited) -> None:
        """Keep a rate-limited token until its limit ends, unless another target has already replaced the token."""
        if token and token == self._value and self._refusal is None:
            stated = LIMIT_WINDOW_SECONDS if limit.retry_after is None else limit.retry_after
            self._until = max(self._until, time.monotonic() + min(stated, self.max_limit))

    def invalidate(self, token: str) -> None:
        """Discard a token that the platform rejected, unless another target has already replaced the token."""
        if token == self._value and self._refusal is None:
            self._value, self._until = "", 0.0


class CurrentQueries:
    """The ids with which the guest API's queries are sent. All crawlers in a process share one object.

    The id in the profile page that was read last is preferred to the ids in the data file. An id that the platform did
    not find is used only if there is no other.
    """

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.page_is_useful = True
        """Whether a profile page may contain new ids: no page was read yet, or an id in the last page became stale."""
        self._named: dict[str, Query] = {}
        self.stale_ids: set[str] = set()
        """The ids that the platform did not find."""

    def forms_of(self, query: Query, tried: Container[str] = ()) -> list[tuple[Query, str]]:
        """Return the forms in which a query may be sent, in order: the query, and its id. ``tried``: ids left out."""
        forms = [(form, each) for form in (self._named.get(query.name), query) if form for each in form.ids]
        return sorted((form for form in forms if form[1] not in tried), key=lambda form: form[1] in self.stale_ids)

    def learn(self, queries: Sequence[NamedQuery]) -> list[tuple[str, str]]:
        """From now on, use the query ids that a profile page contains.

        Return the ids in the data file that differ: the name and id of each such query, and the id on the page.
        """
        self.page_is_useful = False
        outdated = []
        own = {query.name: query for query in (self.ids.user, self.ids.timeline)}
        for named in queries:
            if query := own.get(named.name):
                self._named[named.name] = query.as_on_page(named)
                others = (each for each in query.ids if each != named.query_id)
                outdated += [(f"{query.name} {each}", named.query_id) for each in others]
        return outdated

    def mark_stale(self, query: Query, query_id: str) -> None:
        """Record that the platform did not find a query's id."""
        if query_id not in self.stale_ids:
            self.stale_ids.add(query_id)
            self.page_is_useful |= query.name in self._named and self._named[query.name].ids == [query_id]


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

    async def user(self, target: Target, first: First | None = None) -> Part:
        """Query the user of a target, and return the item.

        ``first``: the response, if the query was the target's scheduled request.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        page = await self._send(UserPage, target, first, optional=first is None)
        return await page.to_item()

    async def timeline(
        self, target: Target, user_id: str, cursor: str = "", first: First | None = None, *, optional: bool = True
    ) -> Part:
        """Query a page of a user's posts, and return the item.

        The additional key ``is_terminated`` states whether the timeline ends with this page.

        ``cursor``: the platform's cursor for the page, "" for the first page. ``first``: the response, if the query was
        the target's scheduled request. ``optional``: fail at once if a circuit breaker is open.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        page = await self._send(TimelinePage, target, first, user_id, cursor, optional=optional)
        return {**await page.to_item(), "is_terminated": page.is_terminated}

    def request(
        self, page: type[ApiPage], handle: str, user_id: str = "", cursor: str = "", tried: Container[str] = ()
    ) -> Request:
        """Return the request for a ``UserPage``, or for a ``TimelinePage`` of the user's posts, without a token.

        ``tried``: ids of the query that are not used.
        """
        form, query_id = self.queries.forms_of(self._query(page), tried)[0]
        page_params = {"username": handle} if page is UserPage else {"username": handle, "cursor": cursor}
        return query_request(self._ids, form, query_id, page_params, user_id=user_id)

    def _query(self, page: type[ApiPage]) -> Query:
        return self._ids.user if page is UserPage else self._ids.timeline

    async def _send(  # noqa: PLR0913  # the arguments are those of ``timeline``
        self,
        page: type[P],
        target: Target,
        first: First | None,
        user_id: str = "",
        cursor: str = "",
        *,
        optional: bool,
    ) -> P:
        """Send a query, and return the page object of the response.

        The query is sent once more if the platform rejected the token or the response was not recognised, and with each
        other id if the platform did not find the query's id.

        ``first``: the response, if the query was the scheduled request. ``optional``: fail at once if a circuit breaker
        is open, instead of waiting.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        shared, request = self.token(target, page.source), self.request(page, handle_of(target), user_id, cursor)
        remedied: set[str] = set()  # reasons of errors, and ids that the platform did not find
        while True:
            sent = request.copy() if first is None else first.request
            if first is None:
                sent.headers[GUEST_TOKEN] = await shared.get(lambda: self._new_token(target, optional=optional))
            token = (sent.headers.get(GUEST_TOKEN) or b"").decode()
            try:
                if first is not None:
                    return await first.page(page, retry=False)
                return await self.spider.get(page, self.limited(sent), target, retry=False, optional=optional)
            except UpstreamRateLimited as limit:
                shared.keep(token, limit)
                raise
            except (UpstreamBlocked, ExtractionFailed) as error:
                first = None
                if not await self._has_remedy(error, page, sent, target, remedied):
                    if error.reason == TOKEN_REFUSED:  # the platform refused a new token, too
                        await self.spider.lanes.count(target, page.source, error)
                    raise
                if error.reason == TOKEN_REFUSED:
                    shared.invalidate(token)
                elif error.reason == STALE_QUERY:
                    request = self.request(page, handle_of(target), user_id, cursor, remedied)
                logger.info("retried", id=target.id, reason=error.reason)

    async def _has_remedy(
        self, error: ScrapeError, page: type[ApiPage], sent: Request, target: Target, remedied: set[str]
    ) -> bool:
        """Whether a query that failed may succeed if it is sent again. ``remedied``: what was remedied before."""
        if error.reason == STALE_QUERY:
            query = self._query(page)
            remedied.add(await self._marked_stale(query, sent, target))
            return bool(self.queries.forms_of(query, remedied))
        is_unclear = isinstance(error, ExtractionFailed) and error.reason not in PERMANENT_REASONS
        is_new = error.reason not in remedied
        remedied.add(error.reason)
        return is_new and (is_unclear or error.reason == TOKEN_REFUSED)

    async def _marked_stale(self, query: Query, sent: Request, target: Target) -> str:
        """Mark the id of a query that was sent as out of date, and return it.

        A profile's page may name the new id. Targets for the first page of posts have read this page already.
        """
        stale = urlsplit(sent.url).path.split("/")[2]
        self.queries.mark_stale(query, stale)
        self.spider.report_stale_id(f"{query.name} {stale}", "not found by the platform")
        if self.queries.page_is_useful:
            try:
                await self._load_page(target)
            except ScrapeError as failed:
                logger.info("optional_source_failed", id=target.id, source=ProfilePage.source, reason=failed.reason)
        return stale

    @property
    def queries(self) -> CurrentQueries:
        """The current ids of the guest API's queries, which all crawlers in this process share."""
        return self.spider.shared.get(CurrentQueries, "", lambda: CurrentQueries(self._ids))

    def token(self, target: Target, source: str) -> SharedToken:
        """Return the guest token of the target's egress, which all crawlers in this process share.

        ``source``: the source of the request that will contain the token.
        """
        egress = self.spider.lanes.of(target, source).egress
        lifetime = self.spider.settings.getfloat("GUEST_TOKEN_LIFETIME")
        pause = self.spider.settings.getfloat("GUEST_TOKEN_PAUSE")
        max_limit = self.spider.settings.getfloat("RETRY_AFTER_MAX")
        return self.spider.shared.get(SharedToken, egress.key, lambda: SharedToken(lifetime, pause, max_limit))

    async def _new_token(self, target: Target, *, optional: bool) -> str:
        request = self.limited(token_request(bearer=self._ids.bearer))
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
