"""Facts in the store of jobs, through which processes share throttles, circuit breakers, refusals and API key limits.

All decisions that a process makes at about the same time are one transaction, which locks the rows of their facts, so
that decisions of different processes about the same fact are made one after the other. All times are times of the
database.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy import bindparam as param

from crawler.downloads.facts import Decision, F, Fact, Facts, Withdraw
from crawler.errors import StoreUnavailable
from crawler.jobs.store import Session, Store, store_time
from crawler.jobs.tables import insert_into, limits

logger = structlog.get_logger(__name__)
T = TypeVar("T")

ANSWER_SECONDS = 2.0
"""Maximum seconds for which a decision waits for the store."""
OWN_SHARE_SECONDS = 5.0
"""Seconds for which a process uses its own share of the limits after the store has failed. Then the process tries the
store again."""
VIEW_SECONDS = 1.0
"""Seconds after which a process reads again what other processes have recorded, such as open circuit breakers."""
SOON_SECONDS = 0.05
"""Maximum seconds for which a decision whose result nobody awaits waits for further decisions."""
MAX_OWED = 1_000
"""Maximum number of decisions, such as releases of slots, that are repeated after an outage: the last ones."""
PURGE_SECONDS = 3_600.0
CLOSE_SECONDS = 5.0

L = limits.c
_CLOCK: dict[str, sa.ColumnElement[Any]] = {
    "sqlite": sa.null(),
    "postgresql": sa.extract("epoch", sa.func.clock_timestamp()),
}
LOCK = {
    name: sa.select(L.key, L.fact, clock.label("now"))
    .where(L.key.in_(param("keys", expanding=True)))
    .order_by(L.key)
    .with_for_update()
    for name, clock in _CLOCK.items()
}
ADD = insert_into(limits)
STORE = sa.update(limits).where(L.key == param("key_")).values(fact=param("fact_"), ends=param("ends_"))
OF_SCOPE = sa.select(L.key, L.fact).where(L.scope == param("scope"))
ONE = sa.select(L.fact).where(L.key == param("key"))
PURGE = sa.delete(limits).where(L.ends < param("now"))


def scope_of(kind: type[Fact], name: str) -> str:
    """Return the name of a fact's scope: its kind and its platform. ``Facts.refresh()`` reads all facts of a scope."""
    return f"{kind.kind}:{group_of(name)}"


def group_of(name: str) -> str:
    """Return the part of a name before the first colon: the platform."""
    return name.partition(":")[0]


