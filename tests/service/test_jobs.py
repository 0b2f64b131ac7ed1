"""Jobs over HTTP: uploads, their lines, the routes of a job, records and failures."""

from __future__ import annotations

import asyncio
import csv
import gc
import gzip
import io
import json
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers
from twisted.web.server import Request
from twisted.web.test.requesthelper import DummyChannel

from crawler.errors import ScrapeError, StoreUnavailable
from crawler.jobs import intake
from crawler.jobs.job import Job, JobError
from crawler.jobs.lifecycle import Jobs
from crawler.sandbox.retail.site import Site as Shop
from crawler.service.jobs.client_jobs import tend
from crawler.service.jobs.models import FailureLine, RecordLine
from crawler.service.jobs.uploads import Upload, Uploads
from crawler.service.keys import Holder
from crawler.service.responses import ResponseWriter, send_pieces
from tests.service.client import HEADERS, SEARCH, Reply, call
from tests.service.conftest import Service, running
from tests.targets.workbooks import workbook

CSV = (
    "id,scraper,query,username,team\n"
    "a1,retail-search-v4,mustard,,=1+1\n"
    "a2,microblog-profile,,quiet_harbor,north\n"
    "a3,retail-search-v4,,,east\n"
    "a4,nosuch,x,,\n"
    "007,retail-search-v4,mustard,,south\n"
)


