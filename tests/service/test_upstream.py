"""Connections to an unresponsive platform: never more than its budget allows, and none after the deadline."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

from crawler.service.keys import KeyStore
from tests.hanging_platform import HangingPlatform, hanging_platform
from tests.service.client import HEADERS, SEARCH, call
from tests.service.conftest import running

BUDGET = 4
CLIENTS = 50


def settings(tmp_path: Path, platform: HangingPlatform) -> tuple[str, ...]:
    """Return settings of an endpoint for the platform. Only the deadlines of targets end a download."""
    return (
        f"KEYS_FILE={tmp_path / 'keys.sqlite3'}",
        f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}",
        f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': BUDGET, 'delay': 0}})}",
        "DOWNLOAD_TIMEOUT=3600",
    )


def test_a_deadline_closes_the_upstream_connection(tmp_path: Path) -> None:
    headers = {**HEADERS, "X-API-Key": KeyStore(tmp_path / "keys.sqlite3").create("acme"), "Prefer": "wait=1"}
    with (
        hanging_platform() as platform,
        running(tmp_path / "log", *settings(tmp_path, platform), sandbox=False) as service,
    ):
        reply = call(service.url, SEARCH, {"query": "hang"}, headers=headers)
        assert reply.code == "UPSTREAM_TIMEOUT"
        assert len(platform.requested_paths) == 1
        platform.wait_until(lambda seen: seen.open_connections == 0)


def test_disconnected_clients_cause_no_connections_beyond_the_budget(tmp_path: Path) -> None:
    key = KeyStore(tmp_path / "keys.sqlite3").create("acme")
    with (
        hanging_platform() as platform,
        running(tmp_path / "log", *settings(tmp_path, platform), sandbox=False) as service,
    ):
        clients = [
            send_call(service.url, key, "hang" if number % 2 else "mustard", number) for number in range(CLIENTS)
        ]
        platform.wait_until(lambda seen: seen.unanswered == BUDGET)
        for client in clients:
            client.close()
        platform.wait_until(lambda seen: seen.unanswered == 0)
        headers = {**HEADERS, "X-API-Key": key, "Prefer": "wait=60"}
        for number in range(2 * BUDGET):  # every download slot must be free again
            assert call(service.url, SEARCH, {"query": f"honey {number}"}, headers=headers, timeout=300).code == "OK"
        assert platform.most_connections <= BUDGET


def send_call(url: str, key: str, query: str, number: int) -> socket.socket:
    """Send a request without waiting for the response. Return the connection."""
    parts = urlsplit(url)
    body = json.dumps({"query": f"{query} {number}"}).encode()
    client = socket.create_connection((parts.hostname, parts.port))
    head = f"POST {SEARCH} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Prefer: wait=5\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return client
