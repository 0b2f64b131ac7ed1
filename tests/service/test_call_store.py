"""The store of asynchronous calls on SQLite and PostgreSQL: turns, leases, and exactly one response."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import sqlalchemy as sa

from crawler.errors import ScrapeError, TargetNotFound, UpstreamRateLimited
from crawler.jobs.store import Session, Store
from crawler.jobs.tables import SCHEMA
from crawler.registry import scrapers
from crawler.service.calls import call_leases, call_store
from crawler.service.calls.call_leases import Result
from crawler.service.calls.call_store import CallSettings, FoundCall, Refused, Room, StoredCall
from crawler.service.calls.envelope import Served, failure, new_request_id, success
from crawler.service.calls.idempotency import Claim, Found
from crawler.service.clients import quotas
from crawler.service.clients.keys import Holder
from crawler.targets.target import Target, check_params
from crawler.targets.warning import OutcomeWarning

SEARCH = scrapers()["retail-search-v4"]
ROOM = Room(max_ahead=1_000)
SETTINGS = CallSettings(max_seconds=3_600, result_seconds=3_600, idempotency_seconds=3_600, max_bytes=10**9)
FOREVER = 1e12
PARTIAL = (OutcomeWarning("timeline", "EXTRACTION_FAILED", "stale_query_id"),)


@pytest.fixture(params=["sqlite", "postgresql"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Run a function of the store in a transaction."""
    location = str(tmp_path / "service.sqlite3")
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        name = f"calls_{new_request_id().lower()}"
        engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            # Not every server sorts texts by their bytes.
            locale = "template template0 locale_provider icu icu_locale 'en-US'"
            connection.exec_driver_sql(f'create database "{name}" {locale}')
        engine.dispose()
        location = server.replace("/postgres?", f"/{name}?")
    store = Store(location, SCHEMA)
    yield lambda work, *args, **values: store.transact_sync(lambda session: work(session, *args, **values))
    store.disconnect()


def new(client: str = "acme", key: str | None = None, query: str = "mustard") -> tuple[StoredCall, Claim | None]:
    target = Target(new_request_id(), SEARCH, check_params(SEARCH, {"query": query}))
    call = StoredCall.new(target, Holder(client, f"key-{client}"), 3_600, cache_control=None, key=key)
    return call, None if key is None else Claim.make(key, client, target, 3_600)


def accepted(session: Callable[..., Any], client: str = "acme", key: str | None = None) -> StoredCall:
    stored = session(call_store.accept, *new(client, key), ROOM)
    assert isinstance(stored, FoundCall)
    return stored.call


def answer(call: StoredCall, error: ScrapeError | None = None) -> Result:
    if error is not None:
        return Result(failure(call.call(""), error))
    served = Served({"a": 1}, warnings=PARTIAL)
    return Result(success(call.call(""), served), b'{"a":1}', PARTIAL)


def rows(session: Session) -> list[Any]:
    return session.rows("SELECT client, code, calls, billable, partial FROM usage ORDER BY code")


def claimed(session: Callable[..., Any], owner: str = "one", lease: float = FOREVER) -> StoredCall | None:
    found: StoredCall | None = session(call_leases.claim, "retail", owner, lease)[0]
    return found


