"""A simple HTTP client for the endpoint under test."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

HEADERS = {"X-API-Key": "sandbox", "Content-Type": "application/json"}
CATEGORY = "/v1/scrapers/retail-category-v4"
SEARCH = "/v1/scrapers/retail-search-v4"


@dataclass(frozen=True)
class Reply:
    """A response. ``body``: the decoded value if it is JSON and not compressed, None if it is empty, else the bytes."""

    status: int
    headers: dict[str, str]
    body: Any
    reason: str | None = None

    @property
    def code(self) -> str:
        return str(self.body["status"]["code"])


def call(  # noqa: PLR0913  # keyword arguments of a call
    url: str,
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    timeout: float = 120,
) -> Reply:
    """Send one request. ``body``: bytes are sent unchanged, other values as JSON."""
    parts = urlsplit(url)
    payload = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)) as connection:
        connection.request(method, path, payload, HEADERS if headers is None else headers)
        response = connection.getresponse()
        raw = response.read()
    return reply_of(response, raw)


def reply_of(response: http.client.HTTPResponse, raw: bytes) -> Reply:
    headers = {name.lower(): value for name, value in response.getheaders()}
    is_json = headers.get("content-type") == "application/json" and "content-encoding" not in headers
    return Reply(response.status, headers, json.loads(raw) if raw and is_json else raw or None, response.reason)


def wait_for_draining(url: str) -> None:
    """Wait until the service refuses new calls."""
    while call(url, "/readyz", method="GET").status == 200:
        time.sleep(0.01)


async def many(
    url: str, calls: list[tuple[str, dict[str, Any]]], *, at_once: int = 50, headers: dict[str, str] | None = None
) -> list[Reply]:
    """Make many calls, at most ``at_once`` of them concurrently. Return the responses in the order of the calls."""
    async with aiohttp.ClientSession(
        headers=headers or HEADERS, connector=aiohttp.TCPConnector(limit=at_once)
    ) as session:

        async def one(path: str, params: dict[str, Any]) -> Reply:
            async with session.post(url + path, json=params) as response:
                return Reply(response.status, dict(response.headers), await response.json())

        return await asyncio.gather(*(one(path, params) for path, params in calls))