def post(url: str, body: bytes, media_type: str, path: str = "/v1/jobs", **headers: str) -> Reply:
    """Send targets to the service in a POST request."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(url, path, body, headers={"X-API-Key": "sandbox", "Content-Type": media_type, **named})


def get(url: str, path: str, method: str = "GET", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(url, path, method=method, headers={"X-API-Key": "sandbox", **named})


def lines_of(reply: Reply) -> list[dict[str, Any]]:
    """Return the lines of a response in JSON Lines."""
    return [json.loads(line) for line in (reply.body or b"").splitlines()]


def ended(url: str, job_id: str) -> dict[str, Any]:
    """Wait until a job has ended, and return it."""
    deadline = time.monotonic() + 300
    while (job := get(url, f"/v1/jobs/{job_id}").body)["state"] != "done" or job["targets"]["waiting"]:
        assert time.monotonic() < deadline, job
        time.sleep(0.05)
    return dict(job)


@dataclass
class Made:
    url: str
    id: str
    reply: Reply

    def get(self, route: str, method: str = "GET", **headers: str) -> Reply:
        return get(self.url, f"/v1/jobs/{self.id}/{route}", method, **headers)


@pytest.fixture(scope="module")
def made(service: Service) -> Made:
    """A finished job whose file has three lines with two different targets, and two invalid lines."""
    reply = post(service.url, CSV.encode(), "text/csv; charset=utf-8", Idempotency_Key="nightly")
    assert reply.status == 202
    job_id = reply.body["job"]["job_id"]
    ended(service.url, job_id)
    return Made(service.url, job_id, reply)


# Uploads


def test_an_upload_is_accepted_with_its_invalid_lines(made: Made) -> None:
    body = made.reply.body
    assert made.reply.headers["location"] == f"/v1/jobs/{made.id}"
    assert (body["valid"], body["invalid"], body["records_at_most"]) == (3, 2, 3)
    assert [(each["line"], each["code"]) for each in body["invalid_lines"]] == [
        (4, "INVALID_REQUEST"),
        (5, "SCRAPER_NOT_FOUND"),
    ]


LINK = "https://x.com/quiet_harbor"
UPLOADS = {
    "text/plain": f"{LINK}\nhttps://www.walmart.com/browse/food/976759\n".encode(),
    "application/json": json.dumps([{"url": LINK}, {"scraper": "retail-search-v4", "query": "tea"}]).encode(),
    "application/x-ndjson": f'{{"url": "{LINK}"}}\n{{"scraper": "retail-search-v4", "query": "tea"}}\n'.encode(),
    "application/jsonl": f'{{"url": "{LINK}"}}\n{{"scraper": "retail-search-v4", "query": "tea"}}\n'.encode(),
    "text/csv": f"url\n{LINK}\nhttps://www.walmart.com/browse/food/976759\n".encode(),
    "text/tab-separated-values": f"url\tnote\n{LINK}\ta, b\nhttps://www.walmart.com/browse/food/976759\t\n".encode(),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": workbook(
        ["url"], [LINK], ["https://www.walmart.com/browse/food/976759"]
    ),
}


@pytest.mark.parametrize("media_type", UPLOADS)
def test_each_format_is_read_and_a_dry_run_makes_no_job(service: Service, media_type: str) -> None:
    before = get(service.url, "/v1/jobs").body
    reply = post(service.url, UPLOADS[media_type], media_type, "/v1/jobs?dry_run=true")
    assert (reply.status, reply.body["job"], reply.body["valid"], reply.body["invalid"]) == (200, None, 2, 0)
    assert get(service.url, "/v1/jobs").body == before


def test_an_idempotency_key_makes_one_job(made: Made) -> None:
    again = post(made.url, CSV.encode(), "text/csv; charset=utf-8", Idempotency_Key="nightly")
    assert again.status == 202, again.body
    assert again.body["job"]["job_id"] == made.id
    assert again.headers["idempotent-replayed"] == "true"
    assert again.body["invalid_lines"] == made.reply.body["invalid_lines"]


def test_the_runs_of_a_named_job(service: Service) -> None:
    path = "/v1/jobs?name=daily%20prices&keep=1"
    dry = post(service.url, LINK.encode(), "text/plain", f"{path}&dry_run=true")
    assert (dry.body["job"], dry.body["previous"]) == (None, None)
    made = post(service.url, LINK.encode(), "text/plain", path, Idempotency_Key="monday")
    first = made.body["job"]
    assert (made.status, first["name"], first["run"], made.body["previous"]) == (202, "daily prices", 1, None)
    ended(service.url, first["job_id"])
    again = post(service.url, LINK.encode(), "text/plain", path, Idempotency_Key="monday")
    assert (again.body["job"]["job_id"], again.body["job"]["revision"]) == (first["job_id"], 1)
    second = post(service.url, b"https://x.com/nasa", "text/plain", path)
    assert (second.status, second.body["job"]["run"], second.body["previous"]) == (202, 2, first["job_id"])
    ended(service.url, second.body["job"]["job_id"])
    url = f"/v1/jobs/{first['job_id']}/runs"
    third = post(service.url, b"", "application/json", url, Idempotency_Key="tuesday")
    assert (third.status, third.body["job"]["run"]) == (202, 3), third.body
    assert third.body["previous"] == second.body["job"]["job_id"]
    assert third.headers["location"].endswith(f"/v1/jobs/{third.body['job']['job_id']}")
    again = post(service.url, b"", "application/json", url, Idempotency_Key="tuesday")
    assert again.body["job"]["job_id"] == third.body["job"]["job_id"]
    shown = ended(service.url, third.body["job"]["job_id"])
    assert (shown["previous"], shown["scrapers"]) == (second.body["job"]["job_id"], ["microblog-profile"])
    for each in (first, shown):
        (record,) = lines_of(get(service.url, f"/v1/jobs/{each['job_id']}/records"))
        assert record["params"]["username"] == "quiet_harbor"
    listed = get(service.url, "/v1/jobs?name=daily%20prices").body["jobs"]
    assert [each["run"] for each in listed] == [3, 2, 1]


# Listings


CATEGORY = {"scraper": "retail-category-v4", "cat_id": "4044_28310"}
CHANNEL = {"scraper": "videosite-profile", "username": "@harborlights"}
UNKNOWN_REQUESTS = "The number of requests of videosite-profile depends on its pages."
EXHAUSTIVE_REASON = "An exhaustive listing has as many pages as the platform states."


@pytest.mark.parametrize(
    ("body", "query", "cost"),
    [
        ({**CATEGORY, "max_pages": 3}, "", [3, 3, None]),
        ([CATEGORY, CHANNEL], "max_pages=2&", [4, None, UNKNOWN_REQUESTS]),
        ([CATEGORY, {"url": LINK}], "max_pages=2&", [4, 2 * (1 + 9), None]),
        ({"url": "https://www.linkedin.com/in/mara-lindqvist"}, "", [1, 1, None]),
        ({"url": "https://www.instagram.com/p/DaSandbox01/"}, "", [1, 4, None]),
        ({"scraper": "shortvideo-photo-search-v4", "keywords": "whales"}, "", [1, 1, None]),
        ({**CATEGORY, "exhaustive": True}, "", [None, None, EXHAUSTIVE_REASON]),
        ([CATEGORY], "exhaustive=false&", [1, 1, None]),
    ],
)
def test_the_cost_is_known_before_a_job_is_made(service: Service, body: Any, query: str, cost: list[Any]) -> None:
    reply = post(service.url, json.dumps(body).encode(), "application/json", f"/v1/jobs?{query}dry_run=true")
    assert reply.status == 200, reply.body
    assert [reply.body[key] for key in ("records_at_most", "requests_at_most", "no_limit_because")] == cost


def listing(service: Service, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a job of one listing to its end. Return the job and its records."""
    made = post(service.url, json.dumps(body).encode(), "application/json")
    assert made.status == 202, made.body
    job_id = made.body["job"]["job_id"]
    return ended(service.url, job_id), lines_of(get(service.url, f"/v1/jobs/{job_id}/records"))


