"""Client quotas: the records per month of a client, above which its calls and new jobs are refused."""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawler.commands.keys import monthly
from crawler.errors import QuotaExceeded, StoreUnavailable
from crawler.jobs.store import Store
from crawler.service import usage
from crawler.service.keys import Holder, KeyStore, configured_keys, export, monthly_quota
from crawler.service.usage import Usage
from tests.crawls import sandbox
from tests.service.client import HEADERS, SEARCH, call
from tests.service.conftest import Service, running
from tests.service.key_commands import Keys

NOVEMBER = datetime(2026, 11, 30, 23, 59, 50, tzinfo=UTC).timestamp()


# The quota in the store


async def test_the_records_of_the_month_count_and_nothing_else(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOVEMBER]
    monkeypatch.setattr(usage, "store_time", lambda: now[0])
    store = Store(location)
    counts = Usage(store)
    holder = Holder("acme", "key", quota=2)
    counts.count("acme", "a", "OK", billable=True)
    counts.count("acme", "a", "UPSTREAM_ERROR", billable=False)
    counts.count("other", "a", "OK", billable=True)
    await counts.flush()
    await usage.check_quota(store, holder)
    counts.count("acme", "b", "OK", billable=True)
    await counts.flush()
    with pytest.raises(QuotaExceeded, match=r"all 2 records of this month are used.* 2026-12-01T00:00:00Z") as refused:
        await usage.check_quota(store, holder)
    assert refused.value.retry_after == 10
    await usage.check_quota(store, Holder("acme", "key", quota=3))
    await usage.check_quota(store, Holder("acme", "key"))
    now[0] += 10
    await usage.check_quota(store, holder)
    for _ in range(2):  # on the first day of the month
        counts.count("acme", "a", "OK", billable=True)
    await counts.flush()
    with pytest.raises(QuotaExceeded, match=r"2027-01-01T00:00:00Z"):
        await usage.check_quota(store, holder)
    await store.close()


async def test_without_the_store_a_quota_cannot_be_checked(tmp_path: Path) -> None:
    store = Store(str(tmp_path))  # a folder
    with pytest.raises(StoreUnavailable):
        await usage.check_quota(store, Holder("acme", "key", quota=5))
    await usage.check_quota(store, Holder("acme", "key"))
    await store.close()


# One quota for all keys of a client


def test_all_keys_of_a_client_have_its_quota(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    store.create("acme", quota=500)
    store.create("acme", rate="60/minute")
    store.create("other")

    def quotas_of(client: str) -> list[int | None]:
        return [key.holder.quota for key in store.all() if key.holder.client == client]

    assert quotas_of("acme") == [500, 500], "a further key does not bypass the quota"
    assert quotas_of("other") == [None]
    assert store.set_quota("acme", 700)
    assert quotas_of("acme") == [700, 700]
    store.create("acme", quota=800)
    assert quotas_of("acme") == [800, 800, 800]
    assert store.set_quota("acme", None)
    assert quotas_of("acme") == [None] * 3
    assert not store.set_quota("nobody", 5)


def test_a_file_of_keys_of_an_earlier_version_gets_quotas(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    store.create("acme")
    with closing(sqlite3.connect(store.path)) as old:
        old.execute("DROP TABLE quotas")
    assert [key.holder.quota for key in store.all()] == [None]
    assert store.set_quota("acme", 5)
    assert [key.holder.quota for key in store.all()] == [5]


async def test_exported_keys_have_the_quota_of_their_client(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    key, free = store.create("acme", quota=500), store.create("other")
    exported = json.loads(export(store.all()))
    assert exported[key.split("_")[1]]["quota"] == "500/month"
    keys = configured_keys(exported)
    assert (await keys.holder(key)).quota == 500
    assert (await keys.holder(free)).quota is None


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"quota": "500/day"}, "b.quota: expected a quota such as 100000/month"),
        ({"quota": "600/month"}, "b.quota: all keys of the client 'acme' must have the same quota"),
        ({}, "b.quota: all keys of the client 'acme' must have the same quota"),
    ],
)
def test_configured_keys_of_a_client_must_have_the_same_quota(other: dict[str, str], message: str) -> None:
    key = {"client": "acme", "hash": "0" * 64}
    with pytest.raises(ValueError, match=r"^[ab]\.quota") as error:
        configured_keys({"b": key | other, "a": key | {"quota": "500/month"}})
    assert str(error.value) == message


