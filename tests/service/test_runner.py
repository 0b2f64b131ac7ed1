"""Running asynchronous calls when the platform rejects them, the store fails, or clients delete them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.settings import Settings

from crawler.downloads.facts import Facts
from crawler.errors import CircuitOpen, Overloaded, ShuttingDown, StoreUnavailable, TargetNotFound, UpstreamTimeout
from crawler.jobs import leases, worker
from crawler.jobs.clock import StoreTime
from crawler.jobs.job import InputLine
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Store
from crawler.registry import scrapers
from crawler.service.calls import asynchronous, stored
from crawler.service.calls.asynchronous import AsyncCalls
from crawler.service.calls.cache import Cache
from crawler.service.calls.envelope import Call, Served, new_request_id
from crawler.service.calls.stored import FoundCall, Room, StoredCall
from crawler.service.clients.keys import Holder
from crawler.service.clients.limits import KeyLimits
from crawler.service.http.call_routes import CallRoutes
from crawler.service.jobs import runs
from crawler.service.jobs.runs import Runs
from crawler.service.periodic import repeat
from crawler.targets.parser import check_params
from crawler.targets.target import Outcome, Target, target_key

SEARCH, CATEGORY = scrapers()["retail-search-v4"], scrapers()["retail-category-v4"]
SETTINGS = Settings({"CALL_MAX_HOURS": 1, "CALL_RESULT_HOURS": 1, "IDEMPOTENCY_HOURS": 1, "CALL_STORE_MB": 1_000})

Fetch = Callable[[Target], Awaitable[Served]]


@dataclass
class Slots:
    """Replaces the lanes and the crawler of a platform that has a given number of slots."""

    concurrency: int = 2
    targets_per_second: float = 4.0
    usable_in: float = 0.0
    spacing: float = 0.0
    in_flight: int = 0
    unhealthy: bool = False
    fetch: Fetch | None = None

    @property
    def lanes(self) -> Slots:
        return self

    def free_in(self, started: int) -> float:
        return 0.0 if started < self.concurrency else 0.001

    async def scrape(self, target: Target) -> Outcome:
        """Scrape one target of a job."""
        assert self.fetch is not None
        await self.fetch(target)
        return Outcome(target, None, None, 0)


@dataclass
class Crawlers:
    """Replaces the crawlers of the service, with one platform."""

    crawler: Slots = field(default_factory=Slots)
    draining: bool = False

    @property
    def of(self) -> dict[str, Slots]:
        return {"retail": self.crawler}


@dataclass
class Process:
    """A process of the service that runs asynchronous calls."""

    runs: Runs
    calls: AsyncCalls
    store: Store

    async def accept(
        self,
        client: str = "acme",
        concurrency: int | None = None,
        *,
        category: bool = False,
        elsewhere: bool = False,
    ) -> StoredCall:
        """Accept a call for a search or a category. ``elsewhere``: in another process, without notifying this one."""
        scraper, params = (CATEGORY, {"cat_id": "976759"}) if category else (SEARCH, {"query": client})
        target = Target(new_request_id(), scraper, check_params(scraper, params))
        holder = Holder(client, f"key-{client}", concurrency=concurrency)
        call = StoredCall.new(target, holder, 3_600, cache_control=None, key=None)
        found = await self.store.transact(lambda session: stored.accept(session, call, None, Room(1e9)))
        if not elsewhere:
            self.runs.added("retail")
        assert isinstance(found, FoundCall)
        return found.call

    async def find(self, call: StoredCall) -> FoundCall | None:
        return await self.store.transact(
            lambda session: stored.find(session, call.client, call.request_id), write=False
        )

    async def done(self, call: StoredCall) -> FoundCall:
        while (found := await self.find(call)) is None or not found.is_done:
            await self.calls.wait(call, 30)
        return found

    def usage(self) -> list[Any]:
        with closing(sqlite3.connect(self.store.location)) as database:
            return database.execute("SELECT code, SUM(calls), SUM(billable) FROM usage GROUP BY code").fetchall()


QUICK = {
    asynchronous: {"TICK_SECONDS": 0.01, "LOAD_SECONDS": 0.05},
    runs: {"POLL_SECONDS": 0.01, "REST_SECONDS": 0.01, "RESTART_SECONDS": 0.01},
    worker: {"RETRY_SECONDS": 0.01, "TEND_SECONDS": 0.05, "FLUSH_SECONDS": 0.01},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the intervals at which the store is checked, and trust the clock from the start."""
    for module, names in QUICK.items():
        for name, seconds in names.items():
            monkeypatch.setattr(module, name, seconds)
        monkeypatch.setattr(module, "STORE_TIME", SimpleNamespace(is_steady=True), raising=False)


