"""Calls of a real endpoint: the records of simulated platforms, deadlines, and clients that disconnect."""

from __future__ import annotations

import socket
import struct
from typing import Any
from urllib.parse import urlsplit

import pytest

from crawler.sandbox.retail.site import Site
from tests.service.client import CATEGORY, HEADERS, SEARCH, call
from tests.service.conftest import Service
from tests.service.metrics_of import becomes, value

QUERIES = [
    *("mustard", "nothing like this", "x\r\nHost: evil", "%2e%2e", "../../x"),
    *("<script>", "'; DROP TABLE usage; --", "\U0001f600", "a&q=b"),
]


@pytest.mark.parametrize(
    ("path", "params"),
    [
        (CATEGORY, {"cat_id": "976759"}),
        (CATEGORY, {"cat_id": "976759", "page": 2, "sort": "price_low", "min_price": 10, "max_price": 30.5}),
        *((CATEGORY, {"cat_id": "4044", "page": page}) for page in (11, 12)),  # the last one, and none
        (CATEGORY, {"cat_id": "4044", "sort": "new"}),
        *((SEARCH, {"query": query}) for query in QUERIES),
        (SEARCH, {"query": "honey", "page": 3}),
    ],
)
def test_the_data_of_a_call_is_the_expected_record(service: Service, path: str, params: dict[str, Any]) -> None:
    reply = call(service.url, path, params)
    assert reply.body["data"] == Site().expected_record(params)


def test_a_call_ends_at_its_deadline(service: Service) -> None:
    reply = call(service.url, SEARCH, {"query": "hang"}, headers={**HEADERS, "Prefer": "wait=3"})
    assert (reply.status, reply.code) == (504, "UPSTREAM_TIMEOUT")
    assert reply.body["error"]["upstream"] in [{"status": None, "reason": each} for each in ("deadline", "timeout")]
    assert reply.body["meta"]["duration_ms"] >= 2_900, "the deadline is after three seconds"


def test_calls_of_clients_that_reset_their_connections_are_counted(service: Service) -> None:
    """The reset can arrive together with the request. The service must still detect it."""
    labels = {"scraper": SEARCH.rpartition("/")[2], "code": "CLIENT_GONE"}
    before = value(service.url, "crawler_calls_total", **labels)
    body = b'{"query": "slow"}'
    head = "".join(f"{name}: {text}\r\n" for name, text in {**HEADERS, "Content-Length": len(body)}.items())
    request = f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode() + body
    parts = urlsplit(service.url)
    for _ in range(10):
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
            connection.sendall(request)
    assert becomes(service.url, before + 10, "crawler_calls_total", **labels)
    # Counted once a second, mostly between two requests for metrics.
    assert becomes(service.url, 0, "crawler_connections")
    assert call(service.url, CATEGORY, {"cat_id": "976759"}).code == "OK", "no effect on other calls"
    assert "status=499" in service.logged()
    assert "Traceback" not in service.logged()
