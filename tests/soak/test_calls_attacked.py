"""Calls under attack: no record is delivered without being billed, and no client waits for another's hanging calls."""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawler.service.clients.key_store import KeyStore
from tests.crawls import sandbox
from tests.service.client import HEADERS, SEARCH, call
from tests.service.conftest import running
from tests.soak import faults
from tests.soak.fleet import Fleet, serve, wait_for

ABORTED = 300
HANGING = 40
HANG = "from crawler.sandbox import faults; faults.SLOW_SECONDS = 60"

RACING = 600
CONNECTIONS = 100
QUOTA = 250
ASYNCHRONOUS = 390
FAULTS = ("locked", "full", "killed", "locked", "killed", "full")
"""The faults that happen while calls wait and run, at equal intervals of completed calls."""
FAULT_SECONDS = 4
SLOW_BUDGET = {"retail": {"concurrency": 16, "delay": 0.08}}
"""Slow enough that calls are still waiting and running when the last fault begins."""

pytestmark = pytest.mark.soak


def abort(url: str, number: int, seconds: float) -> None:
    """Make a call with an ``Idempotency-Key``, and disconnect after ``seconds``, around the time of its storing."""
    with closing(http.client.HTTPConnection(urlsplit(url).netloc)) as connection:
        body = json.dumps({"query": f"mustard {number}"})
        connection.request("POST", SEARCH, body, {**HEADERS, "Idempotency-Key": f"k{number}"})
        time.sleep(seconds)


def billable(url: str) -> int:
    return int(call(url, "/v1/usage", method="GET").body["billable"])


def test_at_1_no_record_is_free(tmp_path: Path) -> None:
    """Before the fix, 26 of 233 records were stored but not billed."""
    with running(tmp_path / "log") as service:
        begin = time.monotonic()
        call(service.url, SEARCH, {"query": "mustard"})
        usual = time.monotonic() - begin
        for number in range(ABORTED):
            abort(service.url, number, usual * (number % 30) / 15)
        time.sleep(2)
        billed = billable(service.url) - 1
        replayed = 0
        for number in range(ABORTED):
            headers = {**HEADERS, "Idempotency-Key": f"k{number}"}
            again = call(service.url, SEARCH, {"query": f"mustard {number}"}, headers=headers)
            assert again.status == 200
            replayed += "idempotent-replayed" in again.headers
        assert billable(service.url) - 1 == billed + ABORTED - replayed
    sys.stdout.write(f"{replayed} of {ABORTED} aborted calls had stored their record, {billed} were billed\n")
    assert 0 < replayed < ABORTED
    assert billed == replayed


def test_at_12_hanging_calls_of_one_client_delay_no_other(tmp_path: Path) -> None:
    """Before the fix, another client waited for 200 s."""
    keys = KeyStore(tmp_path / "keys.sqlite")
    busy, other = ({**HEADERS, "X-API-Key": keys.create(name)} for name in ("busy", "other"))
    settings = (f"KEYS_FILE={keys.path}", "SANDBOX=1", "DOWNLOAD_TIMEOUT=90")
    with running(tmp_path / "log", *settings, sandbox=False, before=HANG) as service:
        for page in range(1, HANGING + 1):
            hanging = {"query": "slow", "page": page}
            assert call(service.url, SEARCH, hanging, headers={**busy, "Prefer": "respond-async"}).status == 202
        time.sleep(3)
        begin = time.monotonic()
        reply = call(service.url, SEARCH, {"query": "mustard"}, headers={**other, "Prefer": "respond-async, wait=30"})
        seconds = time.monotonic() - begin
    sys.stdout.write(f"The other client waited for {seconds:.2f} s\n")
    assert reply.status == 200