@asynccontextmanager
async def running(folder: Path, fetch: Fetch, slots: Slots | None = None, lease: float = 0.6) -> AsyncIterator[Process]:
    """Run the calls in a store. ``fetch`` replaces the crawlers."""
    location = str(folder / "service.sqlite3")
    store, crawlers = Store(location), cast("Any", Crawlers(slots or Slots()))
    crawlers.crawler.fetch = fetch
    calls = AsyncCalls(
        store, crawlers, Cache(fetch, ttls={}, max_bytes=0, max_wait=120), KeyLimits(LIMITS, Facts()), SETTINGS
    )
    process = Process(Runs(Jobs(location), crawlers, calls, lease, exits=5), calls, store)
    periodic = [asyncio.ensure_future(repeat(*each)) for each in calls.periodic]
    process.runs.open()
    yield process
    calls.stop()
    process.runs.stop()
    rows = await store.transact(lambda session: session.rows("SELECT id FROM jobs"), write=False)
    for (job,) in rows:
        found = await process.runs.jobs.get(job)
        assert found is not None
        assert await process.runs.jobs.check(found) == []
    await process.runs.close()
    for task in periodic:
        task.cancel()
    await store.close()


LIMITS = Settings({"KEY_RATE": None, "KEY_CONCURRENCY": 0, "PROCESSES": 1})


@pytest.mark.parametrize(
    "error",
    [
        CircuitOpen("Blocked.", retry_after=0),
        Overloaded("Full.", retry_after=0),
        ShuttingDown("Draining.", retry_after=0),
        UpstreamTimeout("No slot.", reason="no_turn"),
    ],
    ids=lambda error: error.code,
)
async def test_a_call_that_the_platform_refuses_waits_again(tmp_path: Path, error: Exception) -> None:
    errors = [error, error]

    async def fetch(target: Target) -> Served:
        assert target.background
        if errors:
            raise errors.pop()
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        found = await process.done(await process.accept())
        assert found.call.code == "OK"
        assert process.usage() == [("OK", 1, 1)]


async def test_a_circuit_breaker_that_is_open_for_a_scraper_does_not_stop_the_others(tmp_path: Path) -> None:
    async def fetch(target: Target) -> Served:
        if target.scraper is SEARCH:
            raise CircuitOpen("The search refuses requests.", retry_after=3_600)
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        searches = [await process.accept() for _ in range(3)]
        assert (await process.done(await process.accept(category=True))).call.code == "OK"
        for search in searches:
            found = await process.find(search)
            assert found is not None
            assert not found.is_done


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [(TargetNotFound("Gone."), "TARGET_NOT_FOUND", 404), (ZeroDivisionError(), "INTERNAL_ERROR", 500)],
    ids=["target", "bug"],
)
async def test_an_error_is_the_response_of_its_call(tmp_path: Path, error: Exception, code: str, status: int) -> None:
    async def fetch(_: Target) -> Served:
        raise error

    async with running(tmp_path, fetch) as process:
        found = await process.done(await process.accept())
        assert (found.call.code, found.answer("").status, found.answer("").billable) == (code, status, False)
        assert process.usage() == [(code, 1, 0)]


