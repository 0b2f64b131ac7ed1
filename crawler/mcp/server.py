"""The MCP server: lists the scrapers of an endpoint as tools, and calls them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextResourceContents,
)
from pydantic import ValidationError

from crawler.mcp.endpoint import EndpointClient, EndpointError, Json, Reply
from crawler.mcp.results import BYTES_OF_KB, failed, result, size
from crawler.mcp.tools import (
    COLLECT,
    RECORDS,
    THIRD_PARTY,
    Links,
    Outcomes,
    Sized,
    View,
    record_schemas,
    tools,
)
from crawler.platforms.model import first_problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable

    from anyio.streams.memory import MemoryObjectSendStream

logger = structlog.get_logger(__name__)

PROGRESS_SECONDS = 5.0
"""Seconds between progress notifications."""
POLL_SECONDS = 1.0
"""Interval in seconds at which a job without new outcomes is read again."""
JOB_BYTES = 2_000
"""Bytes of a result that are reserved for the state of the job."""

INSTRUCTIONS = f"""\
Each tool scrapes one public page or listing, and returns one structured record or one typed error. {THIRD_PARTY} If
`status.retryable` is true, the same call may succeed later: wait for `error.retry_after` seconds first. `partial` lists
the sources and the parts of pages whose data is missing. `cut` describes the parts that were left
out to keep the result small.
For many links, call `collect` once, and then `records` until the job is done."""

VIEW = View.model_fields.keys()
"""The arguments of a scraper's tool that are not params of the scraper."""

Context = ServerRequestContext[Any, Any]


SCHEMA_TYPE = "application/schema+json"
SCHEMA_URI = "schema://"
"""The start of each resource's URI. The resource ``schema://retail-search-v4`` is the schema of this scraper's records.
"""


async def serve(client: EndpointClient) -> None:
    """Serve the scrapers of an endpoint over standard input and output, until the input ends."""
    async with client, stdio_server() as (read, write), anyio.create_task_group() as group:
        server = Scrapers(client).server()
        messages, valid = anyio.create_memory_object_stream[SessionMessage | Exception]()
        group.start_soon(answer_invalid, read, write.send, messages)
        await server.run(valid, write, server.create_initialization_options())
        group.cancel_scope.cancel()


