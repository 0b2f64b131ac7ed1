"""Jobs over HTTP: uploads, their lines, the routes of a job, records and failures."""

from __future__ import annotations

import asyncio
import csv
import gc
import gzip
import io
import json
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openpyxl
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
from tests.service.client import Reply, call
from tests.service.conftest import Service, running

CSV = (
    "id,scraper,query,username,team\n"
    "a1,retail-search-v4,mustard,,=1+1\n"
    "a2,microblog-profile,,quiet_harbor,north\n"
    "a3,retail-search-v4,,,\n"
    "a4,nosuch,x,,\n"
    "007,retail-search-v4,mustard,,south\n"
)
ENVELOPE_BYTES = 2_048


def post(url: str, body: bytes, media_type: str, path: str = "/v1/jobs", **headers: str) -> Reply:
    """Send targets to the service in a POST request."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(url, path, body, headers={"X-API-Key": "sandbox", "Content-Type": media_type, **named})


def get(url: str, path: str, method: str = "GET") -> Reply:
    return call(url, path, method=method)


def raw(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return the status, headers and undecoded body of a response."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=300)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers={"X-API-Key": "sandbox", **named})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, body


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

    def path(self, route: str) -> str:
        return f"/v1/jobs/{self.id}/{route}"


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


def workbook(rows: list[list[str]]) -> bytes:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


LINK = "https://x.com/quiet_harbor"
BLOCKED = "https://www.walmart.com/search?q=challenge"
UPLOADS = {
    "text/plain": f"{LINK}\nhttps://www.walmart.com/browse/food/976759\n".encode(),
    "application/json": json.dumps([{"url": LINK}, {"scraper": "retail-search-v4", "query": "tea"}]).encode(),
    "application/x-ndjson": f'{{"url": "{LINK}"}}\n{{"scraper": "retail-search-v4", "query": "tea"}}\n'.encode(),
    "text/csv": f"url\n{LINK}\nhttps://www.walmart.com/browse/food/976759\n".encode(),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": workbook(
        [["url"], [LINK], ["https://www.walmart.com/browse/food/976759"]]
    ),
}


@pytest.mark.parametrize("media_type", UPLOADS)
def test_each_format_is_read_and_a_dry_run_makes_no_job(service: Service, media_type: str) -> None:
    before = get(service.url, "/v1/jobs").body
    reply = post(service.url, UPLOADS[media_type], media_type, "/v1/jobs?dry_run=true")
    assert (reply.status, reply.body["job"], reply.body["valid"], reply.body["invalid"]) == (200, None, 2, 0)
    assert [each["job_id"] for each in get(service.url, "/v1/jobs").body["jobs"]] == [
        each["job_id"] for each in before["jobs"]
    ]


@pytest.mark.parametrize(
    ("body", "media_type", "code", "text"),
    [
        (b"", "text/csv", "INVALID_REQUEST", "no valid target"),
        (b"id,scraper,query\n1,retail-search-v4,\n", "text/csv", "INVALID_REQUEST", "Line 2 of upload:"),
        (b"\xff\xfe\xfd", "text/plain", "INVALID_REQUEST", "body: upload"),
        (b"PK\x03\x04", "text/csv", "INVALID_REQUEST", "a spreadsheet or an archive"),
        (b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "INVALID_REQUEST", ""),
        (LINK.encode(), "text/html", "UNSUPPORTED_MEDIA_TYPE", "text/csv"),
        (LINK.encode(), "text/plain; charset=klingon", "INVALID_REQUEST", "klingon"),
    ],
)
def test_an_upload_without_a_target_is_refused_and_leaves_no_job(
    service: Service, body: bytes, media_type: str, code: str, text: str
) -> None:
    jobs = [each["job_id"] for each in get(service.url, "/v1/jobs").body["jobs"]]
    reply = post(service.url, body, media_type)
    assert reply.code == code
    assert text in reply.body["error"]["message"]
    assert "/tmp" not in json.dumps(reply.body)  # noqa: S108  # no path of the server
    assert "/dev/shm" not in json.dumps(reply.body)  # noqa: S108
    assert [each["job_id"] for each in get(service.url, "/v1/jobs").body["jobs"]] == jobs


def test_an_error_lists_a_few_of_many_unknown_columns_once(service: Service) -> None:
    columns = ",".join(f"zzz{number}" for number in range(1_000))
    reply = post(service.url, f"{columns}\n1\n".encode(), "text/csv")
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    error = reply.body["error"]
    assert error["message"].count("zzz") == 5
    assert "and 995 more" in error["message"]
    assert "zzz" not in json.dumps(error["details"])


def test_an_idempotency_key_makes_one_job(made: Made) -> None:
    again = post(made.url, CSV.encode(), "text/csv; charset=utf-8", Idempotency_Key="nightly")
    assert again.status == 202, again.body
    assert again.body["job"]["job_id"] == made.id
    assert again.headers["idempotent-replayed"] == "true"
    assert again.body["invalid_lines"] == made.reply.body["invalid_lines"]
    other = post(made.url, LINK.encode(), "text/plain", Idempotency_Key="nightly")
    assert other.code == "IDEMPOTENCY_MISMATCH"


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
    other = post(service.url, LINK.encode(), "text/plain", "/v1/jobs?name=other", Idempotency_Key="monday")
    assert other.code == "IDEMPOTENCY_MISMATCH"
    many = [{"scraper": "retail-search-v4", "query": f"mustard {number}"} for number in range(40)]
    second = post(service.url, json.dumps(many).encode(), "application/json", path)
    assert (second.status, second.body["job"]["run"], second.body["previous"]) == (202, 2, first["job_id"])
    refused = post(service.url, LINK.encode(), "text/plain", path)
    assert (refused.status, refused.code) == (409, "JOB_NOT_DONE")
    assert "Run 2 of the job 'daily prices' is open" in refused.body["error"]["message"]
    ended(service.url, second.body["job"]["job_id"])
    url = f"/v1/jobs/{first['job_id']}/runs"
    third = post(service.url, b"", "application/json", url, Idempotency_Key="tuesday")
    assert (third.status, third.body["job"]["run"]) == (202, 3), third.body
    assert third.body["previous"] == second.body["job"]["job_id"]
    assert third.headers["location"].endswith(f"/v1/jobs/{third.body['job']['job_id']}")
    again = post(service.url, b"", "application/json", url, Idempotency_Key="tuesday")
    assert again.body["job"]["job_id"] == third.body["job"]["job_id"]
    assert post(service.url, b"", "application/json", url, Idempotency_Key="monday").code == "IDEMPOTENCY_MISMATCH"
    shown = ended(service.url, third.body["job"]["job_id"])
    assert (shown["previous"], shown["scrapers"]) == (second.body["job"]["job_id"], ["microblog-profile"])
    found = [raw(service.url, f"/v1/jobs/{each['job_id']}/records")[2] for each in (first, shown)]
    assert [json.loads(each)["params"]["username"] for each in found] == ["quiet_harbor"] * 2
    listed = get(service.url, "/v1/jobs?name=daily%20prices").body["jobs"]
    assert [each["run"] for each in listed] == [3, 2, 1]


def test_a_name_that_cannot_be_stored_is_refused(service: Service) -> None:
    reply = post(service.url, LINK.encode(), "text/plain", "/v1/jobs?name=a%00b")
    assert (reply.code, reply.body["error"]["details"][0]["loc"]) == ("INVALID_REQUEST", ["name"])


# Listings


CATEGORY = {"scraper": "retail-category-v4", "cat_id": "4044_28310"}
CHANNEL = {"scraper": "videosite-profile", "username": "@harborlights"}
UNKNOWN_REQUESTS = "The number of requests of videosite-profile depends on its pages."
EXHAUSTIVE_REASON = "An exhaustive listing has as many pages as the platform states."


@pytest.mark.parametrize(
    ("body", "query", "records", "requests", "reason"),
    [
        ({**CATEGORY, "max_pages": 3}, "", 3, 3, None),
        ([CATEGORY, CHANNEL], "?max_pages=2", 4, None, UNKNOWN_REQUESTS),
        ([CATEGORY, {"url": LINK}], "?max_pages=2", 4, 2 * (1 + 9), None),
        ({"url": "https://www.linkedin.com/in/mara-lindqvist"}, "", 1, 1, None),
        ({"scraper": "professional-profile", "url": "https://www.linkedin.com/in/mara-lindqvist"}, "", 1, 1, None),
        ({"scraper": "retail-search-v4", "query": "mustard"}, "", 1, 1, None),
        ({"url": "https://www.instagram.com/p/DaSandbox01/"}, "", 1, 4, None),
        ({"scraper": "shortvideo-photo-search-v4", "keywords": "whales"}, "", 1, 1, None),
        ({**CATEGORY, "exhaustive": True}, "", None, None, EXHAUSTIVE_REASON),
        ([CATEGORY], "?exhaustive=false", 1, 1, None),
    ],
)
def test_the_cost_is_known_before_a_job_is_made(  # noqa: PLR0913, PLR0917  # a case
    service: Service, body: Any, query: str, records: int | None, requests: int | None, reason: str | None
) -> None:
    path = f"/v1/jobs{query}{'&' if query else '?'}dry_run=true"
    reply = post(service.url, json.dumps(body, indent=1).encode(), "application/json", path)
    assert reply.status == 200, reply.body
    cost = [reply.body[key] for key in ("records_at_most", "requests_at_most", "no_limit_because")]
    assert cost == [records, requests, reason]


@pytest.mark.parametrize(
    ("body", "query", "text"),
    [
        ({**CATEGORY, "max_pages": 0}, "", "max_pages: Input should be greater than or equal to 1"),
        ({**CATEGORY, "exhaustive": "yes"}, "", "exhaustive: expected true or false"),
        ({**CATEGORY, "exhaustive": [True]}, "", "exhaustive: expected true or false"),
        ({**CATEGORY, "max_pages": {"a": 1}}, "", "max_pages: Input should be a valid integer"),
        ({**CATEGORY, "max_pages": True}, "", "max_pages: Input should be a valid integer"),
        ({**CATEGORY, "since": 5}, "", "since: Input should be a valid string"),
        ([CATEGORY], "?max_pages=%EF%BC%93", "max_pages: Input should be a valid integer"),
        ([CATEGORY], "?since=", "since: '' is not a day"),
        ({"": 10**30}, "", "cannot be stored"),
        ({**CATEGORY, "since": "last"}, "", "sorted by newest first"),
        ({**CATEGORY, "exhaustive": True, "max_pages": 2}, "", "leave out max_pages"),
        ({"url": LINK}, "?exhaustive=true", "exhaustive"),
        ({"url": LINK, "since": "2026-13-01"}, "", "is not a day"),
        ({**CATEGORY, "x": "y" * 70_000}, "", "send an array"),
    ],
)
def test_a_listing_that_cannot_be_read_so_is_refused(service: Service, body: Any, query: str, text: str) -> None:
    before = get(service.url, "/v1/jobs").body
    reply = post(service.url, json.dumps(body).encode(), "application/json", f"/v1/jobs{query}")
    assert reply.code == "INVALID_REQUEST"
    assert text in reply.body["error"]["message"]
    assert len(get(service.url, "/v1/jobs").body["jobs"]) == len(before["jobs"])


def listing(service: Service, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a job of one listing to its end. Return the job and its records."""
    made = post(service.url, json.dumps(body).encode(), "application/json")
    assert made.status == 202, made.body
    job_id = made.body["job"]["job_id"]
    job = ended(service.url, job_id)
    _, _, text = raw(service.url, f"/v1/jobs/{job_id}/records")
    return job, [json.loads(line) for line in text.splitlines()]


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


