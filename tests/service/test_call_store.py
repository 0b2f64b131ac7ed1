"""The store of asynchronous calls (SQLite and PostgreSQL): clients take turns, leases, one response per call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import sqlalchemy as sa
from scrapy.settings import Settings

from crawler.errors import Overloaded, QuotaExceeded, ScrapeError, TargetNotFound, UpstreamRateLimited
from crawler.jobs import leases
from crawler.jobs.clock import store_time
from crawler.jobs.job import Claim, Stored
from crawler.jobs.leases import Holder as Worker
from crawler.jobs.leases import Skipped
from crawler.jobs.store import Session, Store
from crawler.registry import scrapers
from crawler.service.calls import once, stored
from crawler.service.calls.asynchronous import AsyncCalls
from crawler.service.calls.envelope import Served, new_request_id
from crawler.service.calls.once import Found
from crawler.service.calls.stored import FoundCall, Room, StoredCall
from crawler.service.clients import quotas
from crawler.service.clients.keys import Holder
from crawler.service.jobs.billing import store_bills
from crawler.targets.parser import check_params
from crawler.targets.target import Target
from crawler.targets.warning import OutcomeWarning

SEARCH = scrapers()["retail-search-v4"]
ROOM = Room(max_ahead=1_000)
SETTINGS = Settings({"CALL_MAX_HOURS": 1, "CALL_RESULT_HOURS": 1, "IDEMPOTENCY_HOURS": 1, "CALL_STORE_MB": 1_000})
PARTIAL = (OutcomeWarning("timeline", "EXTRACTION_FAILED", "stale_query_id"),)
PARTIAL_RECORD = Served({"a": 1}, warnings=PARTIAL)


@pytest.fixture(params=["sqlite", "postgresql"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that runs the function ``work`` in a transaction of an empty store, and returns its result."""
    location = str(tmp_path / "service.sqlite3")
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        name = f"calls_{new_request_id().lower()}"
        engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            # Not every database server sorts text by its bytes.
            locale = "template template0 locale_provider icu icu_locale 'en-US'"
            connection.exec_driver_sql(f'create database "{name}" {locale}')
        engine.dispose()
        location = server.replace("/postgres?", f"/{name}?")
    store = Store(location)
    yield lambda work, *args, **values: store.transact_sync(lambda session: work(session, *args, **values))
    store.disconnect()


def new(client: str = "acme", key: str | None = None, query: str = "mustard") -> tuple[StoredCall, once.Claim | None]:
    target = Target(new_request_id(), SEARCH, check_params(SEARCH, {"query": query}))
    call = StoredCall.new(target, Holder(client, f"key-{client}"), 3_600, cache_control=None, key=key)
    return call, None if key is None else once.Claim.make(key, client, target, 3_600)


def accepted(session: Callable[..., Any], client: str = "acme", key: str | None = None) -> StoredCall:
    found = session(stored.accept, *new(client, key), ROOM)
    assert isinstance(found, FoundCall)
    return found.call


def claimed(
    session: Callable[..., Any], owner: str = "one", *, lease: float = 60, n: int = 1, skipped: Skipped | None = None
) -> list[Claim]:
    """Claim calls as a process of the service does."""
    found: list[Claim] = session(leases.claim, Worker(owner, lease, 5), "retail", n, skipped or Skipped())
    return found


def complete(
    session: Callable[..., Any],
    claim: Claim,
    owner: str = "one",
    ending: ScrapeError | Served = PARTIAL_RECORD,
    settings: Settings = SETTINGS,
) -> str:
    calls = AsyncCalls(None, None, None, None, settings)  # type: ignore[arg-type]  # not used
    finished = calls.done(claim, ending) if isinstance(ending, Served) else calls.failed(claim, ending)
    worker = Worker(owner, 60, 5, also_store=store_bills)
    return str(session(leases.finish, worker, [Stored.of(finished)])[0][0])


def expire(session: Callable[..., Any]) -> None:
    session(leases.expire, Worker("other", 60, 5), lambda _: True)


def state(session: Callable[..., Any], call: StoredCall) -> str:
    return str(session(stored.find, call.client, call.request_id).call.state)


def rows(session: Session) -> list[Any]:
    return session.rows("SELECT client, code, calls, billable, partial FROM usage ORDER BY code")


