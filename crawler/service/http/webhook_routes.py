"""The routes of a client's webhook: set, show, delete and test it, and list its deliveries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.errors import InvalidRequest, ScraperNotFound
from crawler.jobs.clock import utc_text
from crawler.jobs.events import post
from crawler.service.calls.envelope import Answer, Call, empty_response, json_response
from crawler.service.http.body import MAX_PAGE, PAGE_LIMIT, read_object, read_query, require_method
from crawler.service.webhooks import outbox
from crawler.service.webhooks.signed_request import check_url

if TYPE_CHECKING:
    from twisted.web.server import Request

    from crawler.jobs.store import Session, Store
    from crawler.service.clients.keys import Holder

T = TypeVar("T")

PATH = "/v1/webhook"
TEST = "webhook.test"
STORE_SECONDS = 5.0
LIST_QUERY = {
    "before": ("msg_[0-9a-f]{32}", "the next_before of the previous page"),
    "limit": PAGE_LIMIT,
}
AFTER_ALL = "msg_~"
"""A text that sorts after all ids."""


@dataclass
class WebhookRoutes:
    """Responds to requests about the webhook of an authenticated client."""

    store: Store
    private: bool
    """The setting ``WEBHOOK_PRIVATE``."""

    async def answer(self, request: Request, call: Call, holder: Holder, path: str) -> Answer:
        """Respond to a request whose path begins with ``PATH``.

        Raises:
            ScraperNotFound: there is no such route.
            MethodNotAllowed, InvalidRequest, InvalidJson, UnsupportedMediaType: the route refuses the request.
            StoreUnavailable: the store cannot be read or written.
        """
        call.is_counted = False
        part = path.removeprefix(PATH)
        if part == "/deliveries":
            require_method(request, "GET")
            return await self._deliveries(request, call, holder)
        read_query(request, {})
        if part == "/test":
            require_method(request, "POST")
            return await self._test(call, holder)
        if part:
            raise ScraperNotFound(f"A webhook has the routes {PATH}, {PATH}/test and {PATH}/deliveries.")
        require_method(request, "GET", "PUT", "DELETE")
        if request.method == b"PUT":
            return await self._put(request, call, holder)
        if request.method == b"DELETE":
            await self._transact(lambda session: outbox.drop(session, holder.client))
            return empty_response(call)
        return json_response(200, await self._transact(lambda s: _described(s, holder.client), write=False), call)

    async def _put(self, request: Request, call: Call, holder: Holder) -> Answer:
        given = read_object(request, call)
        for name in given.keys() - {"url", "secret"}:
            raise InvalidRequest.of(name, "expected only url and, optionally, secret")
        url = self._checked("url", given.get("url"), lambda text: check_url(text, private=self.private))
        secret = self._checked("secret", given["secret"], outbox.check_secret) if "secret" in given else None

        def put(session: Session) -> dict[str, Any]:
            made = outbox.put(session, holder.client, url, secret)
            return _described(session, holder.client) | {"secret": made}

        return json_response(200, await self._transact(put), call)

    @staticmethod
    def _checked(name: str, value: Any, check: Callable[[str], str]) -> str:
        if not isinstance(value, str):
            raise InvalidRequest.of(name, "expected text")
        try:
            return check(value)
        except ValueError as error:
            raise InvalidRequest.of(name, str(error)) from None

    async def _test(self, call: Call, holder: Holder) -> Answer:
        delivery = await self._transact(lambda session: post(session, holder.client, TEST, {}, session.now()))
        if delivery is None:
            raise InvalidRequest.of("webhook", f"this client has none: set it with PUT {PATH}")
        return json_response(202, {"id": delivery, "type": TEST}, call)

    async def _deliveries(self, request: Request, call: Call, holder: Holder) -> Answer:
        query = read_query(request, LIST_QUERY)
        limit, before = int(query.get("limit", MAX_PAGE)), query.get("before", AFTER_ALL)
        found = await self._transact(lambda s: outbox.listed(s, holder.client, before, limit + 1), write=False)
        page = found[:limit]
        following = page[-1]["id"] if len(found) > limit else None
        return json_response(200, {"client_id": holder.client, "deliveries": page, "next_before": following}, call)

    async def _transact(self, work: Callable[[Session], T], *, write: bool = True) -> T:
        return await self.store.transact(work, seconds=STORE_SECONDS, write=write)


def _described(session: Session, client: str) -> dict[str, Any]:
    """Return a client's webhook, without its secret."""
    found = outbox.find(session, client)
    url, changed = (found.url, utc_text(found.changed)) if found else (None, None)
    return {"client_id": client, "url": url, "changed_at": changed}
