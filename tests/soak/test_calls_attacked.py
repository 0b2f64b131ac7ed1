"""Calls under attack over HTTP: no record without a bill, and no client that waits for the hanging calls of another."""

from __future__ import annotations

import http.client
import json
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawler.service.clients.keys import KeyStore
from tests.service.client import HEADERS, SEARCH, call
from tests.service.conftest import running

ABORTED = 300
HANGING = 40
HANG = "from crawler.sandbox import faults; faults.SLOW_SECONDS = 60"

pytestmark = pytest.mark.soak


def abort(url: str, number: int, seconds: float) -> None:
    """Make a call with an ``Idempotency-Key``, and disconnect before or while its record is stored."""
    with closing(http.client.HTTPConnection(urlsplit(url).netloc)) as connection:
        body = json.dumps({"query": f"mustard {number}"})
        connection.request("POST", SEARCH, body, {**HEADERS, "Idempotency-Key": f"k{number}"})
        time.sleep(seconds)


def billable(url: str) -> int:
    return int(call(url, "/v1/usage", method="GET").body["billable"])


def test_at_1_no_record_is_free(tmp_path: Path) -> None:
    """26 of 233 records were."""
    with running(tmp_path / "log") as service:
        begin = time.monotonic()
        call(service.url, SEARCH, {"query": "mustard"})
        usual = time.monotonic() - begin
        for number in range(ABORTED):
            abort(service.url, number, usual * (number % 30) / 15)
        time.sleep(2)
        billed = billable(service.url) - 1
        replayed = 0
        for number in range(ABORTED):
            headers = {**HEADERS, "Idempotency-Key": f"k{number}"}
            again = call(service.url, SEARCH, {"query": f"mustard {number}"}, headers=headers)
            assert again.status == 200
            replayed += "idempotent-replayed" in again.headers
        assert billable(service.url) - 1 == billed + ABORTED - replayed
    sys.stdout.write(f"{replayed} of {ABORTED} aborted calls had stored their record, {billed} were billed\n")
    assert 0 < replayed < ABORTED
    assert billed == replayed


def test_at_12_hanging_calls_of_one_client_delay_no_other(tmp_path: Path) -> None:
    """Another client waited for 200 s."""
    keys = KeyStore(tmp_path / "keys.sqlite")
    busy, other = ({**HEADERS, "X-API-Key": keys.create(name)} for name in ("busy", "other"))
    settings = (f"KEYS_FILE={keys.path}", "SANDBOX=1", "DOWNLOAD_TIMEOUT=90")
    with running(tmp_path / "log", *settings, sandbox=False, before=HANG) as service:
        for page in range(1, HANGING + 1):
            hanging = {"query": "slow", "page": page}
            assert call(service.url, SEARCH, hanging, headers={**busy, "Prefer": "respond-async"}).status == 202
        time.sleep(3)
        begin = time.monotonic()
        reply = call(service.url, SEARCH, {"query": "mustard"}, headers={**other, "Prefer": "respond-async, wait=30"})
        seconds = time.monotonic() - begin
    sys.stdout.write(f"The other client waited for {seconds:.2f} s\n")
    assert reply.status == 200
