"""Workers of one queue, killed at random: each target is counted once, and the platform's budget is respected."""

from __future__ import annotations

import gzip
import json
import random
import signal
import time
from bisect import bisect
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
import sqlalchemy as sa

from crawler.commands.crawl import argument_problems
from crawler.spiders.retail import RetailSpider
from tests import forks
from tests.crawls import command, lines
from tests.targets.redis_queue.conftest import Shop, expected, scrapy_targets, start, targets

KEY = "crawler:queue:{default:retail}"


def completed(client: redis.Redis) -> Counter[str]:
    found = client.hgetall(f"{KEY}:counts")
    return Counter({code.decode(): int(count) for code, count in found.items()})  # type: ignore[union-attr]


def pending(client: redis.Redis, process: int) -> int:
    """Return the number of entries that a worker has leased."""
    found = client.xpending(KEY, "workers")
    return sum(each["pending"] for each in found["consumers"] if f"-{process}-".encode() in each["name"])


def max_requests_within(moments: list[float], seconds: float) -> int:
    """Return the maximum number of requests within an interval."""
    return max(bisect(moments, moment + seconds) - number for number, moment in enumerate(moments))


@pytest.mark.parametrize(
    ("count", "kills", "delay", "idle"), [(300, 3, 0.02, 2), pytest.param(30_000, 10, 0.01, 5, marks=pytest.mark.soak)]
)
def test_killed_workers_lose_no_target(  # noqa: PLR0913, PLR0917  # two sizes of the same
    tmp_path: Path,
    redis_url: str,
    shop: Shop,
    processes: ExitStack,
    count: int,
    kills: int,
    delay: float,
    idle: float,
) -> None:
    pushed = scrapy_targets(redis_url, "push", str(targets(tmp_path / "targets.jsonl", count)))
    assert pushed.returncode == 0, pushed.stderr
    database, log, failed = tmp_path / "out.db", tmp_path / "log", tmp_path / "failed-%(job)s.jsonl"
    budget = json.dumps({"retail": {"concurrency": 32, "delay": delay}})
    expected_counts, moments = expected(count), random.Random(count)  # noqa: S311  # no secret
    worker = shop.worker(
        redis_url, PLATFORM_BUDGETS=budget, SQL_SINK=database, FAILURES_FEED=failed, QUEUE_IDLE=idle, PROCESSES=3
    )
    workers = [start(processes, worker, log) for _ in range(3)]
    killed = 0
    with redis.Redis.from_url(redis_url) as client:
        for at in sorted(moments.sample(range(count // 20, count * 19 // 20), kills)):
            while completed(client).total() < at:
                assert any(each.poll() is None for each in workers), log.read_text()[-3_000:]
                time.sleep(0.01)
            number = moments.randrange(3)
            workers[number].send_signal(signal.SIGKILL)
            killed += workers[number].wait() == -signal.SIGKILL
            workers[number] = start(processes, worker, log)
        for each in workers:
            each.wait()
        outcomes, dead = completed(client), client.xlen(f"{KEY}:dead")
        assert client.xlen(KEY) == 0
    assert killed == kills, "a worker ended before it was killed"
    duration = shop.request_times[-1] - shop.request_times[0]
    figures = f"{dict(outcomes)} dead={dead} requests={len(shop.request_times)} in {duration:.1f} s"
    figures += f", at most {max_requests_within(shop.request_times, 10.0)} within 10 s"
    (tmp_path / "figures").write_text(figures)
    assert outcomes.total() == expected_counts.total()
    assert outcomes == expected_counts, f"{dead} dead letters: QUEUE_TRIES workers were killed with each of them"
    engine = sa.create_engine(f"sqlite:///{database}")
    with engine.connect() as connection:
        listings, different = connection.exec_driver_sql(
            "select count(*), count(distinct cat_id || '/' || page) from retail_listings"
        ).one()
        (products,) = connection.exec_driver_sql("select count(*) from retail_products").one()
    engine.dispose()
    assert listings == different == products == expected_counts["OK"]
    ids = {line["id"] for line in lines(*tmp_path.glob("failed-*.jsonl"))}
    assert len(ids) == expected_counts["TARGET_NOT_FOUND"]
    assert max_requests_within(shop.request_times, 10.0) <= 1.1 * 10 / delay + 32
    assert duration >= 0.9 * delay * (len(shop.request_times) - 1), "three workers share the budget of one"


def test_a_stopped_worker_releases_its_unfinished_targets(
    tmp_path: Path, redis_url: str, shop: Shop, processes: ExitStack
) -> None:
    """With feeds that are stored when they are closed, no target is lost or written twice."""
    scrapy_targets(redis_url, "push", str(targets(tmp_path / "targets.jsonl", 200)))
    slow = json.dumps({"retail": {"concurrency": 2, "delay": 0.02}})
    outs = [tmp_path / f"{name}.jsonl.gz" for name in "ab"]
    first = start(
        processes, shop.worker(redis_url, "-O", str(outs[0]), PLATFORM_BUDGETS=slow, QUEUE_IDLE=60), tmp_path / "log"
    )
    with redis.Redis.from_url(redis_url) as client:
        while len(shop.request_times) < 40:
            assert first.poll() is None, (tmp_path / "log").read_text()[-3_000:]
            time.sleep(0.01)
        assert completed(client)["OK"] == 0, "its file is still open"
        first.send_signal(signal.SIGTERM)
        first.wait()
        done = completed(client)
        assert done
        second = start(processes, shop.worker(redis_url, "-O", str(outs[1]), QUEUE_IDLE=60), tmp_path / "log")
        assert second.wait() == 4, (tmp_path / "log").read_text()[-3_000:]
        assert completed(client) == expected(200)
    found: Counter[str] = Counter()
    for out in outs:
        with gzip.open(out, "rt") as file:
            found.update(json.dumps(json.loads(line)["params"]) for line in file)
    assert found.total() == expected(200)["OK"]
    assert set(found.values()) == {1}


def test_workers_with_open_files_end_together(tmp_path: Path, redis_url: str, shop: Shop, processes: ExitStack) -> None:
    scrapy_targets(redis_url, "push", str(targets(tmp_path / "targets.jsonl", 60)))
    workers = [
        start(processes, shop.worker(redis_url, "-O", str(tmp_path / f"{n}.jsonl.gz")), tmp_path / "log")
        for n in range(2)
    ]
    assert all(each.wait() in {0, 4} for each in workers), (tmp_path / "log").read_text()[-3_000:]
    with redis.Redis.from_url(redis_url) as client:
        assert completed(client) == expected(60)
        assert client.xlen(KEY) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queue": "a", "targets": "t.jsonl"}, "queue cannot be combined with targets, resume or since"),
        ({"queue": "a b"}, "should match pattern"),
        ({"wait": "true", "cat_id": "1"}, "wait=true requires a queue: add queue=, or remove wait="),
        ({"queue": "a", "exhaustive": "true"}, "leave out exhaustive, or leave out queue and job"),
    ],
)
def test_contradictory_arguments_are_refused(arguments: dict[str, str], message: str) -> None:
    assert message in " ".join(argument_problems(RetailSpider, arguments).values())


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({}, 2, "REDIS_URL is not set"),
        ({"REDIS_URL": "http://x"}, 2, "REDIS_URL: expected a URL such as redis://host:6379/0"),
        ({"REDIS_URL": "redis://x:port", "SANDBOX": "1"}, 1, "REDIS_URL is not a valid Redis URL"),
        ({"REDIS_URL": "redis://127.0.0.1:1"}, 1, "the queue cannot be used"),
    ],
)
def test_an_unusable_queue_ends_the_run(
    settings: dict[str, str], code: int, message: str, tmp_path: Path, processes: ExitStack
) -> None:
    log = tmp_path / "log"
    run = start(processes, command("retail", {"queue": "a"}, {"FAILURES_FEED": "", **settings}), log)
    assert run.wait() == code
    assert message in log.read_text()