async def test_an_accepted_call_is_reported_as_accepted_if_its_state_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error response, the client would repeat the request and be billed twice."""

    async def fetch(_: Target) -> Served:
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        transact = process.store.transact

        async def transact_once(*arguments: Any, **options: Any) -> Any:
            monkeypatch.setattr(process.store, "transact", unavailable)
            return await transact(*arguments, **options)

        async def unavailable(*_: object, **__: object) -> None:
            raise StoreUnavailable("The store is locked.")

        monkeypatch.setattr(process.store, "transact", transact_once)
        target = Target(new_request_id(), SEARCH, check_params(SEARCH, {"query": "tea"}))
        call = Call(target.id)
        answer = await CallRoutes(process.calls, process.runs).accept(call, Holder("acme", "key"), target)
        monkeypatch.setattr(process.store, "transact", transact)
        assert (answer.status, answer.code) == (202, "ACCEPTED")
        assert answer.headers["Location"] == f"/v1/calls/{target.id}"
        assert await transact(lambda session: stored.find(session, "acme", target.id)) is not None


async def test_a_record_that_cannot_be_encoded_is_an_error_and_not_fetched_again(tmp_path: Path) -> None:
    fetched: list[str] = []

    async def fetch(target: Target) -> Served:
        fetched.append(target.id)
        return Served({"name": "\ud83d"})  # a lone surrogate, which JSON payloads can contain

    async with running(tmp_path, fetch) as process:
        call = await process.accept()
        assert (await process.done(call)).call.code == "INTERNAL_ERROR"
        assert fetched == [call.request_id]


@dataclass
class TakenSlot(Slots):
    """A slot that is free at the first check. A synchronous call takes it before the second one."""

    taken: bool = True
    checked: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    checks: int = 0

    def free_in(self, started: int) -> float:
        self.checks += 1
        self.checked.put_nowait(None)
        return super().free_in(started) if self.checks == 1 or not self.taken else 0.001


async def test_a_call_waits_again_if_a_synchronous_call_has_taken_its_slot(tmp_path: Path) -> None:
    """If the call did not wait again, it would have no position in the queue, and its lease would expire."""

    async def fetch(_: Target) -> Served:
        return Served({"a": 1})

    slot = TakenSlot()
    async with running(tmp_path, fetch, slot) as process:
        call = await process.accept()
        for _ in range(3):
            await slot.checked.get()  # before the claim, after the claim, and when the call waits again
        found = await process.find(call)
        assert found is not None
        assert (found.call.state, found.position) == ("waiting", 1)
        slot.taken = False
        assert (await process.done(call)).call.code == "OK"


@pytest.mark.parametrize(
    ("module", "step"), [(leases, "claim"), (stored, "load"), (stored, "unfinished"), (stored, "delete_expired")]
)
async def test_an_unexpected_exception_does_not_stop_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, step: str
) -> None:
    raised = asyncio.Event()
    loop = asyncio.get_running_loop()
    work = getattr(module, step)

    def fail_once(*args: Any, **values: Any) -> Any:
        if not raised.is_set():
            loop.call_soon_threadsafe(raised.set)
            raise ZeroDivisionError
        return work(*args, **values)

    async def fetch(_: Target) -> Served:
        if step == "unfinished":
            await raised.wait()
        return Served({"a": 1})

    monkeypatch.setattr(module, step, fail_once)
    async with running(tmp_path, fetch) as process:
        call = await process.accept()
        done = asyncio.ensure_future(process.done(call))
        await raised.wait()
        assert (await done).call.code == "OK"
        assert (await process.done(await process.accept(elsewhere=True))).call.code == "OK"


async def test_a_running_call_that_its_process_claims_again_is_not_run_twice_at_once(tmp_path: Path) -> None:
    """The lease expires while the store is down. A second target with the same id would be an internal error."""
    in_progress: list[str] = []
    started, respond = asyncio.Event(), asyncio.Event()

    async def fetch(target: Target) -> Served:
        assert target.id not in in_progress
        in_progress.append(target.id)
        started.set()
        try:
            await respond.wait()
        finally:
            in_progress.remove(target.id)
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        call = await process.accept()
        await started.wait()
        back = "UPDATE targets SET state = 'waiting'; UPDATE jobs SET waiting = 1, running = 0"
        with closing(sqlite3.connect(process.store.location, timeout=30)) as database:
            database.executescript(f"BEGIN IMMEDIATE; {back}; COMMIT")
        while await tries(process) < 2:  # noqa: ASYNC110  # the store has no event
            await asyncio.sleep(0.01)
        respond.set()
        assert (await process.done(call)).call.code == "OK"
        assert process.usage() == [("OK", 1, 1)]


async def tries(process: Process) -> int:
    ((number,),) = await process.store.transact(lambda session: session.rows("SELECT tries FROM targets"))
    return int(number)


async def test_a_deleted_call_is_cancelled_while_it_runs(tmp_path: Path) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def fetch(_: Target) -> Served:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async with running(tmp_path, fetch) as process:
        call = await process.accept()
        await started.wait()
        # Deleted only in the store, as by another process, which cannot cancel the task.
        await process.store.transact(lambda session: stored.delete(session, "acme", call.request_id))
        await cancelled.wait()
        assert await process.find(call) is None
        assert process.usage() == [("CLIENT_GONE", 1, 0)]


async def test_a_response_is_stored_when_the_store_is_available_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.jobs.databases.BUSY_SECONDS", 0.3)
    fetched = asyncio.Event()
    locked = asyncio.Event()

    async def fetch(_: Target) -> Served:
        fetched.set()
        await locked.wait()
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        call = await process.accept()
        await fetched.wait()
        with closing(sqlite3.connect(process.store.location, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            writes = process.runs.jobs.writes
            failures = writes.failures
            while writes.failures < failures + 2:  # noqa: ASYNC110  # the store has no event
                await asyncio.sleep(0.01)
            other.execute("ROLLBACK")
        assert (await process.done(call)).call.code == "OK"
        assert process.usage() == [("OK", 1, 1)]


async def test_a_key_takes_its_places_only_while_its_calls_run(tmp_path: Path) -> None:
    running_clients: list[str] = []
    other_started = asyncio.Event()

    async def fetch(target: Target) -> Served:
        client = target.params.model_dump()["query"]
        assert client not in running_clients
        running_clients.append(client)
        if client == "other":
            other_started.set()
        await other_started.wait()  # a key that has reached its concurrency limit does not block the queue
        running_clients.remove(client)
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        calls = [await process.accept(client, concurrency=1) for client in ("acme", "acme", "acme", "other")]
        for call in calls:
            assert (await process.done(call)).call.code == "OK"
        assert process.usage() == [("OK", 4, 4)]


async def test_a_call_of_a_killed_process_is_run_by_another_one(tmp_path: Path) -> None:
    async def fetch(_: Target) -> Served:
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        process.runs.stop()  # it must not run the call first
        call = await process.accept()
        with closing(sqlite3.connect(process.store.location)) as database, database:
            database.execute(
                "UPDATE targets SET state = 'running', worker = 'killed', lease_until = ?", (time.time() - 1,)
            )
            database.execute("UPDATE jobs SET waiting = 0, running = 1")
    async with running(tmp_path, fetch) as process:
        assert (await process.done(call)).call.code == "OK"


async def test_at_12_hanging_calls_of_one_client_leave_a_slot_for_the_others(tmp_path: Path) -> None:
    hangs = asyncio.Event()

    async def fetch(target: Target) -> Served:
        if target.params.model_dump()["query"] == "busy":
            await hangs.wait()
        return Served({"a": 1})

    async with running(tmp_path, fetch, Slots(concurrency=3)) as process:
        busy = [await process.accept("busy") for _ in range(5)]
        for client in ("other", "third", "other"):
            assert (await process.done(await process.accept(client))).call.code == "OK"
        found = [await process.find(call) for call in busy]
        assert [each.call.state for each in found if each] == ["running"] * 2 + ["waiting"] * 3
        hangs.set()
        for call in busy:
            assert (await process.done(call)).call.code == "OK"


@pytest.mark.parametrize("hours", [26, -26])
async def test_at_10_a_jump_of_the_clock_ends_and_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Before the fix, a waiting call was ended as OVERLOADED, and billed responses were deleted."""
    passed = [0.0]
    clock = StoreTime(monotonic=lambda: 1_000 + passed[0])
    real = time.time()
    clock.observe(real)
    monkeypatch.setattr("crawler.jobs.clock.STORE_TIME", clock)
    monkeypatch.setattr("crawler.jobs.store.STORE_TIME", SimpleNamespace(is_due=False))
    for module in (asynchronous, runs):
        monkeypatch.setattr(module, "STORE_TIME", clock)

    async def fetch(target: Target) -> Served:
        if target.params.model_dump()["query"] == "waiting":
            raise Overloaded("Full.", retry_after=0)
        return Served({"a": 1})

    async with running(tmp_path, fetch) as process:
        done, waiting = await process.accept("done"), await process.accept("waiting")
        await process.done(done)
        for second in range(1, 16):
            passed[0] = second
            clock.observe(real + second + (hours * 3_600 if second <= 4 else 0))
            await asyncio.sleep(0.03)
            if second == 3:
                during = await process.accept("waiting", elsewhere=True)
        assert clock.is_steady
        assert abs(clock.now() - real - passed[0]) < 1
        found = [await process.find(each) for each in (done, waiting, during)]
        assert [each and each.call.code for each in found] == ["OK", None, None]
        assert all(found)


