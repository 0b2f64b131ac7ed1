"""Asynchronous calls while clocks jump or differ: no call is ended early, deleted, or fetched twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from crawler.service.clients.key_store import KeyStore
from tests.hanging_platform import HangingPlatform, hanging_platform
from tests.service.client import HEADERS, SEARCH, call
from tests.service.conftest import Service, running

pytestmark = pytest.mark.soak

CLOCK = """
import time
from pathlib import Path
real, offset = time.time, Path({path!r})
time.time = lambda: real() + float(offset.read_text())
"""
"""Code that changes the clock of a process: a file contains the seconds by which it is ahead."""
LEASE = 3
JUMP_SECONDS = 4


def accept(service: Service, query: str, headers: dict[str, str]) -> str:
    reply = call(service.url, SEARCH, {"query": query}, headers={**headers, "Prefer": "respond-async"})
    assert reply.status == 202
    return reply.headers["location"]


def counts(service: Service, headers: dict[str, str]) -> dict[str, int]:
    found: dict[str, int] = call(service.url, "/v1/calls", method="GET", headers=headers).body["counts"]
    return found


def wait_until_done(service: Service, headers: dict[str, str], number: int) -> None:
    while counts(service, headers)["done"] < number:
        time.sleep(0.2)


def hangs(platform: HangingPlatform, path: str, args: dict[str, str]) -> Any:
    return None if args.get("q", "").startswith("hang") else platform.page(path, args)


def settings(keys: KeyStore, platform: HangingPlatform, slots: int) -> tuple[str, ...]:
    budget = {"retail": {"concurrency": slots, "delay": 0}}
    return (
        f"KEYS_FILE={keys.path}",
        f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}",
        f"PLATFORM_BUDGETS={json.dumps(budget)}",
        f"JOB_LEASE={LEASE}",
        "DOWNLOAD_TIMEOUT=3600",
    )


@pytest.mark.parametrize("hours", [26, -26])
def test_at_10_a_jump_of_the_clock_ends_and_deletes_no_call(tmp_path: Path, hours: int) -> None:
    """Before the fix, nine waiting calls were ended as OVERLOADED, and five billed responses were deleted."""
    keys = KeyStore(tmp_path / "keys.sqlite")
    headers = {**HEADERS, "X-API-Key": keys.create("acme")}
    clock = tmp_path / "clock"
    clock.write_text("0")
    with hanging_platform(lambda path, args: hangs(platform, path, args)) as platform:
        own = settings(keys, platform, slots=1)
        with running(tmp_path / "log", *own, sandbox=False, before=CLOCK.format(path=str(clock))) as service:
            done = [accept(service, f"before {number}", headers) for number in range(5)]
            wait_until_done(service, headers, 5)
            platform.release.clear()
            waiting = [accept(service, f"hang {number}", headers) for number in range(9)]
            platform.wait_until(lambda platform: platform.unanswered == 1)
            time.sleep(12)  # until the service trusts the clock
            clock.write_text(str(hours * 3_600))
            time.sleep(JUMP_SECONDS)
            during = accept(service, "hang during", headers)
            clock.write_text("0")
            time.sleep(15)
            assert counts(service, headers) == {"waiting": 9, "running": 1, "done": 5}
            platform.release.set()
            wait_until_done(service, headers, 15)
            replies = [call(service.url, path, method="GET", headers=headers) for path in (*done, *waiting, during)]
            assert {reply.code for reply in replies} == {"OK"}
            usage = call(service.url, "/v1/usage", method="GET", headers=headers).body
        requested = Counter(parse_qs(urlsplit(path).query).get("q", [""])[0] for path in platform.requested_paths)
    assert (usage["calls"], usage["billable"]) == (15, 15)
    assert set(requested.values()) == {1}, "no target was fetched twice"


def test_at_9_hosts_with_different_clocks_do_not_take_over_running_calls(tmp_path: Path, postgresql: str) -> None:
    """Before the fix, 40 calls made 50 downloads."""
    keys = KeyStore(tmp_path / "keys.sqlite")
    headers = {**HEADERS, "X-API-Key": keys.create("clocks")}
    with hanging_platform(lambda path, args: hangs(platform, path, args)) as platform, ExitStack() as stack:
        services = []
        for seconds in (0, -20):
            clock = tmp_path / f"clock{seconds}"
            clock.write_text(str(seconds))
            own = (*settings(keys, platform, slots=4), f"STORE={postgresql}")
            log = tmp_path / f"log{seconds}"
            services.append(
                stack.enter_context(running(log, *own, sandbox=False, before=CLOCK.format(path=str(clock))))
            )
        platform.release.clear()
        for number in range(40):
            accept(services[number % 2], f"hang {number}", headers)
        platform.wait_until(lambda platform: platform.unanswered >= 4)
        time.sleep(4 * LEASE)
        platform.release.set()
        wait_until_done(services[0], headers, 40)
        calls = call(services[0].url, "/v1/calls", method="GET", headers=headers).body["calls"]
        requested = Counter(parse_qs(urlsplit(path).query).get("q", [""])[0] for path in platform.requested_paths)
    assert Counter(each["code"] for each in calls) == {"OK": 40}
    assert (len(requested), requested.total()) == (40, 40)