@pytest.mark.parametrize(("count", "freezes"), [(120, 1), pytest.param(3_000, 3, marks=pytest.mark.soak)])
def test_rb_22_a_frozen_worker_writes_no_lost_target(  # noqa: PLR0913, PLR0917  # two sizes
    tmp_path: Path, redis_url: str, shop: Shop, processes: ExitStack, count: int, freezes: int
) -> None:
    scrapy_targets(redis_url, "push", str(targets(tmp_path / "targets.jsonl", count)))
    slow = json.dumps({"retail": {"concurrency": 4, "delay": 0.02}})
    outs = [tmp_path / f"{name}.jsonl" for name in "ab"]
    failed = tmp_path / "failed-%(job)s-{}.jsonl"

    def worker(number: int) -> forks.Popen:
        out = outs[number]
        feeds = {"FAILURES_FEED": str(failed).format(out.stem)}
        run = shop.worker(redis_url, "-O", str(out), PLATFORM_BUDGETS=slow, PROCESSES=2, **feeds)
        return start(processes, run, tmp_path / out.stem)

    workers = [worker(0)]
    possibly_unsent: Counter[str] = Counter()
    with redis.Redis.from_url(redis_url) as client:
        for freeze in range(freezes):
            frozen, out = workers[freeze % 2], outs[freeze % 2]
            while not out.exists() or len(params_of(out)) < 10 * (freeze + 1):
                assert frozen.poll() is None, "the worker ended before it was frozen"
                time.sleep(0.01)
            frozen.send_signal(signal.SIGSTOP)
            if len(workers) == 1:
                workers.append(worker(1))
            possibly_unsent.update(params_of(out)[-32:])  # written, but Redis may not have the outcome yet
            while pending(client, frozen.command_pid):  # until the other worker has taken all of them
                assert workers[(freeze + 1) % 2].poll() is None
                time.sleep(0.01)
            frozen.send_signal(signal.SIGCONT)
        assert all(each.wait() in {0, 4} for each in workers), (tmp_path / "a").read_text()[-3_000:]
        assert completed(client) == expected(count)
        assert client.xlen(KEY) == 0
    logs = "".join((tmp_path / out.stem).read_text() for out in outs)
    assert "target_lease_lost" in logs, "no target was taken over while the worker was frozen"
    found = Counter(params_of(*outs))
    assert len(found) == expected(count)["OK"]
    assert {params for params, times in found.items() if times > 1} <= set(possibly_unsent)
    assert len({line["id"] for line in lines(*tmp_path.glob("failed-*.jsonl"))}) == expected(count)["TARGET_NOT_FOUND"]


def params_of(*files: Path) -> list[str]:
    """Return the params of all lines. The last line of a running worker may be incomplete."""
    whole = [file.read_text().rpartition("\n")[0] for file in files]
    return [json.dumps(json.loads(line)["params"]) for text in whole for line in text.split("\n") if line]