async def answer_invalid(
    read: AsyncIterable[SessionMessage | Exception],
    send: Callable[[SessionMessage], Awaitable[None]],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass messages to the library's server, except requests that are invalid JSON, such as those with lone surrogates.

    The library ignores such requests, so that their senders would wait for a response forever. Each of them whose id
    can be read is answered with an error.
    """
    async with messages:
        async for message in read:
            refusal = None
            if isinstance(message, ValidationError) and message.errors()[0]["type"] == "json_invalid":
                refusal = refusal_of(message.errors()[0]["input"], message.errors()[0]["msg"])
            if refusal is None:
                await messages.send(message)
            else:
                logger.warning("message_refused", request=refusal.id, error=refusal.error.message)
                await send(SessionMessage(refusal))


def refusal_of(text: str | bytes, problem: str) -> JSONRPCError | None:
    """Return the error response to a request that is not valid JSON, or None if the request's id cannot be read.

    ``problem``: the parser's message, without a full stop.
    """
    message = f"{problem}. Texts must not contain lone surrogates, and numbers must not be NaN or Infinity."
    return error_of(text, PARSE_ERROR, message)


def error_of(text: str | bytes, code: int, message: str) -> JSONRPCError | None:
    """Return an error response to a request, or None if the request's id cannot be read."""
    try:
        request_id = json.loads(text)["id"]  # unlike other parsers, it accepts lone surrogates
        str(request_id).encode()  # a response with an id that cannot be encoded would end the server
        return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


class Scrapers:
    """The tools of one endpoint."""

    def __init__(self, client: EndpointClient) -> None:
        self.client = client

    def server(self) -> Server[Any]:
        """Return an MCP server with these tools."""
        return Server(
            "social-retail-crawler",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_read_resource=self.read_resource,
        )

    async def list_tools(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        """Return the tools. The descriptions of the scrapers are fetched from the endpoint each time.

        Raises:
            MCPError: the endpoint returns no usable response.
        """
        try:
            return ListToolsResult(tools=tools(await self.client.catalogue()))
        except EndpointError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error

    async def list_resources(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return the resources: the schema of the record of each scraper.

        Raises:
            MCPError: the endpoint returns no usable response.
        """
        schemas = await self._schemas()
        described = "The JSON Schema of the records of this scraper"
        return ListResourcesResult(
            resources=[
                Resource(name=name, uri=f"{SCHEMA_URI}{name}", description=described, mime_type=SCHEMA_TYPE)
                for name in schemas
            ]
        )

    async def read_resource(self, _: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return the schema of a scraper's records.

        Raises:
            MCPError: there is no such resource, or the endpoint returns no usable response.
        """
        uri = str(params.uri)
        schema = (await self._schemas()).get(uri.removeprefix(SCHEMA_URI)) if uri.startswith(SCHEMA_URI) else None
        if schema is None:
            raise MCPError(INVALID_PARAMS, f"No resource has the URI {uri!r}: resources/list returns all resources.")
        text = orjson.dumps(schema).decode()
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=SCHEMA_TYPE, text=text)])

    async def _schemas(self) -> dict[str, Json]:
        try:
            return record_schemas(await self.client.catalogue(), await self.client.openapi())
        except EndpointError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool. A failure is returned as a result with ``isError``, so that the model can read it."""
        view: Sized = Sized()
        progress = Progress(context)
        async with anyio.create_task_group() as group:
            group.start_soon(progress.report)
            try:
                view, reply = await self._reply(self._client(context), params.name, params.arguments or {}, progress)
            except ValidationError as error:
                reply = failed("INVALID_REQUEST", f"{first_problem(error)}.")
            except EndpointError as error:
                reply = failed(error.code, str(error), retryable=error.retryable)
            except ValueError as error:  # raised for NaN and lone surrogates
                reply = failed("INVALID_REQUEST", f"The arguments cannot be written as JSON: {error}.")
            group.cancel_scope.cancel()
        answer = result(reply, view)
        logger.info(
            "tool_call",
            tool=params.name,
            code=reply.envelope["status"]["code"],
            bytes=size(answer.structured_content),
            request_id=reply.envelope["request_id"],
        )
        return answer

    def _client(self, context: Context) -> EndpointClient:
        """Return the client with the API key of the HTTP request; over standard input, with the API key of the
        command.
        """
        return self.client if context.request is None else self.client.with_key(context.request.headers["X-API-Key"])

    @staticmethod
    async def _reply(client: EndpointClient, tool: str, arguments: Json, progress: Progress) -> tuple[Sized, Reply]:
        """Return the reply to a call of a tool, and its arguments that limit the size of the result.

        Raises:
            ValidationError: an argument is not valid. The endpoint validates the params of scrapers.
            EndpointError: the endpoint returns no usable response.
            ValueError: the arguments cannot be written as JSON.
        """
        if tool == COLLECT:
            links = Links.model_validate(arguments)
            return links, await client.collect(links.targets)
        if tool == RECORDS:
            wanted = Outcomes.model_validate(arguments)
            return wanted, await _outcomes(client, wanted, progress)
        view = View.model_validate({name: arguments[name] for name in VIEW & arguments.keys()})
        params = {name: value for name, value in arguments.items() if name not in VIEW}
        return view, await client.call(tool, params, _query(view.fields))


def _query(fields: list[str]) -> Json:
    return {"fields": ",".join(fields)} if fields else {}


async def _outcomes(client: EndpointClient, wanted: Outcomes, progress: Progress) -> Reply:
    """Return the state of a job and its next outcomes. Wait for them at most ``wanted.wait`` seconds."""
    begin = wanted.after or f"{wanted.job_id}.0"
    until = anyio.current_time() + wanted.wait
    while True:
        job = await client.job(wanted.job_id)
        if not job.envelope["success"]:
            return job
        state = job.envelope["data"]
        rows, following = await _rows(client, wanted, begin)
        if not rows.envelope["success"]:
            return rows
        if following != begin or state["ended_at"] is not None or anyio.current_time() >= until:
            data = {"job": state, wanted.kind: rows.envelope["data"], "next": following}
            return replace(rows, envelope={**rows.envelope, "data": data})
        progress.update(f"Nothing new: {state['targets']['waiting']} targets wait.")
        await anyio.sleep(POLL_SECONDS)


async def _rows(client: EndpointClient, wanted: Outcomes, begin: str) -> tuple[Reply, str | None]:
    """Return the next outcomes of a job, and the cursor after them.

    The number of outcomes is halved until they fit into the result: outcomes that were cut off would be skipped.
    """
    limit, query = wanted.targets, {"after": begin, **_query(wanted.fields)}
    while True:
        rows, following = await client.outcomes(wanted.job_id, wanted.kind, {**query, "limit": limit})
        if limit == 1 or size(rows.envelope) < wanted.max_kb * BYTES_OF_KB - JOB_BYTES:
            return rows, following
        limit = limit // 2


class Progress:
    """Sends progress notifications while a call waits or runs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._message = "The call was sent to the endpoint."
        self._started = anyio.current_time()

    def update(self, message: str) -> None:
        """Set the message of the next notifications."""
        self._message = message

    async def report(self) -> None:
        """Send a notification now and every ``PROGRESS_SECONDS``, until the task is cancelled."""
        while True:
            elapsed = anyio.current_time() - self._started
            await self._context.session.report_progress(elapsed, message=self._message)
            await anyio.sleep(PROGRESS_SECONDS)
