"""Microblog: sends the queries of the guest API with a guest token, and repeats them after errors with a remedy.

The platform issues guest tokens to every visitor. All crawlers in a process share one token per egress. A token serves
all targets of its egress until the token expires or the platform rejects it. Only one request for a token is in flight;
other targets wait for its response. After a refusal, no token is requested until a pause is over. A rate-limited token
is kept until its limit ends: a new token would evade the limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import structlog
from scrapy import Request

from crawler.errors import ExtractionFailed, ScrapeError, UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.ids import platform_ids
from crawler.platforms.microblog.api import GuestTokenPage, TimelinePage, UserPage
from crawler.platforms.microblog.base import MISSING_FLAGS, PERMANENT_REASONS, STALE_QUERY, TOKEN_REFUSED, ApiPage
from crawler.platforms.microblog.ids import Ids, QueryForm
from crawler.platforms.microblog.merge import Part
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.requests import query_request, token_request

if TYPE_CHECKING:
    from crawler.platforms.microblog.schema import ProfileParams
    from crawler.spiders.base import First, PlatformSpider
    from crawler.targets.target import Target


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
    """The forms (``QueryForm``) in which the guest API's queries are sent. All crawlers in a process share one object.

    The id in the profile page that was read last is tried first, then the ids in the data file. Ids that the platform
    did not find are tried last.
    """

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.page_is_useful = True
        """Whether a profile page may contain new ids: no page was read yet, or an id in the last page became stale."""
        self._named: dict[str, QueryForm] = {}
        self.stale_ids: set[str] = set()
        """The ids that the platform did not find."""

    def forms(self, page: type[ApiPage]) -> list[QueryForm]:
        """Return the forms of the query that a page object reads, in the order in which they are to be tried."""
        query = self.ids.user if page is UserPage else self.ids.timeline
        named = self._named.get(query.name)
        forms = [self.ids.form_on_page(query, named)] if named else []
        forms += [form for form in self.ids.forms(query) if named is None or form.query_id != named.query_id]
        return sorted(forms, key=lambda form: form.query_id in self.stale_ids)

    def learn(self, queries: Sequence[QueryForm]) -> list[tuple[str, str]]:
        """From now on, use the query ids that a profile page contains.

        Return the ids in the data file that differ: the name and id of each such query, and the id on the page.
        """
        self.page_is_useful = False
        own = {query.name: query for query in (self.ids.user, self.ids.timeline)}
        named = {query.name: query for query in queries if query.name in own}
        self._named |= named
        return [
            (f"{name} {query_id}", current.query_id)
            for name, current in named.items()
            for query_id in own[name].ids
            if query_id != current.query_id
        ]

    def mark_stale(self, form: QueryForm) -> None:
        """Record that the platform did not find a query's id."""
        if form.query_id not in self.stale_ids:
            self.stale_ids.add(form.query_id)
            named = self._named.get(form.name)
            self.page_is_useful |= named is not None and named.query_id == form.query_id


@dataclass
class GuestQuery:
    """A query to the guest API. After an error, ``apply_remedy`` changes the query if it may then succeed."""

    page: type[ApiPage]
    """The class of the page object that reads the response."""
    page_params: dict[str, str]
    forms: list[QueryForm]
    """The forms that the platform may accept, in the order in which they are tried. The first form is in use."""
    user_id: str = ""
    missing_flags: list[str] = field(default_factory=list)
    """Flags that the platform required; they are sent as false."""
    _tried: set[str | None] = field(default_factory=set)

    @property
    def form(self) -> QueryForm:
        """The form in use."""
        return self.forms[0]

    def apply_remedy(self, error: UpstreamBlocked | ExtractionFailed) -> bool:
        """Change the query to avoid its last error, and return whether to send it again.

        If the platform did not find the query's id, the next form is used. If flags are missing, they are added. If the
        token was rejected, a new token is needed. If the response was not recognised, the same query is sent again.
        Each remedy is applied once, but the next form is used until no form is left.
        """
        decided = isinstance(error, UpstreamBlocked) or error.reason in PERMANENT_REASONS
        reason = error.reason if decided else "unrecognised"
        if reason == STALE_QUERY and len(self.forms) > 1:
            self.forms.pop(0)
        elif reason in self._tried or reason not in {TOKEN_REFUSED, MISSING_FLAGS, "unrecognised"}:
            return False
        self._tried.add(reason)
        if reason == MISSING_FLAGS:
            self.missing_flags = [str(detail["loc"][-1]) for detail in error.details]
        return True


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
        return self.spider.origin("api")  # with the sandbox, the origin is only known once the spider is opened

    async def user(self, target: Target, first: First | None = None) -> Part:
        """Query the user of a target, and return the item.

        ``first``: the response, if the query was the target's scheduled request.

        Raises:
            ScrapeError: the query failed, and no remedy is left.
        """
        page = await self._send(self.user_query(handle_of(target)), target, first, optional=first is None)
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
        query = self.timeline_query(handle_of(target), user_id, cursor)
        page = cast("TimelinePage", await self._send(query, target, first, optional=optional))
        return {**await page.to_item(), "is_terminated": page.is_terminated}

    def user_query(self, handle: str) -> GuestQuery:
        """Return the query for a user."""
        return GuestQuery(UserPage, {"username": handle}, self.queries.forms(UserPage))

    def timeline_query(self, handle: str, user_id: str, cursor: str) -> GuestQuery:
        """Return the query for a page of a user's posts."""
        params = {"username": handle, "cursor": cursor}
        return GuestQuery(TimelinePage, params, self.queries.forms(TimelinePage), user_id)

    def request(self, query: GuestQuery, token: str) -> Request:
        """Return the request for a query in its current form, with the additional flags that the platform required."""
        return query_request(
            self._origin,
            query.form,
            query.page_params,
            bearer=self._ids.bearer,
            token=token,
            user_id=query.user_id,
            missing=query.missing_flags,
        )

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
                request = self.limited(self.request(query, token))
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

        Targets for the first page of posts rarely need this, because they have already loaded the profile's page.
        """
        if error.reason != STALE_QUERY or not self.queries.page_is_useful:
            return False
        try:
            await self._load_page(target)
        except ScrapeError as failed:
            logger.info("optional_source_failed", id=target.id, source=ProfilePage.source, reason=failed.reason)
            return False
        newest = self.queries.forms(query.page)[0]
        is_new = newest.query_id != query.form.query_id and newest.query_id not in self.queries.stale_ids
        if is_new:
            query.forms = [newest]
        return is_new

    @property
    def queries(self) -> CurrentQueries:
        """The current ids of the guest API's queries, which all crawlers in this process share."""
        return self.spider.shared.get(CurrentQueries, self._origin, lambda: CurrentQueries(self._ids))

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
