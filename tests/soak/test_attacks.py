"""The service under the attacks in ``attacks.py``: memory, ``/healthz``, typed responses and exact counts."""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawler.service.keys import KeyStore
from tests.crawls import sandbox
from tests.service.conftest import running
from tests.service.metrics_of import value
from tests.shop import open_shop
from tests.soak import attacks, faults
from tests.soak.attacks import Victim

SECONDS = float(os.environ.get("SOAK_FAULT_SECONDS", "30"))
WORKER_MINUTES = float(os.environ.get("SOAK_WORKER_MINUTES", "10"))
HEALTH_SECONDS = float(os.environ.get("SOAK_HEALTH_SECONDS", "0.25"))
"""``/healthz`` must respond within this time. Set a higher limit if the machine is busy with other work."""

pytestmark = pytest.mark.soak


@pytest.fixture(autouse=True)
def many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, hard), hard))


@pytest.mark.parametrize(
    ("attack", "megabytes"),
    [
        (attacks.pipelined_unread, 60),
        (attacks.slow_connections, 20),
        (attacks.idle_connections, 60),
        (attacks.wrong_keys, 20),
    ],
)
def test_the_service_withstands(tmp_path: Path, attack: Callable[[Victim], attacks.Report], megabytes: int) -> None:
    with running(tmp_path / "log") as service:
        victim = Victim(service.url, service.pid)
        for _ in range(3):
            attacks.get(victim, attacks.LARGEST_FILE)
            attacks.call(victim, {"query": "mustard"})
        report = attack(victim)
        assert "Traceback" not in service.logged()
    assert report.grown <= megabytes
    assert report.megabytes_after - report.megabytes_before <= 20
    assert report.slowest_health <= HEALTH_SECONDS
    assert report.notes.get("open", 0) == 0, "no slow connection is open after 20 seconds"
    assert set(report.codes()) <= {"OK"}, "the calls of another client"
    assert set(report.notes.get("statuses", [401])) == {401}


@pytest.mark.parametrize("fault", faults.FAULTS)
@pytest.mark.parametrize("store", ["keys", "service"])
def test_a_store_has_a_fault(tmp_path: Path, store: str, fault: str) -> None:
    if fault in faults.NEED_MOUNT and not faults.can_mount():
        pytest.skip("needs the right to mount a file system")
    with ExitStack() as stack:
        folder = tmp_path / "files"
        folder.mkdir()
        if fault in faults.NEED_MOUNT:
            stack.enter_context(faults.small_disk(folder))
        keys, path = folder / "keys.sqlite", folder / "service.sqlite3"
        key = KeyStore(keys).create("acme")
        platform = stack.enter_context(open_shop())
        service = stack.enter_context(
            running(
                tmp_path / "log",
                f"KEYS_FILE={keys}",
                f"STORE={path}",
                f'PLATFORM_ORIGINS={{"retail": "{platform.origin}"}}',
                'PLATFORM_BUDGETS={"retail": {"concurrency": 16, "delay": 0}}',
                sandbox=False,
            )
        )
        victim = Victim(service.url, service.pid, key)
        attacks.call(victim, {"query": "mustard"})
        broken = keys if store == "keys" else path
        report, load = attacks.under_fault(victim, lambda: faults.FAULTS[fault](broken), seconds=SECONDS)
        time.sleep(2)
        usage = attacks.usage_of(victim)
        assert max(seconds for _, seconds in report.calls) <= load.wait + 1
        assert set(report.codes()) <= {"OK", "STORE_UNAVAILABLE"}
        assert report.slowest_health <= HEALTH_SECONDS
        assert usage["pending"] == 0
        received = Counter(code for code, _ in load.usage)
        stored = Counter({code: n for row in usage["usage"] for code, n in row["outcomes"].items()})
        stored["OK"] -= 1  # the call made before the load
        lost = store == "service" and fault in faults.LOSE_DATA
        if lost:
            assert sum(stored.values()) < sum(received.values())
            assert value(victim.url, "crawler_store_losses_total", store="service") == 1
            assert "event=store_lost" in service.logged()
            before = usage["calls"]
            load.run(2)
            time.sleep(2)
            assert attacks.usage_of(victim)["calls"] - before == sum(1 for _ in load.usage) - received.total()
        else:
            assert stored == received
            assert usage["billable"] - 1 == sum(billable for _, billable in load.usage)
        if not (store == "keys" and fault in {"full", "read_only"}):
            assert value(victim.url, "crawler_store_failures_total", store=store) or lost
        assert "Traceback" not in service.logged()


def test_every_call_is_accounted_for_while_workers_are_killed(tmp_path: Path) -> None:
    keys = tmp_path / "keys.sqlite"
    key = KeyStore(keys).create("acme")
    with (
        sandbox("--light") as platforms,
        running(
            tmp_path / "log",
            f"KEYS_FILE={keys}",
            *(f"{name}={value}" for name, value in (platforms | {"BREAKER_THRESHOLD": 0}).items()),
            sandbox=False,
            workers=2,
        ) as service,
    ):
        victim = Victim(service.url, service.pid, key)
        load, kills = attacks.killed_workers(victim, minutes=WORKER_MINUTES)
        time.sleep(3)
        usage = attacks.usage_of(victim)
        sums = Counter({code: int(attacks.calls_counted(victim, code)) for code in attacks.KNOWN_CODES})
        log = service.logged()
    answered = Counter(code for code, _ in load.usage)
    without_answer = load.sent - answered.total()
    assert load.ordinary.count("OK") >= 0.9 * len(load.ordinary), Counter(load.ordinary)
    assert set(answered) <= attacks.KNOWN_CODES
    assert answered["INTERNAL_ERROR"] == 0
    assert "Traceback" not in log
    assert log.count("event=worker_exited") == len(kills)
    # The metrics count each call with a response, and may also count calls whose client got none.
    assert all(sums[code] >= number for code, number in answered.items()), (sums, answered)
    assert answered.total() <= sums.total() <= answered.total() + without_answer
    # The same holds for usage, except that a killed worker may lose the calls of its last second.
    unflushed = sum(any(kill - 1 <= ended <= kill + 0.1 for kill in kills) for ended in load.ends)
    assert answered.total() - unflushed <= usage["calls"] <= sums.total()
