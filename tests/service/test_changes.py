"""``GET /v1/jobs/{job_id}/changes``: pages of what has changed since the earlier jobs of the same name."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from python_calamine import CalamineWorkbook
from scrapy.settings import Settings

from crawler.errors import JobNotFound
from crawler.jobs.changes import Comparison
from crawler.jobs.job import JobError
from crawler.jobs.lifecycle import Jobs
from crawler.outputs.formats import SERVED
from crawler.service.jobs import records
from crawler.service.limits import Turns
from tests.jobs.test_changes import SEARCH, page, run
from tests.service.client import call
from tests.service.conftest import running

CLIENT = "sandbox"
NOW = {"products__0__name": "new", "products__0__price__current_price": 0.5}


class Made(NamedTuple):
    url: str
    second: int


async def fill(location: Path) -> int:
    """Make two runs that are done, of four targets each. Return the id of the second one."""
    jobs = Jobs(str(location))
    await run(jobs, SEARCH, page(SEARCH, "A"), owner=CLIENT, targets=("a", "b", "c", "gone"))
    second = await run(jobs, SEARCH, page(SEARCH, "A", **NOW), owner=CLIENT, targets=("a", "b", "c", "new"))
    await jobs.close()
    return second.id


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("changes")
    second = asyncio.run(fill(folder / "service.sqlite3"))
    with running(folder / "log") as service:
        yield Made(service.url, second)


def read(made: Made, query: str) -> tuple[list[tuple[str, str, str]], str]:
    """Return the kind, the target and the path of each change, and the next cursor."""
    reply = call(made.url, f"/v1/jobs/{made.second}/changes{query}", method="GET")
    assert reply.status == 200
    found = [json.loads(line) for line in (reply.body or b"").splitlines()]
    return [(each["change"], each["id"], each["path"]) for each in found], reply.headers["x-next-cursor"]


def of_target(name: str) -> list[tuple[str, str, str]]:
    return [("changed", name, "name"), ("changed", name, "price.current_price")]


EXPECTED = [*of_target("a"), *of_target("b"), *of_target("c"), ("added", "new", ""), ("removed", "gone", "")]


@pytest.mark.parametrize("query", ["", "limit=1&", "limit=3&", "limit=4&"])
def test_pages_have_all_changes_once(made: Made, query: str) -> None:
    found, cursor = read(made, f"?{query}")
    before = None
    while cursor != before:
        before = cursor
        more, cursor = read(made, f"?{query}after={cursor}")
        found += more
    assert (found, cursor) == (EXPECTED, f"{made.second}.4")


def rows_of(book: bytes) -> list[dict[Any, Any]]:
    keys, *rows = CalamineWorkbook.from_filelike(io.BytesIO(book)).get_sheet_by_name("changes").to_python()
    return [dict(zip(keys, row, strict=True)) for row in rows]


@pytest.mark.parametrize(("coding", "form"), [("gzip", "csv"), ("", "json"), ("", "xlsx")])
def test_changes_have_formats_and_codings(made: Made, coding: str, form: str) -> None:
    headers = {"X-API-Key": CLIENT, "Accept-Encoding": coding}
    reply = call(made.url, f"/v1/jobs/{made.second}/changes?format={form}", method="GET", headers=headers)
    body = gzip.decompress(reply.body) if coding else reply.body
    rows = body if isinstance(body, list) else rows_of(body) if form == "xlsx" else None
    rows = list(csv.DictReader(body.decode().splitlines())) if rows is None else rows
    assert [(each["change"], each["id"], each["path"]) for each in rows] == EXPECTED


def threads() -> int:
    """Return the number of threads of stores."""
    return sum(each.name == "store" for each in threading.enumerate())


async def test_the_comparisons_of_a_client_take_turns(tmp_path: Path) -> None:
    jobs = Jobs(str(tmp_path / "store.sqlite3"))
    made: dict[str, Any] = {}
    for client in ("acme", "other"):
        for values in ({}, NOW):
            made[client] = await run(jobs, SEARCH, page(SEARCH, "A", **values), owner=client, targets=("a",))
    of: Any = SimpleNamespace(jobs=jobs, settings=Settings(), comparing=Turns(4, of_client=1))

    async def begun(client: str) -> tuple[Any, asyncio.Future[bytes]]:
        job = made[client]
        pieces = await records.changes(of, job, Comparison(job, await jobs.earlier(job)), SERVED["jsonl"])
        return pieces, asyncio.ensure_future(anext(pieces))

    before = threads()
    (first, one), (second, two), (other, three) = [await begun(client) for client in ("acme", "acme", "other")]
    assert (await one, await three) == (await one,) * 2
    assert not two.done()
    assert threads() == before + 2
    await first.aclose()  # the client leaves before the end
    assert threads() == before + 1, "its connection to the store is closed"
    assert await two == await one
    for each in (second, other):
        await each.aclose()
    await jobs.close()


@pytest.mark.parametrize("form", ["jsonl", "xlsx"])
@pytest.mark.parametrize("content", ["records", "changes", "changes of the removed run"])
async def test_a_response_of_a_run_that_is_removed_meanwhile_is_not_complete(
    tmp_path: Path, content: str, form: str
) -> None:
    """A later run that is done removes earlier ones. What is left of their rows must not look like all of them."""
    jobs = Jobs(str(tmp_path / "store.sqlite3"))
    first = await run(jobs, SEARCH, page(SEARCH, "A"), owner="acme", targets=("a", "b"))
    second = await run(jobs, SEARCH, page(SEARCH, "A", **NOW), owner="acme", targets=("a", "b"))
    turns = Turns(4, of_client=1)
    of: Any = SimpleNamespace(jobs=jobs, settings=Settings(), comparing=turns, writing=turns)
    removed = first if content == "changes" else second
    comparison = Comparison(second, await jobs.earlier(second))

    async def read() -> list[bytes]:
        if content == "records":
            pieces = await records.records(of, second, records.Selected(form, until=second.seq), {})
        else:
            pieces = await records.changes(of, second, comparison, SERVED[form])
        return [each async for each in pieces]

    assert await read()
    comparison = Comparison(second, await jobs.earlier(second))
    await jobs.remove(removed)
    with pytest.raises(JobNotFound if form == "xlsx" else JobError, match=f"{removed.id} was removed"):
        await read()
    await jobs.close()
