"""The MCP server: lists the scrapers of an endpoint as tools, and calls them."""

from __future__ import annotations

import json
from collections import OrderedDict
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
from crawler.mcp.results import Part, View, failed, part_of, result
from crawler.mcp.shorten import size
from crawler.mcp.tools import KEPT_RECORDS, READ_RECORD, THIRD_PARTY, result_schemas, tools
from crawler.platforms.model import first_problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable

    from anyio.streams.memory import MemoryObjectSendStream

logger = structlog.get_logger(__name__)

PROGRESS_SECONDS = 5.0
"""Seconds between progress notifications."""

INSTRUCTIONS = f"""\
Each tool scrapes one public page or listing, and returns one structured record or one typed error. {THIRD_PARTY} If
`status.retryable` is true, the same call may succeed later: wait for `error.retry_after` seconds first. `partial` lists
the sources and the parts of pages whose data is missing. `cut` describes what was left out to keep the result small."""

VIEW = View.model_fields.keys()
"""The arguments of a scraper's tool that are not params of the scraper."""

Context = ServerRequestContext[Any, Any]


SCHEMA_TYPE = "application/schema+json"
SCHEMA_URI = "schema://"
"""The resources: the schema of the results of each tool, such as ``schema://retail-search-v4``."""


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
    """Pass messages on. Answer requests that are not valid JSON, such as those with lone surrogates, with an error.

    The library skips them, so that their senders would wait for an answer.
    """
    async with messages:
        async for message in read:
            refusal = _refusal(message) if isinstance(message, ValidationError) else None
            if refusal is None:
                await messages.send(message)
            else:
                logger.warning("message_refused", request=refusal.id, error=refusal.error.message)
                await send(SessionMessage(refusal))


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """Return the answer to a request that is not valid JSON. None: it has no id that can be read."""
    problem = error.errors()[0]
    if problem["type"] != "json_invalid":
        return None
    try:
        request_id = json.loads(problem["input"])["id"]  # the standard library reads lone surrogates
        str(request_id).encode()  # an answer with an id that cannot be encoded would end the server
        text = f"{problem['msg']}. Texts must not contain lone surrogates, and numbers must not be NaN or Infinity."
        return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=PARSE_ERROR, message=text))
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


class Scrapers:
    """The tools of one endpoint."""

    def __init__(self, client: EndpointClient) -> None:
        self.client = client
        self._records: OrderedDict[str, Reply] = OrderedDict()
        """The last records, by request id, for ``read_record``."""

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
            MCPError: the endpoint cannot be reached.
        """
        try:
            return ListToolsResult(tools=tools(await self.client.catalogue()))
        except EndpointError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error

    async def list_resources(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return the resources: the schema of the results of each tool.

        Raises:
            MCPError: the endpoint cannot be reached.
        """
        schemas = await self._schemas()
        described = "The JSON Schema of the results of this tool"
        return ListResourcesResult(
            resources=[
                Resource(name=name, uri=f"{SCHEMA_URI}{name}", description=described, mime_type=SCHEMA_TYPE)
                for name in schemas
            ]
        )

    async def read_resource(self, _: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a schema.

        Raises:
            MCPError: there is no such resource, or the endpoint cannot be reached.
        """
        uri = str(params.uri)
        schema = (await self._schemas()).get(uri.removeprefix(SCHEMA_URI)) if uri.startswith(SCHEMA_URI) else None
        if schema is None:
            raise MCPError(INVALID_PARAMS, f"No resource has the URI {uri!r}: resources/list returns all resources.")
        text = orjson.dumps(schema).decode()
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=SCHEMA_TYPE, text=text)])

    async def _schemas(self) -> dict[str, Json]:
        try:
            return result_schemas(await self.client.catalogue(), await self.client.openapi())
        except EndpointError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool. A failure is returned as a result with ``isError``, so that the model can read it."""
        arguments = params.arguments or {}
        view = View()
        try:
            if params.name == READ_RECORD:
                view = part = Part.model_validate(arguments)
                reply = self._read(part)
            else:
                view = View.model_validate({name: arguments[name] for name in VIEW & arguments.keys()})
                scraper_params = {name: value for name, value in arguments.items() if name not in VIEW}
                reply = await self._scrape(context, params.name, scraper_params)
        except ValidationError as error:
            reply = failed("INVALID_REQUEST", f"{first_problem(error)}.")
        answer = result(reply, view)
        logger.info(
            "tool_call",
            tool=params.name,
            code=reply.envelope["status"]["code"],
            bytes=size(answer.structured_content),
            request_id=reply.envelope["request_id"],
        )
        return answer

    async def _scrape(self, context: Context, scraper: str, params: Json) -> Reply:
        """Call a scraper, report its progress, and store its record for ``read_record``."""
        progress = Progress(context)
        async with anyio.create_task_group() as group:
            group.start_soon(progress.report)
            try:
                reply = await self.client.call(scraper, params, progress.update)
            except EndpointError as error:
                reply = failed(error.code, str(error), retryable=error.retryable)
            except ValueError as error:  # NaN and lone surrogates
                reply = failed("INVALID_REQUEST", f"The params cannot be written as JSON: {error}.")
            group.cancel_scope.cancel()
        if reply.envelope.get("data") is not None:
            self._records[reply.envelope["request_id"]] = reply
            while len(self._records) > KEPT_RECORDS:
                self._records.popitem(last=False)
        return reply

    def _read(self, part: Part) -> Reply:
        """Return the reply of an earlier call, with a part of its data."""
        reply = self._records.get(part.request_id)
        if reply is None:
            return failed(
                "INVALID_REQUEST",
                f"No record with the request_id {part.request_id!r} is stored. Only the last {KEPT_RECORDS} records are"
                " stored: call the scraper again.",
            )
        try:
            data = part_of(reply.envelope["data"], part)
        except LookupError as error:
            return failed("INVALID_REQUEST", str(error))
        return replace(reply, envelope={**reply.envelope, "data": data})


class Progress:
    """Sends progress notifications while a call waits or runs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._message = "The call was sent to the endpoint."
        self._started = anyio.current_time()

    def update(self, message: str) -> None:
        """Note the message of the endpoint, for the next notification."""
        self._message = message

    async def report(self) -> None:
        """Send a notification now and every ``PROGRESS_SECONDS``, until the task is cancelled."""
        while True:
            elapsed = anyio.current_time() - self._started
            await self._context.session.report_progress(elapsed, message=self._message)
            await anyio.sleep(PROGRESS_SECONDS)