def test_ids_sort_in_the_order_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids sort in this order even within a millisecond, and after the clock was set back."""
    start = time.time_ns()
    times = [start] * 100 + [start - 10**9] * 100 + [start + 10**9] * 100
    monkeypatch.setattr(time, "time_ns", iter(times).__next__)
    ids = [new_request_id() for _ in times]
    assert ids == sorted(set(ids))


def test_clients_take_turns(session: Callable[..., Any]) -> None:
    for client, number in (("busy", 6), ("small", 2), ("late", 1)):
        for _ in range(number):
            accepted(session, client)
        if client == "busy":
            assert claimed(session)
    order = []
    while claims := claimed(session):
        order.append(claims[0].owner)
    assert order == ["late", "small", "busy", "small", "busy", "busy", "busy", "busy"]


def test_at_12_clients_take_turns_in_a_single_slot(session: Callable[..., Any]) -> None:
    """Each call has ended before the next one is claimed."""
    for client in ("busy", "busy", "busy", "small", "small"):
        accepted(session, client)
    worker, order = Worker("one", 60, 5), []
    for _ in range(5):
        (claim,) = session(leases.claim, worker, "retail", 1, Skipped())
        complete(session, claim)
        order.append(claim.owner)
    assert order == ["busy", "small", "busy", "small", "busy"]


def test_calls_of_a_client_are_claimed_before_its_jobs_and_in_their_order(session: Callable[..., Any]) -> None:
    def make_job(session: Session) -> None:
        session.run(
            "INSERT INTO jobs (id, name, owner, state, whole_roots, options, created, waiting)"
            " VALUES (1000, 'a', 'acme', 'open', false, :none, 0, 1)",
            none=b"{}",
        )
        session.run(
            "INSERT INTO targets (job, key, row, platform, work, state)"
            " VALUES (1000, :key, 0, 'retail', :work, 'waiting')",
            key=b"x",
            work=b"{}",
        )

    session(make_job)
    calls = [accepted(session) for _ in range(2)]
    assert [claim.kind for claim in claimed(session, n=3)] == ["calls", "calls", "job"]
    assert [state(session, call) for call in calls] == ["running"] * 2


def test_a_claim_leaves_clients_and_jobs_waiting(session: Callable[..., Any]) -> None:
    busy, small = accepted(session, "busy"), accepted(session, "small")
    resting = Skipped(jobs=frozenset({small.job}))
    assert claimed(session, skipped=Skipped(frozenset({"busy"}), frozenset({small.job}))) == []
    assert [claim.key.decode() for claim in claimed(session, n=2, skipped=resting)] == [busy.request_id]


def test_a_stored_response_takes_at_most_5_kb_beside_its_record(session: Callable[..., Any]) -> None:
    """SP3-8: before, a response took 14.9 kB, because its record was stored again for the ``Idempotency-Key``."""
    products = [{"title": f"Mustard {number}", "price": number / 7, "id": hash((number, 1))} for number in range(300)]
    call = accepted(session, key="k")
    complete(session, claimed(session)[0], ending=Served({"products": products}))
    sizes = (
        "SELECT SUM(length(work) + length(outcome)), SUM(length(data)) FROM targets LEFT JOIN records USING (job, seq)"
    )
    ((beside, record),) = session(lambda session: session.rows(sizes))
    assert beside < 1_000
    assert record < len(orjson.dumps(products))
    data = orjson.loads(session(stored.find, "acme", call.request_id).answer("").body)["data"]
    assert data == {"products": products}
    repeated, again = new(key="k")
    replayed = session(stored.accept, repeated, again, ROOM).replayed(again)
    assert orjson.loads(orjson.dumps(replayed.data)) == data
    assert session(stored.load, ["retail"]) == ({("retail", "done"): 1}, 1_000 + record + _outcome_size(session))


def _outcome_size(session: Callable[..., Any]) -> int:
    return int(session(lambda session: session.rows("SELECT length(outcome) FROM targets"))[0][0])


def test_positions_follow_the_turns(session: Callable[..., Any]) -> None:
    made = [session(stored.accept, *new(client), ROOM) for client in ("busy", "busy", "small")]
    calls = [each.call for each in made]
    assert [each.position for each in made] == [1, 2, 2]
    found = [session(stored.find, call.client, call.request_id).position for call in calls]
    assert found == [1, 3, 2]
    claimed(session)
    assert state(session, calls[0]) == "running"
    assert session(stored.find, "busy", calls[0].request_id).position is None
    assert session(stored.find, "busy", calls[1].request_id).position == 1


def test_a_call_is_completed_and_billed_once(session: Callable[..., Any]) -> None:
    call = accepted(session)
    (claim,) = claimed(session, lease=-1)
    expire(session)
    (again,) = claimed(session, "two")
    assert (again.target, again.tries) == (claim.target, 2)
    assert complete(session, claim) == "lost"
    assert complete(session, again, "two") == "stored"
    assert complete(session, again, "two") == "already stored"
    assert session(rows) == [("acme", "OK", 1, 1, 1)]
    found = session(stored.find, "acme", call.request_id).answer("")
    assert found.headers["X-Partial"] == "timeline; reason=stale_query_id; code=EXTRACTION_FAILED"
    assert (found.status, found.code, orjson.loads(found.body)["data"]) == (200, "OK", {"a": 1})


def test_a_call_whose_workers_exited_is_billed_as_a_failure(session: Callable[..., Any]) -> None:
    call = accepted(session, key="k")
    claimed(session, lease=-1)
    session(leases.expire, Worker("of a user", 60, 0), lambda _: True)
    assert state(session, call) == "waiting", "it has no bills"
    claimed(session, lease=-1)
    session(leases.expire, Worker("other", 60, 0, owned_only=True, also_store=store_bills), lambda _: True)
    answer = session(stored.find, "acme", call.request_id).answer("")
    assert (answer.status, answer.code) == (500, "INTERNAL_ERROR")
    assert session(rows) == [("acme", "INTERNAL_ERROR", 1, 0, 0)]
    (entry,) = session(stored.page, "acme", "done", 10, None)["calls"]
    assert (entry["code"], entry["http_status"], entry["billable"]) == ("INTERNAL_ERROR", 500, False)
    assert isinstance(session(stored.accept, *new(key="k"), ROOM), FoundCall), "the key is free"


def test_a_stored_response_has_no_retry_after(session: Callable[..., Any]) -> None:
    """A client that followed ``Retry-After`` and repeated the ``GET`` would get the same stored response."""
    call = accepted(session)
    complete(session, claimed(session)[0], ending=UpstreamRateLimited("Slow down.", retry_after=60, reason="page"))
    answer = session(stored.find, "acme", call.request_id).answer("https://x")
    body = orjson.loads(answer.body)
    assert (answer.status, body["error"]["retry_after"], body["error"]["upstream"]["reason"]) == (503, 60, "page")
    assert body["error"]["doc_url"] == "https://x/docs#UPSTREAM_RATE_LIMITED"
    assert "Retry-After" not in answer.headers
    assert session(stored.find, "acme", call.request_id).answer("https://x") == answer


def test_a_deleted_call_is_not_billed(session: Callable[..., Any]) -> None:
    call = accepted(session, key="k")
    (claim,) = claimed(session)
    assert session(stored.delete, "other", call.request_id) is None
    assert session(stored.delete, "acme", call.request_id) == claim.target
    assert complete(session, claim) == "lost"
    assert session(rows) == [("acme", "CLIENT_GONE", 1, 0, 0)]
    assert isinstance(session(stored.accept, *new(key="k", query="other"), ROOM), FoundCall), "the key is free"


def test_an_idempotency_key_is_kept_for_a_record_and_free_after_a_failure(session: Callable[..., Any]) -> None:
    for error in (None, TargetNotFound("It does not exist.")):
        call = accepted(session, key="k")
        assert isinstance(session(stored.accept, *new(key="k"), ROOM), Found)
        assert complete(session, claimed(session)[0], ending=error or PARTIAL_RECORD) == "stored"
        repeated, again = new(key="k")
        found = session(stored.accept, repeated, again, ROOM)
        assert again is not None
        if error is None:
            assert isinstance(found, Found)
            assert (found.owner, found.replayed(again).warnings) == (call.request_id, PARTIAL)
            session(stored.delete, "acme", call.request_id)
        else:
            assert isinstance(found, FoundCall)


def test_a_refused_call_leaves_nothing(session: Callable[..., Any]) -> None:
    accepted(session)
    for room, message, seconds in (
        (Room(0, seconds_per_call=30), "1 calls of retail are waiting", 60),
        (Room(10, is_full=True), "The stored calls have reached their maximum size", 600),
    ):
        refused = session(stored.accept, *new(key="refused"), room)
        assert isinstance(refused, Overloaded)
        assert refused.message.startswith(message)
        assert refused.retry_after == seconds
    assert session(stored.page, "acme", None, 100, None)["counts"]["waiting"] == 1
    assert isinstance(session(stored.accept, *new(key="refused"), ROOM), FoundCall), "the key is free"


def test_a_call_that_is_not_done_counts_as_a_reservation_of_the_quota(session: Callable[..., Any]) -> None:
    room = replace(ROOM, quota=2)

    def used() -> tuple[int, int]:
        found = session(quotas.report, "acme", 2)
        return found["used"], found["reserved"]

    first, second = (session(stored.accept, *new(), room).call for _ in range(2))
    assert used() == (0, 2)
    assert isinstance(session(stored.accept, *new(key="third"), room), QuotaExceeded)
    assert isinstance(session(stored.accept, *new("other"), room), FoundCall), "quotas are the clients' own"
    session(stored.delete, "acme", second.request_id)
    assert used() == (0, 1)
    claims = claimed(session, n=2)
    complete(session, next(claim for claim in claims if claim.key.decode() == first.request_id))
    assert used() == (1, 0)
    session(stored.accept, *new(key="third"), room)
    complete(session, claimed(session)[0], ending=TargetNotFound("gone"))
    assert used() == (1, 0)


def test_a_released_call_keeps_its_turn(session: Callable[..., Any]) -> None:
    first, second = accepted(session), accepted(session)
    (claim,) = claimed(session)
    session(leases.release, Worker("other", 60, 5), [claim])
    assert state(session, first) == "running", "another process has it"
    session(leases.release, Worker("one", 60, 5), [claim])
    (again,) = claimed(session)
    assert again.key.decode() == first.request_id
    session(leases.release, Worker("one", 60, 5), [again], store_time() + 100)
    assert [each.key.decode() for each in claimed(session, n=2)] == [second.request_id]
    assert state(session, first) == "waiting"


def test_a_clock_that_was_set_back_holds_no_call(session: Callable[..., Any]) -> None:
    accepted(session)
    session(leases.release, Worker("one", 60, 5), claimed(session), store_time() + 3_600)
    assert claimed(session)


def test_the_list_has_all_calls_page_by_page(session: Callable[..., Any]) -> None:
    calls = [accepted(session).request_id for _ in range(3)]
    newest = session(stored.page, "acme", None, 2, None)
    assert [call["request_id"] for call in newest["calls"]] == sorted(calls)[:0:-1]
    oldest = session(stored.page, "acme", "waiting", 2, newest["next_cursor"])
    assert [call["request_id"] for call in oldest["calls"]] == [min(calls)]
    assert oldest["next_cursor"] is None


def test_an_expired_call_is_ended_and_not_run(session: Callable[..., Any]) -> None:
    session(stored.accept, replace(new()[0], expires=store_time() - 1), None, ROOM)
    assert claimed(session) == []
    (late,) = session(leases.claim_late, Worker("one", 60, 5), 10)
    assert complete(session, late, ending=TargetNotFound("It waited for too long.")) == "stored"
    assert session(rows) == [("acme", "TARGET_NOT_FOUND", 1, 0, 0)]


def test_expired_responses_are_deleted_and_not_found(session: Callable[..., Any]) -> None:
    call, waiting = accepted(session), accepted(session)
    complete(session, claimed(session)[0], settings=Settings({"CALL_RESULT_HOURS": -1}))
    assert session(stored.find, "acme", call.request_id) is None
    assert session(stored.delete, "acme", call.request_id) is None
    assert session(stored.delete_expired, 10) == 1
    assert session(stored.load, ["retail"]) == ({("retail", "waiting"): 1, ("retail", "done"): 0}, 1_000)
    assert session(lambda session: session.rows("SELECT COUNT(*) FROM records")) == [(0,)]
    assert state(session, waiting) == "waiting"
