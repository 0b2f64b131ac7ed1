"""The routes of asynchronous calls: accept a call, return its response, list calls and delete a call."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from crawler.errors import CallNotFound, ScrapeError, ScraperNotFound, ShuttingDown, StoreUnavailable
from crawler.service import metrics
from crawler.service.calls import stored
from crawler.service.calls.asynchronous import RUN_SECONDS
from crawler.service.calls.envelope import (
    ACCEPTED,
    Answer,
    Call,
    accepted,
    empty_response,
    json_response,
    success,
)
from crawler.service.calls.once import Claim, Found
from crawler.service.calls.stored import STATES, FoundCall, StoredCall
from crawler.service.description import contract
from crawler.service.http.body import MAX_PAGE, PAGE_LIMIT, fields_of, read_query, require_method, wait_of

if TYPE_CHECKING:
    from twisted.web.server import Request

    from crawler.service.calls.asynchronous import AsyncCalls
    from crawler.service.clients.keys import Holder
    from crawler.service.jobs.runs import Runs
    from crawler.targets.target import Target

PATH = "/v1/calls"
REQUEST_ID = re.compile(contract.REQUEST_ID)

STORE_SECONDS = 2.0
"""Maximum seconds for which a request waits for the store."""

PARAMETERS = {
    "state": ("|".join(STATES), f"one of {', '.join(STATES)}"),
    "limit": PAGE_LIMIT,
    "cursor": (contract.REQUEST_ID, "the next_cursor of the previous page"),
}
"""Query parameters of the list of calls: a regular expression for the valid values, and their description."""

NOT_FOUND = "This client has no call with this id: it is unknown, was deleted, or its response has expired."


class CallRoutes:
    """Responds to requests about asynchronous calls of authenticated clients."""

    def __init__(self, calls: AsyncCalls, runs: Runs) -> None:
        self.calls = calls
        self.runs = runs
        self.store = calls.store

    async def accept(self, call: Call, holder: Holder, target: Target) -> Answer:
        """Store a call, and return status 202, or the call's response if it has one within ``call.wait`` seconds.

        A call whose record is cached, or stored for its ``Idempotency-Key``, is not stored, and returns this record.

        Raises:
            Overloaded: the call could not start in time, or the stored calls take too much space.
            QuotaExceeded: the client's whole quota of this month is used or reserved.
            ShuttingDown: the service is shutting down.
            StoreUnavailable: the call cannot be stored.
            InvalidRequest, IdempotencyInProgress, IdempotencyMismatch: the ``Idempotency-Key`` cannot be used.
        """
        call.target = target.label
        platform = target.scraper.platform
        if self.calls.crawlers.draining:
            raise ShuttingDown("The service is shutting down; retry the call.", retry_after=5)
        control, key = call.request_headers.get("cache-control"), call.request_headers.get("idempotency-key")
        claim = None
        if key is not None:
            claim = Claim.make(key, holder.client, target, self.calls.max_seconds + RUN_SECONDS)
        elif (hit := self.calls.cache.stored(target, control)) is not None:
            return success(call, hit)
        new = StoredCall.new(target, holder, self.calls.max_seconds, cache_control=control, key=key)
        room = self.calls.room(platform, holder.quota)
        result = await self.store.transact(
            lambda session: stored.accept(session, new, claim, room), seconds=STORE_SECONDS
        )
        if isinstance(result, ScrapeError):
            raise result
        if isinstance(result, Found):
            assert claim is not None
            result.check(claim)
            found = await self._find(holder.client, result.owner)
            if found is None:
                return success(call, result.replayed(claim))
            call.headers["Idempotent-Replayed"] = "true"
        else:
            metrics.ACCEPTED.labels(new.scraper).inc()
            self.runs.added(platform)
            found = result
        call.is_counted = False
        call.headers["Location"] = f"{call.service_url}{PATH}/{found.call.request_id}"
        try:
            answer = self._response(call, await self._waited(call, found), retryable=False)
        except StoreUnavailable:
            # The call is stored. After an error, the client would send the call again, and it would run twice.
            answer = self._response(call, found, retryable=False)
        if answer.code == ACCEPTED:
            applied = "respond-async" if call.wait is None else f"respond-async, wait={call.wait}"
            answer.headers["Preference-Applied"] = applied
        return answer

    async def answer(self, request: Request, call: Call, holder: Holder, path: str) -> Answer:
        """Respond to a request whose path begins with ``PATH``: about one call, or about all calls of the client.

        Raises:
            ScraperNotFound: there is no such route.
            MethodNotAllowed, CallNotFound, InvalidRequest, StoreUnavailable: as for each route.
        """
        call.is_counted = False
        request_id = path.removeprefix(PATH).removeprefix("/")
        if "/" in request_id:
            raise ScraperNotFound(f"Asynchronous calls have the routes {PATH} and {PATH}/<request_id>.")
        require_method(request, *(("GET", "DELETE") if request_id else ("GET",)))
        if not request_id:
            return await self._list(request, call, holder)
        if request.method == b"DELETE":
            return await self._delete(call, holder, request_id)
        call.wait = wait_of(call.request_headers.get("prefer", ""))
        return await self._result(request, call, holder, request_id)

    async def _result(self, request: Request, call: Call, holder: Holder, request_id: str) -> Answer:
        """Return the response of a call, or status 202 if it still waits or runs after ``call.wait`` seconds.

        Raises:
            CallNotFound: the client has no such call.
            InvalidRequest: ``fields=`` is not valid.
            StoreUnavailable: the call cannot be read.
        """
        found = await self._find(holder.client, request_id)
        if found is not None:
            call.scraper = found.call.scraper
            call.fields = fields_of(request, call.scraper)
        return self._response(call, found and await self._waited(call, found), retryable=True)

    async def _delete(self, call: Call, holder: Holder, request_id: str) -> Answer:
        """Delete a call and its response. A waiting or running call is cancelled.

        Raises:
            CallNotFound: the client has no such call.
            StoreUnavailable: the call cannot be deleted.
        """
        key = None
        if REQUEST_ID.fullmatch(request_id):
            work = partial(stored.delete, client=holder.client, request_id=request_id)
            key = await self.store.transact(work, seconds=STORE_SECONDS)
        if key is None:
            raise CallNotFound(NOT_FOUND)
        self.calls.deleted(key)
        return empty_response(call)

    async def _list(self, request: Request, call: Call, holder: Holder) -> Answer:
        """Return a page of the client's calls.

        Raises:
            InvalidRequest: a query parameter is not valid.
            StoreUnavailable: the calls cannot be read.
        """
        query = read_query(request, PARAMETERS)
        state, limit, cursor = query.get("state"), int(query.get("limit", MAX_PAGE)), query.get("cursor")
        page = partial(stored.page, client=holder.client, state=state, limit=limit, cursor=cursor)
        return json_response(200, await self.store.transact(page, seconds=STORE_SECONDS, write=False), call)

    async def _waited(self, call: Call, found: FoundCall) -> FoundCall | None:
        """Wait at most ``call.wait`` seconds for a stored call. Return its new state, or None if it was deleted."""
        if found.is_done or call.wait is None:
            return found
        await self.calls.wait(found.call, call.wait - call.duration_ms / 1000)
        return await self._find(found.call.client, found.call.request_id)

    def _response(self, call: Call, found: FoundCall | None, *, retryable: bool) -> Answer:
        """Return the response of a stored call, or status 202 with its position.

        Raises:
            CallNotFound: there is no such call.
        """
        if found is None:
            raise CallNotFound(NOT_FOUND)
        call.scraper = found.call.scraper
        if found.is_done:
            answer = found.answer(call.service_url, call.fields, replayed="Idempotent-Replayed" in call.headers)
            applied = {} if call.wait is None else {"Preference-Applied": f"wait={call.wait}"}
            return replace(answer, headers=answer.headers | call.headers | applied)
        call.request_id = found.call.request_id
        platform, position = found.call.platform, found.position
        message = "The call is running."
        if position is not None:
            call.headers["X-Queue-Position"] = str(position)
            message = f"The call is waiting: position {position} in the queue of {platform}."
        seconds = self.calls.seconds_until_done(platform, None if position is None else position - 1)
        return accepted(call, message, seconds, retryable=retryable)

    async def _find(self, client: str, request_id: str) -> FoundCall | None:
        if not REQUEST_ID.fullmatch(request_id):
            return None
        return await self.store.transact(
            lambda session: stored.find(session, client, request_id), seconds=STORE_SECONDS, write=False
        )
