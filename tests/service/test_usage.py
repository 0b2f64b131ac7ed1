"""Usage matches the calls made, even after kill -9, both over HTTP and on the command line."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
import structlog
from scrapy.settings import Settings

from crawler.commands.serve import use_sandbox
from crawler.jobs import store_location
from crawler.jobs.store import Store
from crawler.platforms import platforms
from crawler.service import keys
from crawler.service.endpoint import Endpoint, repeat
from crawler.service.keys import Holder
from crawler.service.usage import Usage
from tests.jobs.lossy_postgresql import lossy
from tests.service.client import CATEGORY, HEADERS, call
from tests.service.conftest import Service, running
from tests.service.key_commands import Keys

TARGETS = ("976759", "3944", "424242", "none")
"""Category ids: two that exist, one that does not, and one that is malformed."""
CLIENTS = 20


@dataclass
class Responses:
    """Collects the codes of the responses."""

    codes: Counter[str] = field(default_factory=Counter)
    sent: int = 0


async def make_calls(url: str, numbers: Iterator[int], responses: Responses) -> None:
    """Make a call for each number. A call to which a killed service did not respond counts only in ``responses.sent``.

    Each client ends when the service is killed.
    """

    async def client(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            responses.sent += 1
            try:
                async with session.post(url + CATEGORY, json={"cat_id": TARGETS[number % 4]}) as response:
                    body = await response.json()
            except aiohttp.ClientError:
                return
            responses.codes[body["status"]["code"]] += 1

    async with aiohttp.ClientSession(headers=HEADERS) as session:
        await asyncio.gather(*(client(session) for _ in range(CLIENTS)))


def stored(location: Path) -> Counter[str]:
    """Return the stored number of calls by code. (``GET /v1/usage`` would store the counts that are in memory.)"""
    with closing(sqlite3.connect(location)) as database:
        return Counter(dict(database.execute("SELECT code, sum(calls) FROM usage GROUP BY code")))


def counted(service: Service) -> Counter[str]:
    reply = call(service.url, "/v1/usage", method="GET")
    found: Counter[str] = Counter()
    for entry in reply.body["usage"]:
        found.update(entry["outcomes"])
    assert reply.body["calls"] == found.total()
    assert reply.body["billable"] == found["OK"]
    return found


def test_usage_equals_the_calls_after_a_kill(tmp_path: Path) -> None:
    """The service is killed while it responds to calls, as soon as the first ones are stored."""
    responses, rest = Responses(), Responses()

    async def killed_in_the_middle(service: Service) -> Counter[str]:
        calls = asyncio.ensure_future(make_calls(service.url, itertools.count(), responses))
        async with asyncio.timeout(300):
            while responses.codes.total() < 100:  # noqa: ASYNC110  # counted by the clients
                await asyncio.sleep(0.01)
            answered = responses.codes.copy()
            while not answered <= stored(tmp_path / "service.sqlite3"):  # noqa: ASYNC110  # stored by the service
                await asyncio.sleep(0.01)
        service.process.send_signal(signal.SIGKILL)
        await calls
        return answered

    with running(tmp_path / "log") as service:
        answered = asyncio.run(killed_in_the_middle(service))
    with running(tmp_path / "log") as service:
        counts = counted(service)
        assert answered <= counts
        assert counts.total() <= responses.sent
        asyncio.run(make_calls(service.url, iter(range(100)), rest))
        assert counted(service) - counts == rest.codes
        assert rest.codes.total() == 100


def test_usage_is_reported_by_client_and_day(tmp_path: Path) -> None:
    """A call with an unknown key or of an unknown scraper is not counted."""
    store = Store(str(tmp_path / "service.sqlite3"))
    columns = ("client", "scraper", "day", "code", "calls", "billable")
    row = f"INSERT INTO usage ({', '.join(columns)}) VALUES (:{', :'.join(columns)})"  # noqa: S608  # constants
    days = [(0, "OK", 5), (0, "TARGET_NOT_FOUND", 2), (1, "OK", 7), (30, "OK", 11), (31, "OK", 13)]
    rows = [("sandbox", "a", _ago(n), code, calls, calls * (code == "OK")) for n, code, calls in days]
    rows += [("other", "a", _ago(0), "OK", 1000, 1000)]
    store.transact_sync(
        lambda session: [session.run(row, **dict(zip(columns, values, strict=True))) for values in rows]
    )
    asyncio.run(store.close())
    with running(tmp_path / "log") as service:
        call(service.url, CATEGORY, {}, headers={**HEADERS, "X-API-Key": "wrong"})
        call(service.url, "/v1/scrapers/none", {})

        def report(query: str = "") -> dict[str, Any]:
            reply = call(service.url, f"/v1/usage{query}", method="GET")
            assert reply.status == 200
            body: dict[str, Any] = reply.body
            return body

        default = report()
        assert (default["client_id"], default["calls"], default["billable"]) == ("sandbox", 25, 23)
        assert (default["from"], default["to"]) == (_ago(30), _ago(0))
        assert default["usage"][0] == {
            "day": _ago(0),
            "scraper": "a",
            "calls": 7,
            "billable": 5,
            "partial": 0,
            "outcomes": {"OK": 5, "TARGET_NOT_FOUND": 2},
        }
        assert report(f"?from={_ago(31)}")["calls"] == 38
        assert report(f"?from={_ago(31)}&to={_ago(1)}")["calls"] == 31
        assert report("?from=0001-01-01&to=0001-01-02")["usage"] == []


def _ago(days: int) -> str:
    return (datetime.now(UTC).date() - timedelta(days=days)).isoformat()


def test_the_command_prints_the_usage_of_all_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "service.sqlite3"
    store = Store(str(file))
    counts = Usage(store)
    for client, code in (("one", "OK"), ("one", "OK"), ("other", "TARGET_NOT_FOUND")):
        counts.count(client, "some-scraper", code, billable=code == "OK")
    asyncio.run(counts.flush())
    asyncio.run(store.close())

    def printed(*arguments: str) -> list[list[str]]:
        keys = Keys(tmp_path / "keys.sqlite3", capsys, STORE=str(file))
        return [line.split() for line in keys("usage", *arguments)[1].splitlines()[1:]]

    one = ["one", _ago(0), "some-scraper", "2", "2", "0", "OK=2"]
    other = ["other", _ago(0), "some-scraper", "1", "0", "0", "TARGET_NOT_FOUND=1"]
    assert printed() == [one, other]
    assert printed("other") == [other]
    assert printed("nobody") == []


@pytest.mark.parametrize("own", ["", "own.sqlite3"])
def test_the_sandbox_has_its_own_usage(monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    origins = dict.fromkeys(platforms(), "http://127.0.0.1:9")
    monkeypatch.setattr("crawler.sandbox.server.Sandbox", lambda **_: SimpleNamespace(start=lambda: origins))
    real, sandbox = Settings({"STORE": own}), Settings({"STORE": own})
    use_sandbox(sandbox)
    assert Path(store_location(sandbox)).name == Path(store_location(real)).name
    assert (store_location(sandbox) == store_location(real)) == bool(own)
    assert Path(store_location(sandbox)).absolute().parent.is_dir()


async def test_counts_are_written_even_if_the_flush_is_cancelled(tmp_path: Path) -> None:
    """At shutdown, the upkeep task is cancelled, possibly while its write waits for the store's thread."""
    store = Store(str(tmp_path / "service.sqlite3"))
    counts = Usage(store)
    release = threading.Event()
    busy = asyncio.ensure_future(store.transact(lambda _: release.wait()))
    counts.count("one", "some-scraper", "OK", billable=True)
    flush = asyncio.ensure_future(counts.flush())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    flush.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flush
    release.set()
    await busy
    assert (await counts.report(Holder("one", "k")))["calls"] == 1
    await store.close()