def records(made: Made, query: str) -> bytes:
    status, headers, body = raw(made.url, made.path(f"records?{query}"))
    assert status == 200, body
    assert headers["x-next-cursor"] == f"{made.id}.4"
    return body


IDS = ["a1", "007", "a2"]


def test_jsonl_and_json_have_a_line_for_each_valid_line_of_the_upload(made: Made) -> None:
    lines = [json.loads(line) for line in records(made, "format=jsonl").splitlines()]
    assert sorted(each["id"] for each in lines) == sorted(IDS)
    assert json.loads(records(made, "format=json")) == lines
    assert records(made, "format=xlsx").startswith(b"PK")
    rows = [json.loads(line) for line in records(made, "scraper=retail-search-v4&explode=products").splitlines()]
    assert len(rows) > len({each["target_id"] for each in rows}) == 2
    selected = [json.loads(line) for line in records(made, "fields=breadcrumbs").splitlines()]
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
    for path in (f"records?scraper=retail-search-v4{query}", f"failures?code=SCRAPER_NOT_FOUND{query}"):
        status, headers, _ = raw(made.url, made.path(path), Accept=accept)
        assert (status, headers["content-type"].partition(";")[0]) == (200, media_type)
        assert "Accept," in headers["vary"]


def test_lines_have_the_keys_of_their_models(made: Made) -> None:
    for route, model in (("records", RecordLine), ("failures", FailureLine)):
        found = json.loads(raw(made.url, made.path(f"{route}?format=json"))[2])
        assert found
        for line in found:
            assert model.model_validate(line).model_dump(exclude_unset=True).keys() == line.keys()


