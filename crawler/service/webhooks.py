"""Sends the events of clients' jobs to the webhooks that the operator has set, by the Standard Webhooks specification.

The events are in an outbox, in which ``jobs/counters.py`` stores them. Each process of the endpoint sends due events,
and deletes each one when it is delivered or given up. A process claims an event by delaying its next try. If the
process is killed, another one sends the event after this time, with the same id.

Redirects are not followed, and no proxy is used. Only the status of a response is interpreted, and few bytes of a
response are read.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import orjson
import sqlalchemy as sa
import structlog
from sqlalchemy import bindparam as param
from standardwebhooks import Webhook as Signer
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.ssl import optionsForClientTLS
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.client import Agent, FileBodyProducer, ResponseFailed, readBody
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from crawler.errors import StoreUnavailable
from crawler.jobs.changes import Comparison
from crawler.jobs.job import logged
from crawler.jobs.store import store_time
from crawler.jobs.tables import outbox
from crawler.service import metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IProtocol, IProtocolFactory, ITCPTransport
    from twisted.web.client import URI

    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.store import Session, Store
    from crawler.service.keys import Keys, Webhook

logger = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
"""Interval in seconds at which the outbox is searched for due events."""
DELAYS = (5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0, *[7_200.0] * 11)
"""The delay in seconds after each failed try, in total about a day. If the try after the last delay also fails, the
event is given up."""
JITTER = 0.1
"""Maximum random change of a delay, as a share of it, so that a receiver does not get all events at once."""
TRY_SECONDS = 15.0
"""Timeout in seconds of a try, from the name resolution to the head of the response."""
CONNECT_SECONDS = 5.0
REST_SECONDS = 1.0
"""Seconds for which the rest of a response is read after its head, because some receivers log a lost connection."""
MAX_BYTES = 65_536
"""Maximum size in bytes of a response, with its head."""
CLAIM_SECONDS = 30.0
"""Seconds after which another process sends a claimed event, if the process that has claimed it was killed."""
COMPARE_SECONDS = 600.0
"""Seconds after which another process sends an event, if the process that compares its job was killed."""
CLOSE_SECONDS = 5.0
"""Seconds that tries in flight have to end when the service shuts down. Unfinished tries are repeated."""
PER_CLIENT = 4
"""Maximum number of events of a client that a process sends at the same time."""

E = outbox.c
_place = sa.func.row_number().over(partition_by=E.client, order_by=(E.due, E.id)).label("place")
_waiting = (
    sa.select(E.id, E.client, E.body, E.tries, _place)
    .where((E.due <= param("now")) | (E.due > param("far")), E.client.not_in(param("busy", expanding=True)))
    .subquery()
)
DUE = sa.select(_waiting).where(_waiting.c.place <= PER_CLIENT).order_by(_waiting.c.id)
_CHANGE = sa.update(outbox).where(E.id == param("id_"), E.tries == param("tries_"))
CLAIM = _CHANGE.values(due=param("due_"), tries=E.tries + 1)
DELAY = _CHANGE.values(body=param("body_"), due=param("due_"))
DROP = sa.delete(outbox).where(E.id.in_(param("ids", expanding=True)))
OLDEST = sa.select(E.created).order_by(E.id).limit(1)


@dataclass(frozen=True, slots=True)
class Event:
    """An event that is to be sent."""

    id: str
    client: str
    body: bytes
    tries: int
    """The number of tries, with the one that was claimed."""


def due_events(session: Session, now: float, far: float, busy: Collection[str]) -> list[Event]:
    """Return the events to send now, at most ``PER_CLIENT`` of a client, without those of ``busy`` clients.

    ``far``: a time after all times until which a try may be delayed. An event that is due later was delayed while the
    clock was ahead, and is due now.
    """
    # An empty list would become NULL, and ``NOT IN (NULL)`` holds for no row.
    rows = session.execute(DUE, {"now": now, "far": far, "busy": ["", *busy]}).fetchall()
    return [Event(row.id, row.client, row.body, row.tries) for row in rows]


def claim_events(session: Session, events: Iterable[Event], until: float) -> list[Event]:
    """Claim events until a time. Return them without those that another process has claimed."""
    return [
        replace(each, tries=each.tries + 1)
        for each in events
        if session.run(CLAIM, id_=each.id, tries_=each.tries, due_=until)
    ]


def delay_event(session: Session, event: Event, due: float) -> bool:
    """Store the body of a claimed event, and delay its next try. Return False if another process has the claim."""
    return bool(session.run(DELAY, id_=event.id, tries_=event.tries, body_=event.body, due_=due))


class _Counted(ProtocolWrapper):
    """A connection that is aborted when more than ``MAX_BYTES`` were received."""

    left = MAX_BYTES

    def dataReceived(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left < 0:
            cast("ITCPTransport", self.transport).abortConnection()
        else:
            super().dataReceived(data)


@implementer(IStreamClientEndpoint)
@dataclass
class _CountedEndpoint:
    """An endpoint whose connections are ``_Counted``."""

    endpoint: IStreamClientEndpoint

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        counted = WrappingFactory(factory)
        counted.protocol = _Counted

        def wrapped(connection: IProtocol) -> IProtocol:
            return cast("_Counted", connection).wrappedProtocol

        return self.endpoint.connect(counted).addCallback(wrapped)


@implementer(IAgentEndpointFactory)
@dataclass
class _Endpoints:
    reactor: Any

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:  # noqa: N802  # Twisted's name
        host = uri.host.decode()
        endpoint: IStreamClientEndpoint = HostnameEndpoint(self.reactor, host, uri.port, timeout=CONNECT_SECONDS)
        if uri.scheme == b"https":
            endpoint = wrapClientTLS(optionsForClientTLS(host), endpoint)
        return _CountedEndpoint(endpoint)


def signed_headers(event: Event, secret: str) -> Headers:
    """Return the headers of a try to send an event."""
    now = datetime.fromtimestamp(store_time(), UTC)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "webhooks",
        "webhook-id": event.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Signer(secret).sign(event.id, now, event.body.decode()),
    }
    return Headers({name: [value] for name, value in headers.items()})


def reason(error: Exception) -> str:
    """Describe the failure of a try for the operator, without the path of the URL, which may be secret."""
    if isinstance(error, ResponseFailed):
        error = error.reasons[0].value
    match error:
        case TimeoutError():
            return f"no response within {TRY_SECONDS:g} s"
        case ConnectionAborted():
            return f"the head of the response has more than {MAX_BYTES} bytes"
    return f"{type(error).__name__}: {error}"


class Webhooks:
    """Sends the events of all clients. ``keys``: the webhook of each client."""

    def __init__(self, store: Store, keys: Keys, jobs: Jobs, service_url: str) -> None:
        from twisted.internet import reactor  # noqa: PLC0415  # the import installs a reactor if there is none

        self._store = store
        self._keys = keys
        self._jobs = jobs
        self._service_url = service_url
        self._reactor = reactor
        self._agent = Agent.usingEndpointFactory(reactor, _Endpoints(reactor))
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Client -> the tries in flight. A slow receiver delays only the events of its client."""

    async def send_due(self) -> None:
        """Start to send events that are due, and delete the events of clients without a webhook.

        Raises:
            StoreUnavailable: the outbox or the API keys cannot be read.
        """
        now, busy = store_time(), list(self._tasks)
        far = now + max(*DELAYS, CLAIM_SECONDS, COMPARE_SECONDS) * (1 + JITTER)
        due, oldest = await self._store.transact(
            lambda session: (due_events(session, now, far, busy), session.rows(OLDEST)), write=False
        )
        metrics.WEBHOOKS_AGE.set(max(0.0, now - oldest[0].created) if oldest else 0.0)
        clients = {each.client for each in due}
        found = {client: webhook for client in clients if (webhook := await self._keys.webhook(client))}
        if ignored := [each.id for each in due if each.client not in found]:
            await self._store.transact(lambda session: session.run(DROP, ids=ignored))
        wanted = [each for each in due if each.client in found]
        if not wanted:
            return
        until = now + CLAIM_SECONDS
        of: defaultdict[str, list[Event]] = defaultdict(list)
        for each in await self._store.transact(lambda session: claim_events(session, wanted, until)):
            of[each.client].append(each)
        for client, claimed in of.items():
            self._tasks[client] = asyncio.create_task(self._deliver_all(client, claimed, found[client]))

    async def close(self) -> None:
        """Wait at most ``CLOSE_SECONDS`` for the tries in flight."""
        if tasks := list(self._tasks.values()):
            _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            for each in late:
                each.cancel()

    async def _deliver_all(self, client: str, claimed: list[Event], webhook: Webhook) -> None:
        try:
            await asyncio.gather(*(self._deliver(each, webhook) for each in claimed))
        finally:
            del self._tasks[client]

    async def _deliver(self, event: Event, webhook: Webhook) -> None:
        status, error = None, None
        work: Callable[[Session], object]

        def drop(session: Session) -> object:
            return session.run(DROP, ids=[event.id])

        try:
            whole = await self._with_changes(event)
        except StoreUnavailable:
            with logged("webhooks_failed"):  # nothing was sent: the event is sent when its claim ends
                await self._store.transact(partial(delay_event, event=event, due=store_time() + CLAIM_SECONDS))
            return
        if whole is None:
            return  # another process has claimed the event meanwhile
        event = whole
        try:
            status = await self._send(event, webhook)
        except Exception as failure:  # noqa: BLE001  # any failure is a failed try, so that the number of tries is limited
            error = reason(failure)
        if status is not None and 200 <= status < 300:
            result, work = "delivered", drop
        elif event.tries > len(DELAYS):
            result, work = "given_up", drop
        else:
            delay = DELAYS[event.tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  # not a secret
            result, work = "failed", partial(delay_event, event=event, due=store_time() + delay)
        with logged("webhooks_failed"):  # the event is sent again when its claim ends
            await self._store.transact(work)
            metrics.WEBHOOKS.labels(result).inc()
            log = logger.error if result == "given_up" else logger.info
            tried = {"id": event.id, "client": event.client, "attempt": event.tries}
            log("webhook", **tried, result=result, status=status, error=error)

    async def _with_changes(self, event: Event) -> Event | None:
        """Return an event with the numbers of changes since the earlier runs of its job. None: the claim is lost.

        The first try stores the numbers, or that there are none, so that all tries have the same body: the earlier runs
        may change meanwhile. The comparison may take longer than ``CLAIM_SECONDS``, so the claim is prolonged.

        Raises:
            StoreUnavailable: the store cannot be used.
        """
        body = orjson.loads(event.body)
        if "changes" in body["data"]:
            return event
        job = await self._jobs.get(int(body["data"]["job_id"]))
        earlier = await self._jobs.earlier(job) if job is not None and job.state == "done" else []
        body["data"]["changes"] = await self._compare(event, job, earlier) if job is not None and earlier else None
        event = replace(event, body=orjson.dumps(body))
        is_claimed = await self._store.transact(partial(delay_event, event=event, due=store_time() + CLAIM_SECONDS))
        return event if is_claimed else None

    async def _compare(self, event: Event, job: Job, earlier: list[Job]) -> dict[str, Any] | None:
        """Return the numbers of changes in a job since earlier runs. None: they cannot be compared.

        Raises:
            StoreUnavailable: the store cannot be used.
        """
        await self._store.transact(partial(delay_event, event=event, due=store_time() + COMPARE_SECONDS))
        comparison = Comparison(job, earlier)
        try:
            async for _ in comparison.pages(self._jobs):
                pass
        except StoreUnavailable:
            raise
        except Exception:
            logger.exception("changes_failed", id=event.id)
            return None
        return {"counts": dict(comparison.counts), "url": f"{self._service_url}/v1/jobs/{job.id}/changes"}

    async def _send(self, event: Event, webhook: Webhook) -> int:
        """Send an event. Return the status of the response.

        Raises:
            TimeoutError: there was no response within ``TRY_SECONDS``.
            Exception: the receiver cannot be reached, or its response is not HTTP or has a head of too many bytes.
        """
        headers, body = signed_headers(event, webhook.secret), FileBodyProducer(BytesIO(event.body))
        request = self._agent.request(b"POST", webhook.url.encode(), headers, body)
        async with asyncio.timeout(TRY_SECONDS):
            response = await request.asFuture(asyncio.get_running_loop())
        readBody(response).addTimeout(REST_SECONDS, self._reactor).addErrback(lambda _: None)  # only the status counts
        return int(response.code)