@pytest.mark.parametrize("text", ["0/month", "-5/month", "5", "5/day", "5/months", "1e3/month", " 5/month", "٥/month"])
def test_a_wrong_quota_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a quota such as 100000/month, not"):
        monthly_quota(text)
    with pytest.raises(argparse.ArgumentTypeError, match="expected a quota such as 100000/month, not"):
        monthly(text)


def test_the_command_sets_and_prints_quotas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = Keys(tmp_path / "keys.sqlite", capsys, STORE=str(tmp_path / "service.sqlite3"))
    keys("create", "acme", "--quota", "500/month")
    assert "  quota 500/month" in keys("list")[1]
    shown = f"500/month  used 0  resets at {usage._next_month():%Y-%m-%dT%H:%M:%SZ}\n"
    assert keys("quota", "acme") == (0, shown, "")
    assert keys("quota", "acme", "700/month") == (0, "", "")
    assert keys("quota", "acme")[1].startswith("700/month  used 0")
    assert keys("quota", "acme", "none") == (0, "", "")
    assert keys("quota", "acme") == (0, "none\n", "")
    assert "quota" not in keys("list")[1]
    missing = "No valid key belongs to the client 'nobody'. 'scrapy keys list' prints all clients.\n"
    assert keys("quota", "nobody", "5/month") == (1, "", missing)
    assert keys("quota", "nobody") == (1, "", missing)
    problem = "expected a quota such as 100000/month, not '5'. To remove the quota, use none instead of a number."
    assert keys("quota", "acme", "5")[::2] == (2, problem)


# The service


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, KeyStore]]:
    folder = tmp_path_factory.mktemp("quotas")
    keys = KeyStore(folder / "keys.sqlite")
    keys.create("operator")
    with sandbox() as settings:
        given = [f"{name}={value}" for name, value in (settings | {"KEYS_FILE": keys.path}).items()]
        with running(folder / "log", *given, sandbox=False) as service:
            yield service, keys


def used(service: Service, key: str) -> dict[str, Any]:
    reply = call(service.url, "/v1/usage", method="GET", headers={"X-API-Key": key})
    return reply.body["quota"] or {}


def test_a_call_over_the_quota_is_refused_until_the_quota_is_raised(limited: tuple[Service, KeyStore]) -> None:
    service, keys = limited
    first, second = keys.create("small", quota=1), keys.create("small")

    def search(key: str) -> str:
        return call(service.url, SEARCH, {"query": "mustard"}, headers=HEADERS | {"X-API-Key": key}).code

    assert search(first) == "OK"
    state = used(service, first)
    assert (state["limit"], state["used"]) == (1, 1)
    assert datetime.fromisoformat(state["resets_at"]) == usage._next_month()
    assert search(second) == "QUOTA_EXCEEDED"
    assert keys.set_quota("small", 2)
    assert search(second) == "OK"
    assert keys.set_quota("small", None)
    assert search(first) == "OK"
    assert used(service, first) == {}


def test_an_accepted_job_is_finished_beyond_the_quota(limited: tuple[Service, KeyStore]) -> None:
    service, keys = limited
    key = keys.create("batch", quota=2)
    lines = "query\n" + "".join(f"mustard {number}\n" for number in range(5))
    headers = {"X-API-Key": key, "Content-Type": "text/csv", "Prefer": "wait=120"}
    made = call(service.url, "/v1/jobs?scraper=retail-search-v4", lines.encode(), headers=headers)
    assert (made.status, made.body["job"]["state"]) == (202, "done")
    assert made.headers["preference-applied"] == "wait=120"
    assert made.body["job"]["targets"]["done"] == 5
    assert used(service, key).items() >= {"limit": 2, "used": 5}.items()