def test_a_cursor_continues_where_the_last_response_ended(made: Made) -> None:
    cursor = f"{made.id}.0"
    ids: list[str] = []
    codes: list[str] = []
    for _ in range(4):
        for route, found in (("records", ids), ("failures", codes)):
            status, headers, body = raw(made.url, made.path(f"{route}?limit=1&after={cursor}"))
            assert status == 200
            found += [json.loads(line)["id"] for line in body.splitlines()]
        cursor = headers["x-next-cursor"]
    assert sorted(ids) == sorted(IDS)
    assert sorted(codes) == ["a3", "a4"]
    assert raw(made.url, made.path(f"records?after={cursor}"))[2] == b""


def test_failures_have_the_line_of_the_upload(made: Made) -> None:
    lines = [json.loads(line) for line in raw(made.url, made.path("failures?code=SCRAPER_NOT_FOUND"))[2].splitlines()]
    assert [(each["id"], each["line"], each["code"]) for each in lines] == [("a4", 5, "SCRAPER_NOT_FOUND")]
    table = raw(made.url, made.path("failures?format=csv"))[2].decode()
    assert [(row["id"], row["line"]) for row in csv.DictReader(io.StringIO(table))] == [("a3", "4"), ("a4", "5")]


def test_records_of_a_job_that_is_done_are_not_sent_twice_to_a_client_that_has_them(made: Made) -> None:
    path = made.path("records")
    _, plain, body = raw(made.url, path)
    _, packed, compressed = raw(made.url, path, Accept_Encoding="gzip")
    assert gzip.decompress(compressed) == body
    assert packed["content-encoding"] == "gzip"
    assert plain["etag"] == packed["etag"]
    assert plain["etag"].startswith("W/"), "the same content with another coding is not the same bytes"
    assert (plain["vary"], packed["vary"]) == ("Accept, Accept-Encoding",) * 2
    assert raw(made.url, path, If_None_Match=plain["etag"])[0] == 304
    assert raw(made.url, path, method="HEAD")[2] == b""


