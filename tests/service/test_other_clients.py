"""No client can see another client's jobs. Tested with two real API keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.client import HEADERS
from tests.service.clients import Clients, serving

UPLOAD = b"scraper,query\nretail-search-v4,mustard\nretail-search-v4,\n"
AS_CSV = {"Content-Type": "text/csv", "Idempotency-Key": "nightly"}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with serving(tmp_path_factory.mktemp("clients")) as started:
        yield started


@pytest.fixture(scope="module")
def job_id(clients: Clients) -> str:
    made = clients.send("POST", "/v1/jobs", UPLOAD, AS_CSV)
    assert made.status == 202
    return str(made.body["job"]["job_id"])


@pytest.mark.parametrize(
    ("method", "route"),
    [
        *(("GET", each) for each in ("", "/records", "/failures", "/records?format=xlsx", "/records?after={}.0")),
        *(("POST", "/retry"), ("DELETE", "")),
    ],
)
def test_a_job_is_unknown_to_other_clients(clients: Clients, job_id: str, method: str, route: str) -> None:
    path = f"/v1/jobs/{job_id}{route.format(job_id)}"
    hidden = clients.send(method, path, client="other")
    unknown = clients.send(method, f"/v1/jobs/999999{route.format(999999)}", client="other")
    assert (hidden.status, hidden.code) == (404, "JOB_NOT_FOUND")
    assert hidden.body["error"] == unknown.body["error"]
    own = clients.send("GET", f"/v1/jobs/{job_id}", client="second")
    assert (own.status, own.body["state"] == "cancelled") == (200, False), "and nothing has changed"


def test_jobs_of_other_clients_are_not_listed_and_keys_do_not_collide(clients: Clients, job_id: str) -> None:
    for query in ("", f"?after={int(job_id) + 1}"):
        assert clients.send("GET", f"/v1/jobs{query}", client="other").body["jobs"] == []
        listed = clients.send("GET", f"/v1/jobs{query}", client="second").body["jobs"]
        assert job_id in {each["job_id"] for each in listed}
    made = clients.send("POST", "/v1/jobs", UPLOAD, AS_CSV, "other")
    assert made.body["job"]["job_id"] != job_id
    cursor = clients.send("GET", f"/v1/jobs/{made.body['job']['job_id']}/records?after={job_id}.0", client="other")
    assert cursor.code == "INVALID_REQUEST", "a cursor of another job"


def test_an_unknown_key_sees_nothing(clients: Clients) -> None:
    for headers in ({}, {**HEADERS, "X-API-Key": "nonsense"}):
        assert (
            clients.send("GET", "/v1/jobs", headers=headers | {"X-API-Key": headers.get("X-API-Key", "")}).status == 401
        )