def test_the_pages_of_a_listing_are_records_of_one_job(service: Service) -> None:
    job, found = listing(service, {**CATEGORY, "max_pages": 3})
    assert [each["data"]["page"] for each in found] == [1, 2, 3]
    assert job["arguments"] == {"max_pages": 3}
    assert job["codes"] == {"OK": 3}
    usage = get(service.url, "/v1/usage").body
    again, _ = listing(service, {**CATEGORY, "max_pages": 2})
    assert again["state"] == "done"
    assert get(service.url, "/v1/usage").body["billable"] == usage["billable"] + 2


def test_an_exhaustive_listing_has_each_product_once(service: Service) -> None:
    job, found = listing(service, {**CATEGORY, "exhaustive": True})
    ids = [each["item_id"] for line in found for each in line["data"]["products"]]
    priced, unpriced = Shop().products_of(CATEGORY["cat_id"])
    assert len(ids) == len(set(ids))
    assert set(ids) == priced | unpriced
    assert {line["root"] for line in found} == {found[0]["id"]}
    assert job["coverage"] is None


# A job


def test_a_job_has_its_counts_and_codes(made: Made) -> None:
    job = get(made.url, f"/v1/jobs/{made.id}").body
    assert job["state"] == "done"
    assert job["idempotency_key"] == "nightly"
    assert (job["targets"]["total"], job["targets"]["done"], job["targets"]["failed"]) == (4, 2, 2)
    assert job["codes"] == {"OK": 2, "INVALID_REQUEST": 1, "SCRAPER_NOT_FOUND": 1}
    assert job["scrapers"] == ["microblog-profile", "retail-search-v4"]


IDS = ["a1", "007", "a2"]


def test_each_format_has_a_line_for_each_valid_line_of_the_upload(made: Made) -> None:
    reply = made.get("records?format=jsonl")
    assert (reply.status, reply.headers["x-next-cursor"]) == (200, f"{made.id}.4")
    assert sorted(each["id"] for each in lines_of(reply)) == sorted(IDS)
    assert made.get("records?format=json").body == lines_of(reply)
    assert made.get("records?format=xlsx").body.startswith(b"PK")
    rows = lines_of(made.get("records?scraper=retail-search-v4&explode=products"))
    assert len(rows) > len({each["target_id"] for each in rows}) == 2
    selected = lines_of(made.get("records?fields=breadcrumbs"))
    assert [list(each["data"]) for each in selected] == [["breadcrumbs"]] * 2


@pytest.mark.parametrize(
    ("accept", "query", "media_type"),
    [
        ("text/csv", "", "text/csv"),
        ("application/json", "", "application/json"),
        ("application/json, text/plain, */*", "", "application/x-ndjson"),
        ("text/html", "", "application/x-ndjson"),
        ("text/csv;q=0.1, application/json;q=0.9", "", "application/json"),
        ("text/csv", "&format=json", "application/json"),
    ],
)
def test_accept_selects_the_format(made: Made, accept: str, query: str, media_type: str) -> None:
    for route in (f"records?scraper=retail-search-v4{query}", f"failures?code=SCRAPER_NOT_FOUND{query}"):
        reply = made.get(route, Accept=accept)
        assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (200, media_type)
        assert "Accept," in reply.headers["vary"]


def test_lines_have_the_keys_of_their_models(made: Made) -> None:
    for route, model in (("records", RecordLine), ("failures", FailureLine)):
        found = made.get(f"{route}?format=json").body
        assert found
        for line in found:
            assert model.model_validate(line).model_dump(exclude_unset=True).keys() == line.keys()