async def test_usage_is_stored_after_an_unexpected_exception() -> None:
    """Such an exception can come from the metrics, which several processes keep in files: the disk may be full."""
    flushed = asyncio.Event()
    flushes: list[float] = []

    class Counts:
        async def flush(self, seconds: float) -> None:
            flushes.append(seconds)
            if len(flushes) < 2:
                raise OSError
            flushed.set()

    endpoint = cast("Any", SimpleNamespace(parts=SimpleNamespace(usage=Counts(), status=Counts())))
    upkeep = asyncio.ensure_future(repeat(partial(Endpoint._store_counts, endpoint), 0.0, "upkeep_failed"))
    second = asyncio.ensure_future(flushed.wait())
    await asyncio.wait([upkeep, second], return_when=asyncio.FIRST_COMPLETED)
    assert second.done()
    upkeep.cancel()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
async def test_lost_responses_to_commits_count_no_call_twice(postgresql_store: str, seed: int) -> None:
    async with lossy(postgresql_store, seed) as (url, proxy):
        store = Store(url)
        counts = Usage(store)
        for _ in range(100):
            counts.count("one", "a", "OK", billable=True)
            await counts.flush()
        while counts.pending():
            await counts.flush()
        await store.close()
    assert proxy.lost >= 5
    store = Store(postgresql_store)
    report = await Usage(store).report(Holder("one", "k"))
    assert (report["calls"], report["billable"]) == (100, 100)
    await store.close()


async def test_a_write_with_the_same_id_is_done_once(location: str) -> None:
    store = Store(location)
    done: list[int] = []
    for number, write_id in enumerate(("a", "a", "b")):
        await store.write_once(partial(lambda n, _: done.append(n), number), write_id)
    assert done == [0, 2]
    await store.close()


async def test_usage_is_stored_even_if_a_step_of_the_shutdown_fails(tmp_path: Path) -> None:
    settings = Settings({"STORE": str(tmp_path / "store.sqlite3"), "KEY_RATE": "100/minute"}, priority="cmdline")
    use_sandbox(settings)
    endpoint = Endpoint(settings, keys.Keys({}))

    async def fails() -> None:
        raise OSError("the disk is full")

    endpoint.parts.runs.close = fails  # type: ignore[method-assign]
    endpoint.parts.usage.count("one", "some-scraper", "OK", billable=True)
    with structlog.testing.capture_logs() as logs:
        await endpoint.drain(lambda: asyncio.sleep(0))
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["shutdown_failed"]
    later = Usage(Store(store_location(settings)))
    assert (await later.report(Holder("one", "k")))["calls"] == 1
    await later.store.close()