async def test_requests_stop_waiting_when_the_service_shuts_down(tmp_path: Path) -> None:
    async def fetch(_: Target) -> Served:
        raise Overloaded("Full.", retry_after=3_600)

    async with running(tmp_path, fetch) as process:
        call = await process.accept()
        waiting = asyncio.ensure_future(process.calls.wait(call, 3_600))
        await asyncio.sleep(0)
        process.calls.stop()
        await asyncio.wait_for(waiting, 30)
        await process.calls.wait(call, 3_600)


def test_the_waiting_time_is_estimated_from_the_budget_and_the_rest() -> None:
    crawlers = Crawlers(Slots(targets_per_second=0.5, usable_in=10))
    nothing = cast("Any", None)
    estimates = AsyncCalls(nothing, cast("Any", crawlers), nothing, nothing, SETTINGS)
    assert [estimates.seconds_until_done("retail", ahead) for ahead in (0, 9, None)] == [12, 30, 12]
    assert estimates.room("retail", None) == Room(1_795, seconds_per_call=2)


async def test_at_12_a_job_with_hanging_targets_leaves_a_slot_for_the_calls_of_others(tmp_path: Path) -> None:
    hangs = asyncio.Event()

    async def fetch(target: Target) -> Served:
        if target.params.model_dump()["query"].startswith("row"):
            await hangs.wait()
        return Served({"a": 1})

    async with running(tmp_path, fetch, Slots(concurrency=3)) as process:
        jobs = process.runs.jobs
        job = await jobs.create("job", "busy")
        lines = []
        for row in range(9):
            work: dict[str, Any] = {"id": str(row), "scraper": SEARCH.name, "params": {"query": f"row {row}"}}
            lines.append(InputLine(row, str(row), target_key(SEARCH.name, work["params"]), "retail", work))
        await jobs.push(job, lines)
        await jobs.open(job)
        while (await jobs.get(job.id)).counts["running"] < 2:  # type: ignore[union-attr]  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for _ in range(2):
            assert (await process.done(await process.accept("other"))).call.code == "OK"
        hangs.set()