def test_a_cursor_continues_where_the_last_response_ended(made: Made) -> None:
    cursor = f"{made.id}.0"
    found: dict[str, list[str]] = {"records": [], "failures": []}
    for _ in range(4):
        for route, ids in found.items():
            reply = made.get(f"{route}?limit=1&after={cursor}")
            ids += [line["id"] for line in lines_of(reply)]
        cursor = reply.headers["x-next-cursor"]
    assert (sorted(found["records"]), sorted(found["failures"])) == (sorted(IDS), ["a3", "a4"])
    assert made.get(f"records?after={cursor}").body is None


def test_failures_have_the_line_of_the_upload(made: Made) -> None:
    lines = lines_of(made.get("failures?code=SCRAPER_NOT_FOUND"))
    assert [(each["id"], each["line"], each["code"]) for each in lines] == [("a4", 5, "SCRAPER_NOT_FOUND")]
    table = made.get("failures?format=csv").body.decode()
    found = [(row["id"], row["line"], row["columns.team"]) for row in csv.DictReader(io.StringIO(table))]
    assert found == [("a3", "4", "east"), ("a4", "5", "")]


def test_records_of_a_job_that_is_done_are_not_sent_twice_to_a_client_that_has_them(made: Made) -> None:
    plain, packed = made.get("records"), made.get("records", Accept_Encoding="gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["content-encoding"] == "gzip"
    tag = plain.headers["etag"]
    assert tag == packed.headers["etag"]
    assert tag.startswith("W/"), "the same content with another coding is not the same bytes"
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept, Accept-Encoding"
    assert made.get("records", If_None_Match=tag).status == 304
    assert made.get("records", "HEAD").body is None


def test_large_envelopes_are_compressed_if_the_client_accepts_it(service: Service) -> None:
    reply = call(service.url, SEARCH, {"query": "mustard"}, headers=HEADERS | {"Accept-Encoding": "gzip"})
    assert reply.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in reply.headers["vary"]
    whole = gzip.decompress(reply.body)
    assert json.loads(whole)["success"] is True
    assert len(reply.body) < len(whole) / 4


def test_the_newest_jobs_are_listed_first(service: Service) -> None:
    made = [post(service.url, b"https://x.com/nasa\n", "text/plain").body["job"]["job_id"] for _ in range(3)]
    first = get(service.url, "/v1/jobs?limit=2").body
    assert [each["job_id"] for each in first["jobs"]] == [made[2], made[1]]
    second = get(service.url, f"/v1/jobs?limit=100&after={first['next_after']}").body
    assert second["jobs"][0]["job_id"] == made[0]
    assert second["next_after"] is None


# Other clients, and the end of a job


def test_a_job_is_cancelled_and_then_deleted_with_its_records(service: Service) -> None:
    rows = "".join(f"slow {n}\n" for n in range(100))
    job_id = post(service.url, rows.encode(), "text/plain", "/v1/jobs?scraper=retail-search-v4").body["job"]["job_id"]
    assert get(service.url, f"/v1/jobs/{job_id}", "DELETE").status == 204
    job = get(service.url, f"/v1/jobs/{job_id}").body
    assert (job["state"], job["targets"]["waiting"]) == ("cancelled", 0)
    assert get(service.url, f"/v1/jobs/{job_id}", "DELETE").status == 204
    assert get(service.url, f"/v1/jobs/{job_id}").code == "JOB_NOT_FOUND"


def test_failed_targets_are_retried_and_lines_that_are_no_targets_are_not(service: Service) -> None:
    blocked = "https://www.walmart.com/search?q=challenge"
    body = f"{LINK}\nhttps://x.com/nobody_here\nnothing to scrape\n{blocked}\n{LINK}\n".encode()
    job_id = post(service.url, body, "text/plain").body["job"]["job_id"]
    first = ended(service.url, job_id)
    found = [(each["code"], each["count"], each["retryable"]) for each in first["failures"]]
    assert found == [("INVALID_REQUEST", 1, False), ("TARGET_NOT_FOUND", 1, False), ("UPSTREAM_BLOCKED", 1, True)]
    assert [[(each["line"], each["code"]) for each in code["examples"]] for code in first["failures"]] == [
        [(3, "INVALID_REQUEST")],
        [(2, "TARGET_NOT_FOUND")],
        [(4, "UPSTREAM_BLOCKED")],
    ]
    assert (first["repeated"], first["partial"]) == (1, 0)
    for query, retried in (("", 1), ("?all=true", 2)):
        reply = call(service.url, f"/v1/jobs/{job_id}/retry{query}", method="POST")
        assert (reply.status, reply.body["retried"]) == (202, retried)
        assert ended(service.url, job_id)["targets"] == first["targets"]


FIRST_LISTING_FAILS = """
from scrapy.crawler import AsyncCrawlerRunner
crawl, failing = AsyncCrawlerRunner.crawl, []
async def fail_first(self, crawler, **arguments):
    if "job" not in arguments:
        return await crawl(self, crawler, **arguments)
    failing[:] = failing or [arguments["job"]]
    if arguments["job"] in failing:
        raise ZeroDivisionError
    return await crawl(self, crawler, **arguments)
AsyncCrawlerRunner.crawl = fail_first
"""


def test_a_listing_that_fails_does_not_hold_back_the_next_one(tmp_path: Path) -> None:
    with running(tmp_path / "log", before=FIRST_LISTING_FAILS) as service:
        body = json.dumps({**CATEGORY, "max_pages": 1}).encode()
        made = [post(service.url, body, "application/json").body["job"]["job_id"] for _ in range(2)]
        assert ended(service.url, made[1])["state"] == "done"
        assert get(service.url, f"/v1/jobs/{made[0]}").body["targets"]["waiting"] == 1


STOPPED_WHILE_A_LISTING_OPENS = """
import os, signal
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
crawl = AsyncCrawlerRunner.crawl
async def stop_first(self, crawler, **arguments):
    if "job" in arguments:
        stop = lambda: os.kill(os.getpid(), signal.SIGTERM)
        crawler.signals.connect(stop, signals.spider_opened, weak=False) if AT_OPENING else stop()
    return await crawl(self, crawler, **arguments)
AsyncCrawlerRunner.crawl = stop_first
"""


@pytest.mark.parametrize(
    "at_opening", [pytest.param(False, id="before", marks=pytest.mark.soak), pytest.param(True, id="while it opens")]
)
def test_an_endpoint_ends_although_a_listing_starts_at_that_moment(tmp_path: Path, *, at_opening: bool) -> None:
    slow = 'PLATFORM_BUDGETS={"retail": {"concurrency": 1, "delay": 120}}'
    before = f"AT_OPENING = {at_opening}\n{STOPPED_WHILE_A_LISTING_OPENS}"
    with running(tmp_path / "log", slow, before=before) as service:
        post(service.url, json.dumps({**CATEGORY, "exhaustive": True}).encode(), "application/json")
        assert service.process.wait(60) == 0, service.logged()


# Uploads that do not become jobs


@pytest.fixture
def uploads(sqlite_store: str) -> Iterator[Uploads]:
    jobs = Jobs(sqlite_store)
    yield Uploads(jobs, 10, sandbox=True)
    asyncio.run(jobs.close())


def make_nightly(uploads: Uploads) -> Awaitable[tuple[Job, Any]]:
    upload = Upload(io.BytesIO(CSV.encode()), "text/csv", key="nightly")
    return uploads.make(Holder("acme", "key"), upload, "name")


async def interrupted(*_: object, **__: object) -> None:
    raise asyncio.CancelledError


async def jobs_of(uploads: Uploads) -> list[Job]:
    return [job async for job in uploads.jobs.every()]


async def test_an_interrupted_upload_is_repeated_before_its_removal_has_ended(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(_: Job) -> None:
        await asyncio.Future()

    with monkeypatch.context() as patched:
        patched.setattr("crawler.jobs.intake.push", interrupted)
        patched.setattr(uploads.jobs, "remove", killed)
        with pytest.raises(asyncio.CancelledError):  # it does not wait for the removal
            await make_nightly(uploads)
    assert await uploads.jobs.newest("acme", 9) == []
    made, contents = await make_nightly(uploads)
    assert (made.state, contents is not None) == ("open", True)
    assert await make_nightly(uploads) == (made, None)


@pytest.mark.parametrize(("key", "code"), [(None, "JOB_NOT_DONE"), ("nightly", "IDEMPOTENCY_IN_PROGRESS")])
async def test_a_slow_upload_whose_name_was_given_away_is_refused(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch, key: str | None, code: str
) -> None:
    push = intake.push

    async def slow(of: Jobs, job: Job, *given: Any, **own: Any) -> int:
        await of.mark_removed(job)
        return await push(of, job, *given, **own)

    monkeypatch.setattr("crawler.jobs.intake.push", slow)
    upload = Upload(io.BytesIO(CSV.encode()), "text/csv", key=key)
    with pytest.raises(ScrapeError) as refused:
        await uploads.make(Holder("acme", "key"), upload, "name")
    assert refused.value.code == code
    assert ("Idempotency-Key" in refused.value.message) == (key is not None)


@pytest.mark.parametrize(
    ("body", "media_type", "problem"),
    [
        (json.dumps({"": 10**30}).encode(), "application/json", "cannot be stored"),
        (b"query\nM\xfcsli\n", "text/csv", "charset=cp1252"),
        (b"query\n" + b"\n" * 70_000 + b"M\xfcsli\n", "text/csv", "Line 70002 of upload .* charset=cp1252"),
        (b'{"query": "M\xfcsli"}\n', "application/x-ndjson", "charset=cp1252"),
        ("Müsli".encode(), "text/plain; charset=cp1252", "leave out charset="),
        (gzip.compress(b"query\nx\n", mtime=0), "text/csv", "Send it without compression"),
        (b"BZh9", "text/csv", "Send it without compression"),
    ],
    ids=range(7),  # a body is long
)
async def test_an_upload_that_cannot_be_read_or_stored_leaves_no_job(
    uploads: Uploads, body: bytes, media_type: str, problem: str
) -> None:
    upload = Upload(io.BytesIO(body), media_type)
    with pytest.raises(ScrapeError, match=problem):
        await uploads.make(Holder("acme", "key"), upload, "name")
    await asyncio.gather(*uploads.removals)
    assert await jobs_of(uploads) == []


async def test_the_upkeep_repeats_a_removal_that_the_store_did_not_allow(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def unavailable(_: Job) -> None:
        raise StoreUnavailable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr("crawler.jobs.intake.push", interrupted)
        patched.setattr(uploads.jobs, "remove", unavailable)
        with pytest.raises(asyncio.CancelledError):
            await make_nightly(uploads)
        if uploads.removals:
            await asyncio.wait(uploads.removals)
    gc.collect()  # asyncio logs exceptions that nothing has retrieved
    assert not caplog.records
    assert len(await jobs_of(uploads)) == 1
    await tend(uploads.jobs, 1.0)
    assert await jobs_of(uploads) == []


# Responses that are interrupted


async def pieces(error: Exception | None = None) -> AsyncIterator[bytes]:
    """A body whose second piece never comes, or fails."""
    yield b"first"
    if error:
        raise error
    await asyncio.Future()


@pytest.fixture
def request_in_progress() -> Request:
    request = Request(DummyChannel(), False)  # noqa: FBT003  # Twisted's
    request.requestHeaders = Headers()
    request.clientproto = b"HTTP/1.1"
    return request


async def test_a_client_that_leaves_during_a_response_is_no_error(request_in_progress: Request) -> None:
    sending = asyncio.ensure_future(send_pieces(request_in_progress, pieces()))
    while not request_in_progress.startedWriting:  # noqa: ASYNC110  # Twisted's request has no event
        await asyncio.sleep(0)
    request_in_progress.connectionLost(Failure(ConnectionDone()))
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


@pytest.mark.parametrize(
    ("error", "levels"),
    [
        (StoreUnavailable("The disk is full."), []),
        (JobError("The job 1 was removed while it was read."), ["warning"]),
        (ValueError("a bug"), ["error"]),
    ],
)
async def test_a_response_that_an_outage_or_a_removal_interrupts_has_no_traceback(
    request_in_progress: Request, error: Exception, levels: list[str]
) -> None:
    aborted: list[bool] = []
    request_in_progress.transport.abortConnection = lambda: aborted.append(True)  # type: ignore[union-attr]
    with capture_logs() as logs:
        await ResponseWriter().stream(request_in_progress, pieces(error))
    found = [(each["event"], each["log_level"], each.get("exc_info", False)) for each in logs]
    assert found == [("response_interrupted", level, level == "error") for level in levels]
    assert aborted