def test_ids_sort_in_the_order_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within a millisecond, and after the clock was set back."""
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
            assert claimed(session) is not None
    order = []
    while (call := claimed(session)) is not None:
        order.append(call.client)
    assert order == ["busy", "small", "late", "busy", "small", "busy", "busy", "busy"]


def test_a_claim_finds_whether_other_calls_can_be_claimed(session: Callable[..., Any]) -> None:
    calls = [accepted(session, client) for client in ("busy", "busy", "small")]
    claims = [session(call_leases.claim, "retail", "one", FOREVER) for _ in range(2)]
    assert claims == [(replace(calls[0], state="running"), True), (replace(calls[2], state="running"), True)]
    assert session(call_leases.claim, "retail", "one", FOREVER, {"busy"}) == (None, False)
    assert session(call_leases.claim, "retail", "one", FOREVER) == (replace(calls[1], state="running"), False)


def test_a_stored_response_takes_at_most_5_kb_beside_its_record(session: Callable[..., Any]) -> None:
    """SP3-8: 14.9 kB, most of it the record itself, which is also stored for its ``Idempotency-Key``."""
    products = [{"title": f"Mustard {number}", "price": number / 7, "id": hash((number, 1))} for number in range(300)]
    data = orjson.dumps({"products": products})
    call = accepted(session, key="k")
    assert claimed(session) is not None
    result = Result(success(call.call(""), Served(orjson.Fragment(data))), data)
    session(call_leases.complete, call, "one", result, SETTINGS)
    sizes = "SELECT length(body), (SELECT length(data) FROM idempotency) FROM calls"
    ((body, kept),) = session(lambda session: session.rows(sizes))
    assert body + kept < len(data) + 5_000
    assert session(call_store.find, "acme", call.request_id).answer.body == result.answer.body
    replayed = session(call_store.accept, *new(key="k"), ROOM).replayed()
    assert orjson.dumps(replayed.data) == data


def test_positions_follow_the_turns(session: Callable[..., Any]) -> None:
    stored = [session(call_store.accept, *new(client), ROOM) for client in ("busy", "busy", "small")]
    calls = [each.call for each in stored]
    assert [each.position for each in stored] == [1, 2, 2]
    found = [session(call_store.find, call.client, call.request_id).position for call in calls]
    assert found == [1, 3, 2]
    assert claimed(session) == replace(calls[0], state="running")
    assert session(call_store.find, "busy", calls[0].request_id).position is None
    assert session(call_store.find, "busy", calls[1].request_id).position == 2


def test_a_call_is_completed_and_billed_once(session: Callable[..., Any]) -> None:
    accepted(session)
    call = claimed(session, lease=0.0)
    assert call is not None
    session(call_leases.clean_up)  # the lease has expired
    again = claimed(session, "two")
    assert again == call
    assert not session(call_leases.complete, call, "one", answer(call), SETTINGS), "it has lost the call"
    assert session(call_leases.complete, call, "two", answer(call), SETTINGS)
    assert not session(call_leases.complete, call, "two", answer(call), SETTINGS)
    assert session(rows) == [("acme", "OK", 1, 1, 1)]
    found = session(call_store.find, "acme", call.request_id)
    assert found.answer.headers["X-Partial"] == "timeline; reason=stale_query_id; code=EXTRACTION_FAILED"
    assert (found.answer.status, found.answer.code) == (200, "OK")


def test_a_stored_response_has_no_retry_after(session: Callable[..., Any]) -> None:
    """A client that read it as a reason to repeat the ``GET`` would get the same response."""
    call = accepted(session)
    assert claimed(session) is not None
    limited = answer(call, UpstreamRateLimited("Slow down.", retry_after=60))
    assert limited.answer.headers["Retry-After"] == "60"
    session(call_leases.complete, call, "one", limited, SETTINGS)
    stored = session(call_store.find, "acme", call.request_id).answer
    assert stored.headers == {name: text for name, text in limited.answer.headers.items() if name != "Retry-After"}


def test_a_renewed_lease_does_not_expire(session: Callable[..., Any]) -> None:
    call = accepted(session)
    assert claimed(session, lease=0.0) is not None
    session(call_leases.renew, "one", [call.request_id], FOREVER)
    session(call_leases.clean_up)
    assert claimed(session, "two") is None
    assert session(call_leases.pending, "one", ["retail"]).owned == {call.request_id}


def test_a_deleted_call_is_not_billed(session: Callable[..., Any]) -> None:
    call = accepted(session, key="k")
    assert claimed(session) is not None
    assert session(call_store.delete, "other", call.request_id) is False
    assert session(call_store.delete, "acme", call.request_id) is True
    assert not session(call_leases.complete, call, "one", answer(call), SETTINGS)
    assert session(rows) == [("acme", "CLIENT_GONE", 1, 0, 0)]
    assert isinstance(session(call_store.accept, *new(key="k", query="other"), ROOM), FoundCall), "the key is free"


def test_an_idempotency_key_is_kept_for_a_record_and_free_after_a_failure(session: Callable[..., Any]) -> None:
    for error in (None, TargetNotFound("It does not exist.")):
        call = accepted(session, key="k")
        assert isinstance(session(call_store.accept, *new(key="k"), ROOM), Found)
        assert claimed(session) is not None
        assert session(call_leases.complete, call, "one", answer(call, error), SETTINGS)
        again = session(call_store.accept, *new(key="k"), ROOM)
        if error is None:
            assert isinstance(again, Found)
            assert (again.owner, again.replayed().warnings) == (call.request_id, PARTIAL)
            session(call_store.delete, "acme", call.request_id)
        else:
            assert isinstance(again, FoundCall)


def test_a_refused_call_leaves_nothing(session: Callable[..., Any]) -> None:
    accepted(session)
    for room, refused in ((Room(0), Refused(1)), (Room(10, is_full=True), Refused())):
        assert session(call_store.accept, *new(key="refused"), room) == refused
    assert session(call_store.page, "acme", None, 100, None)["counts"]["waiting"] == 1
    assert isinstance(session(call_store.accept, *new(key="refused"), ROOM), FoundCall), "the key is free"


def test_an_accepted_call_has_a_reservation_of_the_quota(session: Callable[..., Any]) -> None:
    """It has the reservation until it is done or deleted. A refused call has none."""
    room = replace(ROOM, quota=2, reserved_until=FOREVER)

    def state() -> tuple[int, int]:
        found = session(quotas.report, "acme", 2)
        return found["used"], found["reserved"]

    first, second = (session(call_store.accept, *new(), room).call for _ in range(2))
    assert state() == (0, 2)
    assert session(call_store.accept, *new(key="third"), room) == Refused(quota=2)
    assert isinstance(session(call_store.accept, *new("other"), room), FoundCall), "quotas are the clients' own"
    session(call_store.delete, "acme", second.request_id)
    assert state() == (0, 1)
    assert claimed(session) == replace(first, state="running")
    session(call_leases.complete, first, "one", answer(first), SETTINGS)
    assert state() == (1, 0)
    failed = session(call_store.accept, *new(key="third"), room).call
    assert claimed(session, "two") is not None, "the other client's call"
    assert claimed(session) is not None
    session(call_leases.complete, failed, "one", answer(failed, TargetNotFound("gone")), SETTINGS)
    assert state() == (1, 0)


def test_a_put_back_call_keeps_its_turn(session: Callable[..., Any]) -> None:
    first, second = accepted(session), accepted(session)
    call = claimed(session)
    assert call is not None
    session(call_leases.put_back, call, "other", 0.0)
    assert session(call_store.find, "acme", call.request_id).call.state == "running", "another process has it"
    session(call_leases.put_back, call, "one", 0.0)
    assert claimed(session) == call
    session(call_leases.put_back, call, "one", time.time() + 100)
    assert claimed(session) == replace(second, state="running")
    assert first.turn < second.turn
    assert claimed(session) is None


def test_a_key_with_its_maximum_of_calls_does_not_stop_the_queue(session: Callable[..., Any]) -> None:
    accepted(session, "full"), accepted(session, "full")
    other = accepted(session, "other")
    session(call_leases.hold_key, "key-full", time.time() + 100)
    assert claimed(session) == replace(other, state="running")
    assert claimed(session) is None
    assert session(call_leases.pending, "one", ["retail"]).platforms == ()


def test_a_clock_that_was_set_back_holds_no_call(session: Callable[..., Any]) -> None:
    """The call was accepted an hour later than now."""
    call = session(call_store.accept, replace(new()[0], accepted=time.time() + 3_600), None, ROOM).call
    assert session(call_leases.pending, "one", ["retail"]).platforms == ("retail",)
    assert claimed(session) == replace(call, state="running")


def test_the_list_has_all_calls_page_by_page(session: Callable[..., Any]) -> None:
    calls = [accepted(session).request_id for _ in range(3)]
    newest = session(call_store.page, "acme", None, 2, None)
    assert [call["request_id"] for call in newest["calls"]] == sorted(calls)[:0:-1]
    oldest = session(call_store.page, "acme", "waiting", 2, newest["next_cursor"])
    assert [call["request_id"] for call in oldest["calls"]] == [min(calls)]
    assert oldest["next_cursor"] is None


def test_an_expired_call_is_not_run(session: Callable[..., Any]) -> None:
    """Its answer of the quota may be reserved by another call by now, and its ``Idempotency-Key`` used by one."""
    session(call_store.accept, replace(new()[0], expires=time.time() - 1), None, ROOM)
    assert session(call_leases.pending, "one", ["retail"]).platforms == ()
    assert claimed(session) is None
    assert session(call_leases.claim_expired, "one", FOREVER) is not None


def test_expired_calls_are_ended_and_expired_responses_deleted(session: Callable[..., Any]) -> None:
    late = session(call_store.accept, replace(new()[0], expires=0.0), None, ROOM).call
    assert session(call_leases.pending, "one", ["retail"]).expired
    assert session(call_leases.claim_expired, "one", FOREVER) == replace(late, state="running")
    assert session(call_leases.complete, late, "one", answer(late), replace(SETTINGS, result_seconds=-1))
    assert session(call_store.find, "acme", late.request_id) is None
    assert session(call_leases.pending, "one", ["retail"]).lost
    session(call_leases.clean_up)
    assert session(call_leases.load) == ({}, 0)
