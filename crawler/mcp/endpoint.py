"""The client of an endpoint: lists its scrapers, calls them, and collects jobs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote

import httpx2
import orjson
import structlog

logger = structlog.get_logger(__name__)

Json = dict[str, Any]

TIMEOUT = httpx2.Timeout(130.0, connect=10.0)
"""Maximum seconds to wait for a response (more than the longest timeout of a call), and to open a connection."""
WAIT = {"Prefer": "wait=120"}
"""The longest timeout of a call."""


class EndpointError(Exception):
    """Raised when the endpoint returns no usable response. The message contains the remedy."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


@dataclass(frozen=True)
class Reply:
    """The response of a call."""

    envelope: Json
    partial: str | None = None
    """The header ``X-Partial``, which lists the missing parts of the record. None: the record is complete."""


class EndpointClient:
    """Calls the scrapers of one endpoint, with one API key. As an async context manager, it closes its connections."""

    def __init__(self, url: str, api_key: str, *, trust_env: bool = True) -> None:
        """``trust_env``: whether to use the proxies that the environment names (``HTTPS_PROXY``)."""
        self.url = url
        self.api_key = api_key
        self._http = httpx2.AsyncClient(base_url=url, timeout=TIMEOUT, trust_env=trust_env)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def with_key(self, api_key: str) -> Self:
        """Return a client with another API key that shares the connections of this client."""
        client = copy.copy(self)
        client.api_key = api_key
        return client

    async def catalogue(self) -> list[Json]:
        """Return the scrapers of the endpoint: name, aliases, platform, summary, params_schema and example.

        Raises:
            EndpointError: the endpoint cannot be reached, or its response is not a catalogue.
        """
        response = await self._request("GET", "/v1/scrapers")
        scrapers = _object(response).get("scrapers")
        if not isinstance(scrapers, list):
            raise _unusable(response)
        return scrapers

    async def openapi(self) -> Json | None:
        """Return the OpenAPI document, or None if the endpoint does not serve it (``SERVICE_HIDDEN_ROUTES``).

        Raises:
            EndpointError: see ``catalogue()``.
        """
        response = await self._request("GET", "/openapi.json")
        if response.status_code == HTTPStatus.NOT_FOUND:
            return None
        document = _object(response)
        if "components" not in document:
            raise _unusable(response)
        return document

    async def call(self, scraper: str, params: Json, query: Json) -> Reply:
        """Call a scraper, and wait for the response. If the task is cancelled, the connection is closed.

        Args:
            scraper: the name of the scraper. The endpoint validates it.
            params: the params. The endpoint validates them.
            query: the parameters of the URL: ``fields``.

        Raises:
            EndpointError: see ``catalogue()``. All other errors are returned in the reply's envelope.
        """
        path = f"/v1/scrapers/{quote(scraper, safe='')}"
        response = await self._request("POST", path, json=params, params=query, headers=WAIT)
        return Reply(_envelope(response), response.headers.get("X-Partial"))

    async def collect(self, targets: list[str]) -> Reply:
        """Create a job from links. The reply's ``data`` is the endpoint's response.

        Raises:
            EndpointError: see ``catalogue()``. All other errors are returned in the reply's envelope.
        """
        plain_list = {"Content-Type": "text/plain; charset=utf-8"}
        return _reply(await self._request("POST", "/v1/jobs", content="\n".join(targets).encode(), headers=plain_list))

    async def job(self, job_id: str) -> Reply:
        """Return a job. The reply's ``data`` is the endpoint's response.

        Raises:
            EndpointError: see ``catalogue()``. All other errors are returned in the reply's envelope.
        """
        return _reply(await self._request("GET", f"/v1/jobs/{quote(job_id, safe='')}"))

    async def outcomes(self, job_id: str, kind: str, query: dict[str, Any]) -> tuple[Reply, str | None]:
        """Return a page of the ``records`` or ``failures`` of a job, as a list, and the cursor of the next page.

        The cursor is None if the reply is an error.

        Raises:
            EndpointError: see ``catalogue()``. All other errors are returned in the reply's envelope.
        """
        response = await self._request("GET", f"/v1/jobs/{quote(job_id, safe='')}/{kind}", params=query)
        if response.is_error:
            return _reply(response), None
        try:
            rows = [orjson.loads(line) for line in response.content.splitlines()]
        except ValueError:
            raise _unusable(response) from None
        return _replied(response, rows), response.headers.get("X-Next-Cursor")

    async def _request(
        self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any
    ) -> httpx2.Response:
        try:
            sent = {"X-API-Key": self.api_key} | (headers or {})
            return await self._http.request(method, path, headers=sent, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise EndpointError(
                "ENDPOINT_UNAVAILABLE",
                f"No response from the endpoint at {self.url} ({type(error).__name__}: {error}). Check that it runs.",
                retryable=True,
            ) from error


def _object(response: httpx2.Response) -> Json:
    try:
        value = response.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _unusable(response)
    return value


def _envelope(response: httpx2.Response) -> Json:
    envelope = _object(response)
    if (
        not isinstance(envelope.get("status"), dict)
        or "code" not in envelope["status"]
        or not isinstance(envelope.get("request_id"), str)
    ):
        raise _unusable(response)
    return envelope


def _reply(response: httpx2.Response) -> Reply:
    """Return the reply for a response of a route that has an envelope only for errors."""
    return Reply(_envelope(response)) if response.is_error else _replied(response, _object(response))


def _replied(response: httpx2.Response, data: Any) -> Reply:
    status = {"code": "OK", "message": "The request is complete.", "retryable": False}
    envelope = {"request_id": response.headers.get("X-Request-Id"), "success": True, "status": status, "data": data}
    return Reply(envelope | {"error": None, "meta": None})


def _unusable(response: httpx2.Response) -> EndpointError:
    return EndpointError(
        "ENDPOINT_ERROR",
        f"{response.request.method} {response.request.url} returned status {response.status_code}, but not the"
        " JSON of this service. Check that the URL is that of an endpoint (scrapy serve).",
        retryable=response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR,
    )