@dataclass(eq=False)
class _Pending:
    """A decision whose result is not stored yet."""

    kind: type[Fact]
    name: str
    decision: Decision[Any, Any]
    result: asyncio.Future[Any] | None
    """None: nobody waits for the result."""

    @property
    def key(self) -> str:
        return f"{self.kind.kind}:{self.name}"

    def answer(self, result: Any) -> None:
        """Give the result to the caller, if the caller still waits."""
        if self.result is not None and not self.result.done():
            self.result.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Raise an error in the caller, if the caller still waits."""
        if self.result is not None and not self.result.done():
            self.result.set_exception(error)


@dataclass
class _View:
    """The facts of a scope that this process has read."""

    kind: type[Fact]
    at: float = -math.inf
    rows: dict[str, bytes] = field(default_factory=dict)


class _Decided(NamedTuple):
    results: list[Any]
    facts: dict[tuple[type[Fact], str], Fact]
    rows: dict[str, list[Any]]
    """Scope -> pairs of the key of a fact and its stored form."""
    now: float
    """The time of the database."""


class SharedFacts(Facts):
    """The facts of all processes that use the same store.

    While the store is unavailable, each of ``processes`` processes decides by its own facts, within its share of the
    limits.
    """

    shared = True

    def __init__(self, location: str, processes: int) -> None:
        """``location``: path of an SQLite file, or a ``postgresql://`` URL."""
        super().__init__(1)
        # Not durable: if the server crashes, the lost facts would have expired soon.
        self.store = Store(location, durable=False)
        self._all_processes = processes
        self._in_outage = False
        self._retry_at = 0.0
        self._clock_offset = store_time() - time.monotonic()
        """Seconds by which the database's clock is ahead of the monotonic clock. Until the first decision, the store's
        time as this process knows it is used: facts are also read before."""
        self._pending: list[_Pending] = []
        self._owed: list[_Pending] = []
        self._running: asyncio.Task[None] | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._views: dict[str, _View] = {}
        """Scope -> its view."""
        self._purge_at = time.monotonic() + PURGE_SECONDS

    def now(self) -> float:
        return time.monotonic() + self._clock_offset

    async def change(self, kind: type[F], name: str, decision: Decision[F, T]) -> T:
        if not self._is_available():
            return await super().change(kind, name, decision)
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending.append(_Pending(kind, name, decision, result))
        self._start()
        return await result

    def change_soon(self, kind: type[F], name: str, decision: Decision[F, Any]) -> Withdraw:
        pending = _Pending(kind, name, decision, None)
        if self._is_available():
            self._pending.append(pending)
            self._start_soon()
        else:
            self._owe(pending)
        return partial(self._withdraw, pending)

    def _withdraw(self, pending: _Pending) -> bool:
        is_pending = pending in self._pending
        if is_pending:
            self._pending.remove(pending)
        return is_pending

    async def look_up(self, kind: type[F], name: str) -> F | None:
        key = f"{kind.kind}:{name}"
        rows = await self._query(lambda session: session.rows(ONE, key=key))
        if not rows:
            return self.find(kind, name)
        self._learn(kind, name, msgspec.json.decode(rows[0][0], type=kind))
        return self.known(kind, name)

    async def refresh(self, kind: type[Fact], name: str) -> bool:
        scope, key = scope_of(kind, name), f"{kind.kind}:{name}"
        view = self._views.setdefault(scope, _View(kind))
        if time.monotonic() - view.at >= VIEW_SECONDS:
            rows = await self._query(lambda session: session.rows(OF_SCOPE, scope=scope))
            if rows is None:
                return True
            self._see(view, rows)
        is_known = key in view.rows
        view.rows.setdefault(key, b"")
        return is_known

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._pending or self._running:
                    self._start()
                    await asyncio.sleep(0.005)
        except TimeoutError:
            logger.warning("shared_limits_not_stored", decisions=len(self._pending))
        await self.store.close()

    def _see(self, view: _View, rows: Sequence[Any]) -> None:
        """Update this process's copies of the facts of a scope that have changed."""
        view.at, former = time.monotonic(), view.rows
        view.rows = dict(rows)
        for key, data in view.rows.items():
            if former.get(key) != data:
                name = key.removeprefix(f"{view.kind.kind}:")
                self._learn(view.kind, name, msgspec.json.decode(data, type=view.kind))

    def _learn(self, kind: type[F], name: str, fact: F) -> None:
        """Update this process's copy of a fact to a stored fact."""
        known = self.known(kind, name)
        for each in kind.__struct_fields__:
            setattr(known, each, getattr(fact, each))

    # The connection to the store

    def _is_available(self) -> bool:
        return time.monotonic() >= self._retry_at

    def _failed(self, error: StoreUnavailable) -> None:
        if not self._in_outage:
            self._in_outage = True
            logger.warning("limits_not_shared", error=str(error), processes=self._all_processes)
            for facts in self._facts.values():
                for fact in facts.values():
                    fact.leave_others(self.owner)
        self.processes = self._all_processes
        self._retry_at = time.monotonic() + OWN_SHARE_SECONDS

    async def _query(self, query: Callable[[Session], T], *, write: bool = False) -> T | None:
        """Run a query outside of decisions. Return None while the store is unavailable."""
        if not self._is_available():
            return None
        try:
            return await self.store.transact(query, seconds=ANSWER_SECONDS, write=write)
        except StoreUnavailable as error:
            self._failed(error)
            return None

    def _start(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._running is None and self._pending:
            self._running = asyncio.ensure_future(self._run())

    def _start_soon(self) -> None:
        if self._pending and self._soon is None and self._running is None:
            self._soon = asyncio.get_running_loop().call_later(SOON_SECONDS, self._start)

    async def _run(self) -> None:
        """Make the pending decisions. Repeat this while callers wait for the results of new ones."""
        try:
            while self._pending:  # empty if the decisions were withdrawn since the start of the task
                batch, self._pending, self._owed = self._owed + self._pending, [], []
                await self._decide(batch)
                if not any(each.result for each in self._pending):
                    break
        finally:
            self._running = None
            self._start_soon()

    async def _decide(self, batch: list[_Pending]) -> None:
        groups = {group_of(each.name) for each in batch}
        due = time.monotonic() - VIEW_SECONDS / 2
        scopes = [scope for scope, view in self._views.items() if view.at <= due and scope.partition(":")[2] in groups]
        try:
            decided = await self.store.transact(lambda s: decide(s, batch, scopes), seconds=ANSWER_SECONDS)
        except StoreUnavailable as error:
            self._failed(error)
            for each in batch:
                if each.result is None:
                    self._owe(each)
                else:
                    each.answer(self._decide_alone(each))
            return
        except BaseException as error:
            for each in batch:
                each.fail(error)
            raise
        self.processes, self._in_outage = 1, False
        self._clock_offset = decided.now - time.monotonic()
        for scope, rows in decided.rows.items():
            self._see(self._views[scope], rows)
        for (kind, name), fact in decided.facts.items():
            self._learn(kind, name, fact)
        for each, result in zip(batch, decided.results, strict=True):
            each.answer(result)
        if time.monotonic() > self._purge_at:
            self._purge_at = time.monotonic() + PURGE_SECONDS
            await self._query(lambda session: session.run(PURGE, now=decided.now), write=True)

    def _decide_alone(self, pending: _Pending) -> Any:
        return pending.decision(self.known(pending.kind, pending.name), self.now(), self.processes)

    def _owe(self, pending: _Pending) -> None:
        """Make a decision on this process's copy of the fact now, and on the stored fact after the outage."""
        self._decide_alone(pending)
        self._owed = [*self._owed, pending][-MAX_OWED:]


def decide(session: Session, batch: Iterable[_Pending], scopes: Iterable[str]) -> _Decided:
    """Make decisions in their order. Also read the facts of ``scopes``, such as breakers opened by other processes."""
    kinds = {each.key: (each.kind, each.name) for each in batch}
    rows = _lock(session, list(kinds))
    if len(rows) < len(kinds):
        missing = sorted(kinds.keys() - rows.keys())
        new = [{"key": k, "scope": scope_of(*kinds[k]), "fact": b"{}", "ends": 0.0} for k in missing]
        session.execute(ADD, new)
        rows = _lock(session, list(kinds))
    now = session.now() if session.dialect == "sqlite" else max(float(row.now) for row in rows.values())
    facts = {key: msgspec.json.decode(row.fact, type=kinds[key][0]) for key, row in rows.items()}
    results = [each.decision(facts[each.key], now, 1) for each in batch]
    changed = []
    for key, fact in sorted(facts.items()):
        data = msgspec.json.encode(fact)
        if data != rows[key].fact or data == b"{}":
            changed.append({"key_": key, "fact_": data, "ends_": fact.ends()})
    session.execute(STORE, changed if len(changed) != 1 else changed[0])
    others = {scope: session.rows(OF_SCOPE, scope=scope) for scope in scopes}
    return _Decided(results, {kinds[key]: fact for key, fact in facts.items()}, others, now)


def _lock(session: Session, keys: list[str]) -> dict[str, Any]:
    return {row.key: row for row in session.execute(LOCK[session.dialect], {"keys": keys}).fetchall()}
