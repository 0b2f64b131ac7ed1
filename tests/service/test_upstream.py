"""Connections to an unresponsive platform: never more than its budget allows, and none after the deadline."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

from tests.service.client import SEARCH
from tests.service.clients import serving

BUDGET = 4
BUDGETS = f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': BUDGET, 'delay': 0}})}"
DISCONNECTED = 50


def test_deadlines_and_disconnected_clients_end_connections_and_cause_none_beyond_the_budget(tmp_path: Path) -> None:
    with serving(tmp_path, BUDGETS) as clients:
        platform = clients.platform
        assert clients.send("POST", SEARCH, {"query": "honey"}).code == "OK"  # the crawler runs
        assert clients.send("POST", SEARCH, {"query": "hang"}, {"Prefer": "wait=3"}).code == "UPSTREAM_TIMEOUT"
        assert len(platform.requested_paths) == 2
        platform.wait_until(lambda seen: seen.open_connections == 0)
        sent = [
            send_call(clients.service.url, clients.keys["acme"], "hang" if number % 2 else "mustard", number)
            for number in range(DISCONNECTED)
        ]
        platform.wait_until(lambda seen: seen.unanswered == BUDGET)
        for connection in sent:
            connection.close()
        platform.wait_until(lambda seen: seen.unanswered == 0)
        for number in range(2 * BUDGET):  # every download slot must be free again
            assert clients.send("POST", SEARCH, {"query": f"honey {number}"}, {"Prefer": "wait=60"}).code == "OK"
        assert platform.most_connections <= BUDGET


def send_call(url: str, key: str, query: str, number: int) -> socket.socket:
    """Send a request without waiting for the response. Return the connection."""
    parts = urlsplit(url)
    body = json.dumps({"query": f"{query} {number}"}).encode()
    client = socket.create_connection((parts.hostname, parts.port))
    head = f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Prefer: wait=10\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return client