def test_at_1_a_quota_is_exact_over_racing_calls(tmp_path: Path) -> None:
    """Calls with and without an ``Idempotency-Key`` and asynchronous calls compete for one quota in two processes."""
    keys = KeyStore(tmp_path / "keys.sqlite")
    headers = {**HEADERS, "X-API-Key": keys.create("acme", quota=QUOTA)}
    kinds: tuple[dict[str, str], ...] = ({}, {"Idempotency-Key": "k"}, {"Prefer": "respond-async, wait=60"})
    with ExitStack() as stack:
        settings = [f"{name}={value}" for name, value in stack.enter_context(sandbox("--light")).items()]
        settings += [f"KEYS_FILE={keys.path}", "BREAKER_THRESHOLD=0"]
        service = stack.enter_context(running(tmp_path / "log", *settings, sandbox=False, workers=2))

        def racing(number: int) -> str:
            own = {name: text + str(number) * (text == "k") for name, text in kinds[number % len(kinds)].items()}
            reply = call(service.url, SEARCH, {"query": f"mustard {number}"}, headers=headers | own)
            return reply.code

        with ThreadPoolExecutor(CONNECTIONS) as threads:
            codes = Counter(threads.map(racing, range(RACING)))
        time.sleep(2)
        usage = call(service.url, "/v1/usage", method="GET", headers=headers).body
        errors = service.logged().count("Traceback")
    sys.stdout.write(f"{dict(codes)}, {usage['quota']}\n")
    assert codes == {"OK": QUOTA, "QUOTA_EXCEEDED": RACING - QUOTA}
    assert (usage["billable"], usage["quota"]["used"], usage["quota"]["reserved"]) == (QUOTA, QUOTA, 0)
    assert errors == 0


@pytest.mark.skipif(not faults.can_mount(), reason="needs the right to mount a file system")
def test_calls_through_faults_have_one_outcome_and_one_bill_each(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.sqlite")
    with ExitStack() as stack:
        folder = stack.enter_context(faults.small_disk(tmp_path / "files", megabytes=48))
        store = folder / "service.sqlite3"
        settings = [f"{name}={value}" for name, value in stack.enter_context(sandbox("--light")).items()]
        settings += [f"KEYS_FILE={keys.path}", f"STORE={store}", f"PLATFORM_BUDGETS={json.dumps(SLOW_BUDGET)}"]
        fleet = Fleet(tmp_path, tuple(settings), {"acme": keys.create("acme", quota=10 * ASYNCHRONOUS)})
        threads = stack.enter_context(ThreadPoolExecutor(9))
        made = [
            threads.submit(fleet.accept, "acme", number, SEARCH.rpartition("/")[2], {"query": f"mustard {number}"})
            for number in range(ASYNCHRONOUS)
        ]
        unfinished = []
        service = stack.enter_context(serve(fleet))
        for number, fault in enumerate(FAULTS, 1):
            wait_for(fleet, ASYNCHRONOUS * number // (len(FAULTS) + 1))
            unfinished.append(ASYNCHRONOUS - fleet.counts("acme")["done"])
            if fault == "killed":
                service.process.kill()
                service = stack.enter_context(serve(fleet))
            else:
                end = faults.FAULTS[fault](store)
                time.sleep(FAULT_SECONDS)
                end()
        ids = [each.result() for each in made]
        wait_for(fleet, ASYNCHRONOUS)
        calls = [*fleet.calls("acme")]
        usage = fleet.send("acme", "GET", "/v1/usage").body
        tracebacks = sum(log.read_text().count("Traceback") for log in tmp_path.glob("log-*"))
    codes = Counter(each["code"] for each in calls)
    sys.stdout.write(f"{unfinished} calls to do at the faults; {dict(codes)}, {usage['billable']} billed\n")
    assert all(unfinished), "each fault begins while calls wait or run"
    assert Counter(each["request_id"] for each in calls) == Counter(dict.fromkeys(ids, 1)), "none lost, none twice"
    assert all(each["billable"] is (each["code"] == "OK") for each in calls)
    outcomes = Counter({code: number for row in usage["usage"] for code, number in row["outcomes"].items()})
    assert outcomes == codes
    assert usage["billable"] == usage["quota"]["used"] == codes["OK"]
    assert usage["quota"]["reserved"] == 0
    assert codes["OK"] >= 0.95 * ASYNCHRONOUS
    assert tracebacks == 0