def test_large_envelopes_are_compressed_if_the_client_accepts_it(service: Service) -> None:
    parts = urlsplit(service.url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=300)
    headers = {"X-API-Key": "sandbox", "Content-Type": "application/json", "Accept-Encoding": "gzip"}
    connection.request("POST", "/v1/scrapers/retail-search-v4", b'{"query": "mustard"}', headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.getheader("Content-Encoding") == "gzip"
    assert "Accept-Encoding" in str(response.getheader("Vary"))
    whole = gzip.decompress(body)
    assert json.loads(whole)["success"] is True
    assert len(body) < len(whole) / 4 > ENVELOPE_BYTES / 4


def test_the_newest_jobs_are_listed_first(service: Service) -> None:
    made = [post(service.url, b"https://x.com/nasa\n", "text/plain").body["job"]["job_id"] for _ in range(3)]
    first = get(service.url, "/v1/jobs?limit=2").body
    assert [each["job_id"] for each in first["jobs"]] == [made[2], made[1]]
    second = get(service.url, f"/v1/jobs?limit=100&after={first['next_after']}").body
    assert second["jobs"][0]["job_id"] == made[0]
    assert second["next_after"] is None


# Other clients, and the end of a job


def test_a_job_is_cancelled_and_then_deleted_with_its_records(service: Service) -> None:
    rows = "".join(f"slow {n}\n" for n in range(2_000))
    job_id = post(service.url, rows.encode(), "text/plain", "/v1/jobs?scraper=retail-search-v4").body["job"]["job_id"]
    assert get(service.url, f"/v1/jobs/{job_id}", "DELETE").status == 204
    job = get(service.url, f"/v1/jobs/{job_id}").body
    assert (job["state"], job["targets"]["waiting"]) == ("cancelled", 0)
    assert call(service.url, f"/v1/jobs/{job_id}/retry", method="POST").code == "INVALID_REQUEST"
    assert get(service.url, f"/v1/jobs/{job_id}", "DELETE").status == 204
    assert get(service.url, f"/v1/jobs/{job_id}").code == "JOB_NOT_FOUND"


def test_failed_targets_are_retried_and_lines_that_are_no_targets_are_not(service: Service) -> None:
    body = f"{LINK}\nhttps://x.com/nobody_here\nnothing to scrape\n{BLOCKED}\n{LINK}\n".encode()
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


# Clients that disconnect, and large bodies


def make_nightly(uploads: Uploads) -> Awaitable[tuple[Job, Any]]:
    upload = Upload(io.BytesIO(CSV.encode()), "text/csv", key="nightly")
    return uploads.make(Holder("acme", "key"), upload, "name")


async def interrupted(*_: object, **__: object) -> None:
    raise asyncio.CancelledError


async def test_an_interrupted_upload_is_repeated_before_its_removal_has_ended(
    sqlite_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(sqlite_store)
    uploads = Uploads(jobs, 10, sandbox=True)

    async def killed(_: Job) -> None:
        await asyncio.Future()

    with monkeypatch.context() as patched:
        patched.setattr("crawler.jobs.intake.push", interrupted)
        patched.setattr(jobs, "remove", killed)
        with pytest.raises(asyncio.CancelledError):  # it does not wait for the removal
            await make_nightly(uploads)
    assert await jobs.newest("acme", 9) == []
    made, contents = await make_nightly(uploads)
    assert (made.state, contents is not None) == ("open", True)
    assert await make_nightly(uploads) == (made, None)
    await jobs.close()


@pytest.mark.parametrize(("key", "code"), [(None, "JOB_NOT_DONE"), ("nightly", "IDEMPOTENCY_IN_PROGRESS")])
async def test_a_slow_upload_whose_name_was_given_away_is_refused(
    sqlite_store: str, monkeypatch: pytest.MonkeyPatch, key: str | None, code: str
) -> None:
    jobs = Jobs(sqlite_store)
    uploads = Uploads(jobs, 10, sandbox=True)
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
    await jobs.close()


async def test_an_upload_with_a_line_that_cannot_be_stored_leaves_no_job(sqlite_store: str) -> None:
    jobs = Jobs(sqlite_store)
    uploads = Uploads(jobs, 10, sandbox=True)
    upload = Upload(io.BytesIO(json.dumps({"": 10**30}).encode()), "application/json")
    with pytest.raises(ScrapeError, match="cannot be stored"):
        await uploads.make(Holder("acme", "key"), upload, "name")
    await asyncio.gather(*uploads.removals)
    assert [job async for job in jobs.every()] == []
    await jobs.close()


async def test_the_upkeep_repeats_a_removal_that_the_store_did_not_allow(
    sqlite_store: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = Jobs(sqlite_store)
    uploads = Uploads(jobs, 10, sandbox=True)

    async def unavailable(_: Job) -> None:
        raise StoreUnavailable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr("crawler.jobs.intake.push", interrupted)
        patched.setattr(jobs, "remove", unavailable)
        with pytest.raises(asyncio.CancelledError):
            await make_nightly(uploads)
        if uploads.removals:
            await asyncio.wait(uploads.removals)
    gc.collect()  # asyncio logs exceptions that nothing has retrieved
    assert not caplog.records
    assert len([job async for job in jobs.every()]) == 1
    await tend(jobs, 1.0)
    assert [job async for job in jobs.every()] == []
    await jobs.close()


async def test_a_client_that_leaves_during_a_response_is_no_error() -> None:
    started = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        started.set()
        await asyncio.Future()

    request = Request(DummyChannel(), False)  # noqa: FBT003  # Twisted's
    request.requestHeaders = Headers()
    request.clientproto = b"HTTP/1.1"
    sending = asyncio.ensure_future(send_pieces(request, pieces()))
    await started.wait()
    request.connectionLost(Failure(ConnectionDone()))
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
    error: Exception, levels: list[str]
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        raise error

    request = Request(DummyChannel(), False)  # noqa: FBT003  # Twisted's
    request.clientproto = b"HTTP/1.1"
    aborted: list[bool] = []
    request.transport.abortConnection = lambda: aborted.append(True)  # type: ignore[union-attr]
    with capture_logs() as logs:
        await ResponseWriter().stream(request, pieces())
    assert [each["event"] for each in logs] == ["response_interrupted"] * len(levels)
    assert [each["log_level"] for each in logs] == levels
    assert [each.get("exc_info", False) for each in logs] == [level == "error" for level in levels]
    assert aborted
