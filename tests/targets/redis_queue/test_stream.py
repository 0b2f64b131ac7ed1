"""The queue with a real Redis: leases, takeovers, and counts."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import redis

from crawler.commands.targets import push, status_table
from crawler.spiders.retail import RetailSpider
from crawler.targets.redis_queue.source import StreamSource
from crawler.targets.redis_queue.stream import CompletedEntry, Status, TargetStream
from crawler.targets.target import Outcome, Target, TargetParser
from tests.crawls import lines
from tests.targets.redis_queue.conftest import Shop, expected, scrapy_targets, start, targets

TARGET = orjson.dumps({"id": "a", "scraper": "retail-category-v4", "params": {"cat_id": "1_1"}})
Scenario = Callable[[TargetStream, TargetStream], Awaitable[None]]


@asynccontextmanager
async def workers(url: str, *, idle: float = 60.0) -> AsyncIterator[tuple[TargetStream, TargetStream]]:
    one, two = (TargetStream(url, "default", "retail", idle=idle) for _ in range(2))
    await one.open()
    try:
        yield one, two
    finally:
        await one.close()
        await two.close()


def run(url: str, scenario: Scenario, **options: float) -> None:
    async def with_workers() -> None:
        async with workers(url, **options) as (one, two):
            await scenario(one, two)

    asyncio.run(with_workers())


def test_an_entry_completed_twice_counts_once(redis_url: str) -> None:
    async def scenario(one: TargetStream, two: TargetStream) -> None:
        await one.push([TARGET])
        (entry,) = await one.read()
        (same,) = await two.claim()
        assert (same.id, same.text, same.tries) == (entry.id, TARGET, 2)
        await one.complete([CompletedEntry(entry.id, "OK", followups=(b"{}",))])
        await two.complete([CompletedEntry(entry.id, "UPSTREAM_ERROR", followups=(b"{}",))])
        found = await one.status()
        assert (found.done, found.failed, found.waiting, found.running) == (1, {}, 1, 0)

    run(redis_url, scenario, idle=0)


def test_followups_of_a_lost_file_are_pushed_once(redis_url: str) -> None:
    async def scenario(one: TargetStream, two: TargetStream) -> None:
        await one.push([TARGET])
        (entry,) = await one.read()
        await one.buffer([CompletedEntry(entry.id, "OK", followups=(b"{}",))])
        (followups,) = await one.read()
        await one.complete([CompletedEntry(followups.id, "OK")])
        assert await one.finished(), "all have outcomes, one of them in an open file"
        assert await two.claim(), "the worker of the open file has exited"
        assert not await one.finished()
        await two.buffer([CompletedEntry(entry.id, "OK", followups=(b"{}",))])
        assert await one.finished(), "all have outcomes again"
        await two.complete([CompletedEntry(entry.id, "OK", followups=(b"{}",))])
        assert await one.finished()
        assert (await one.status()).done == 2
        assert not await one.redis.hlen(one.followed)

    run(redis_url, scenario, idle=0)


def test_a_heartbeat_keeps_the_lease(redis_url: str) -> None:
    async def scenario(one: TargetStream, two: TargetStream) -> None:
        await one.push([TARGET])
        (entry,) = await one.read()
        assert not await two.claim()
        await one.redis.xclaim(one.key, "workers", one.worker, 0, [entry.id], idle=60_000, justid=True)
        await one.heartbeat([entry.id])
        assert not await two.claim()
        await one.release({entry.id: entry.tries})
        (given,) = await two.claim()
        assert (given.id, given.tries) == (entry.id, 1), "a stopped worker does not count as a try"

    run(redis_url, scenario, idle=30)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (b"", "INVALID_REQUEST"),
        (b"rubbish", "INVALID_REQUEST"),
        (b"\xff\xfe", "INVALID_REQUEST"),
        (b"[1]", "INVALID_REQUEST"),
        (b'{"id": 1, "scraper": "retail-category-v4", "params": {}}', "INVALID_REQUEST"),
        (b'{"id": "a", "scraper": "retail-category-v4", "params": {"other": 1}}', "INVALID_REQUEST"),
        (b'{"id": "a", "scraper": "microblog-profile", "params": {"username": "x"}}', "SCRAPER_NOT_FOUND"),
    ],
)
def test_a_malformed_entry_is_a_failed_target(redis_url: str, written: bytes, code: str) -> None:
    async def scenario(one: TargetStream, _: TargetStream) -> None:
        await one.push([written])
        assert await outcomes_of(one) == [code]
        assert (await status_of(redis_url)).failed == {code: 1}

    run(redis_url, scenario)


async def outcomes_of(stream: TargetStream, tries: int = 2) -> list[str]:
    """Take all targets, and return the codes of their outcomes: an error for invalid targets, else OK."""
    source = StreamSource(stream, TargetParser(RetailSpider.scrapers), tries)
    await source.open()
    codes = []
    async for each in source:
        outcome = Outcome(each, None, getattr(each, "error", None), 0)
        source.stored(outcome)
        codes.append(outcome.code)
    await source.close()
    return codes


async def status_of(url: str) -> Status:
    stream = TargetStream(url, "default", "retail")
    try:
        return await stream.status()
    finally:
        await stream.close()


def test_a_target_whose_workers_exit_is_a_dead_letter(redis_url: str, tmp_path: Path) -> None:
    async def scenario(one: TargetStream, two: TargetStream) -> None:
        await one.push([TARGET])
        await one.read()
        await one.claim()  # a second worker exits
        assert await outcomes_of(two) == ["INTERNAL_ERROR"]
        found = await status_of(redis_url)
        assert (found.failed, found.dead, found.waiting, found.running) == ({"INTERNAL_ERROR": 1}, 1, 0, 0)

    run(redis_url, scenario, idle=0)
    dead_letters = scrapy_targets(redis_url, "dead")
    assert "a: 2 workers exited while the target was in progress" in dead_letters.stderr
    again = tmp_path / "again.jsonl"
    again.write_text(dead_letters.stdout)
    assert scrapy_targets(redis_url, "push", str(again)).returncode == 0
    with redis.Redis.from_url(redis_url) as client:
        ((_, fields),) = client.xrange("crawler:queue:{default:retail}")
    entry = orjson.loads(fields[b"target"])
    assert (entry["id"], entry["scraper"], entry["params"]["cat_id"]) == ("a", "retail-category-v4", "1_1")


def test_a_file_is_pushed_and_the_status_is_printed(redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "targets.jsonl"
    file.write_text('{"id": "x", "query": "mustard"}\n{broken\n{"id": "y", "scraper": "microblog-profile"}\n')
    with file.open("a") as out:
        out.write('{"id": "z", "scraper": "microblog-profile", "username": "someone"}\n')
    pushed = scrapy_targets(redis_url, "push", str(file))
    assert pushed.returncode == 4
    assert [json.loads(line)["line"] for line in pushed.stdout.splitlines()] == [2, 3]
    assert "retail: 1 targets pushed" in pushed.stderr
    status = json.loads(scrapy_targets(redis_url, "status").stdout)
    assert status["queue"] == "default"
    assert {name: each["waiting"] for name, each in status["platforms"].items()} == {"microblog": 1, "retail": 1}
    assert status["platforms"]["retail"]["seconds_left"] is None
    assert status["platforms"]["retail"]["filed"] == 0, "the documented key of targets in open files"


@pytest.mark.parametrize(
    ("url", "arguments", "code", "message"),
    [
        (None, ["push", "nowhere.jsonl"], 2, "no such targets file"),
        (None, ["push"], 2, "push <file> | status | dead"),
        ("redis://127.0.0.1:1", ["status"], 1, "127.0.0.1:1"),
    ],
)
def test_failed_commands_print_the_reason(
    redis_url: str, url: str | None, arguments: list[str], code: int, message: str
) -> None:
    run = scrapy_targets(url or redis_url, *arguments)
    assert run.returncode == code
    assert message in run.stderr + run.stdout


def test_an_interrupted_push_is_continued(redis_url: str, tmp_path: Path) -> None:
    file = str(targets(tmp_path / "targets.jsonl", 1_200))

    async def scenario(one: TargetStream, _: TargetStream) -> None:
        real, calls = one.push, 0

        async def breaks(*args: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise redis.ConnectionError
            await real(*args)

        streams: dict[str, Any] = {"retail": one, "microblog": SimpleNamespace(pushed=none)}
        one.push = breaks  # type: ignore[method-assign, assignment]
        with pytest.raises(redis.ConnectionError):
            await push(streams, file, None)
        assert (await one.status()).waiting == 500
        for waiting in (1_200, 2_400):  # a complete push can be repeated
            assert await push(streams, file, None) == 0
            assert (await one.status()).waiting == waiting

    async def none(_: str) -> int:
        return 0

    run(redis_url, scenario)


def test_the_status_table() -> None:
    from rich.console import Console  # noqa: PLC0415

    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    found = Status(1_000, 40, 5, 3, 2_000, {"TARGET_NOT_FOUND": 7}, 1, per_second=2.0)
    console.print(status_table({"retail": found}, "monday"))
    console.file.close()
    shown = console.export_text()
    for part in ("queue monday", "1,000", "2,000 (5 in open files)", "TARGET_NOT_FOUND 7", "2.0", "8:40"):
        assert part in shown


def test_workers_survive_a_restart_of_redis(tmp_path: Path, shop: Shop, processes: ExitStack) -> None:
    """Redis is killed and restarted with its data during a crawl."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs redis-server on PATH (Debian: apt-get install redis-server)")
    socket = tmp_path / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--appendonly", "yes", "--appendfsync", "always"]
    command = [program, *options, "--dir", str(tmp_path), "--save", ""]
    url = f"unix://{socket}"

    def serve() -> subprocess.Popen[bytes]:
        server = processes.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        processes.callback(server.kill)
        with redis.Redis.from_url(url) as client:
            for _ in range(500):
                try:
                    client.ping()
                except redis.ConnectionError:
                    time.sleep(0.02)
                else:
                    break
        return server

    server = serve()
    assert scrapy_targets(url, "push", str(targets(tmp_path / "targets.jsonl", 200))).returncode == 0
    slow = json.dumps({"retail": {"concurrency": 2, "delay": 0.02}})
    out = tmp_path / "out.jsonl"
    worker = start(processes, shop.worker(url, "-O", str(out), PLATFORM_BUDGETS=slow), tmp_path / "log")
    while len(shop.request_times) < 40:
        assert worker.poll() is None, (tmp_path / "log").read_text()[-3_000:]
        time.sleep(0.01)
    server.send_signal(signal.SIGKILL)
    server.wait()
    time.sleep(1)
    socket.unlink()
    serve()
    assert worker.wait() == 4, (tmp_path / "log").read_text()[-3_000:]
    assert "queue_unavailable" in (tmp_path / "log").read_text()
    with redis.Redis.from_url(url) as client:
        counts = client.hgetall("crawler:queue:{default:retail}:counts")
    assert {code.decode(): int(n) for code, n in counts.items()} == dict(expected(200))
    assert len(lines(out)) == expected(200)["OK"]


def test_a_deleted_queue_ends_the_run(redis_url: str) -> None:
    from crawler.targets.sources import TargetsUnavailableError  # noqa: PLC0415

    async def scenario(one: TargetStream, _: TargetStream) -> None:
        source = StreamSource(one, TargetParser(RetailSpider.scrapers), 2)
        await source.open()
        await one.push([TARGET])
        found = aiter(source)
        assert isinstance(await anext(found), Target)
        await one.redis.flushall()
        with pytest.raises(TargetsUnavailableError, match="the queue no longer exists"):
            await anext(found)
        await source.close()

    run(redis_url, scenario)
