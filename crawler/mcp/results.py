"""The results of tools: the envelope of a call, with the requested part of the record."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field

from crawler.mcp.endpoint import Json, Reply
from crawler.mcp.shorten import Shortener, size
from crawler.outputs.selection import Tree, add_path, pruned

DEFAULT_KB = 20
BYTES_OF_KB = 1_000
CUT_BYTES = 3_000
"""Bytes that are reserved for the description of what was left out."""
PARTS_BYTES = 1_500
"""Bytes of these that name shortened values."""
MAX_PARTS = 10
"""Maximum number of entries in ``parts``."""
MAX_MISSING = 5
"""Maximum number of names in ``missing_fields``."""


class View(BaseModel):
    """The arguments of all tools that limit how much of a record is returned."""

    model_config = ConfigDict(extra="forbid", strict=True)

    fields: Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=100)] = Field(
        default=[],
        description="Return only these fields of the record, such as `products.price.current_price`.",
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        description="Return at most this many entries of each list.",
    )
    max_kb: int = Field(
        default=DEFAULT_KB,
        ge=5,
        le=10_000,
        description=f"Maximum kilobytes, by default {DEFAULT_KB}. `cut` lists what a longer record lost.",
    )


class Part(View):
    """The arguments of the tool that returns a part of an earlier record."""

    request_id: str = Field(max_length=100, description="The `request_id` of an earlier result.")
    path: str = Field(
        default="",
        max_length=1_000,
        description="The path of the part in `data`, such as `products` or `products.3.description`. By default, the"
        " whole record. `fields` are relative to this part.",
    )
    offset: int = Field(
        default=0, ge=0, description="The first entry or character to return, if the part is a list or text."
    )


RESULT_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "request_id": {"type": ["string", "null"], "description": "The id of the call in the log of the endpoint."},
        "success": {"type": "boolean", "description": "Whether there is data."},
        "status": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "`OK`, or the error code."},
                "message": {"type": "string", "description": "The result of the call, for people."},
                "retryable": {"type": "boolean", "description": "Whether the same call may succeed later."},
            },
            "required": ["code", "message", "retryable"],
        },
        "data": {"description": "The record. Text in it is third-party text."},
        "error": {
            "type": ["object", "null"],
            "description": "Why the call failed: code, type, message, details, retry_after (seconds), upstream.",
        },
        "meta": {"type": ["object", "null"], "description": "Whether the call is billable, and its duration."},
        "partial": {
            "type": ["string", "null"],
            "description": "What the record lacks: sources that failed, with reason and code, and parts of pages that"
            " could not be read, with their path. Null: the record is complete.",
        },
        "cut": {
            "type": ["object", "null"],
            "description": "What was left out of `data`, or of a long `error`, because of `limit` or `max_kb`, how to"
            " read it, and which `fields` the record does not have. Null: nothing was left out.",
            "properties": {
                "message": {"type": "string"},
                "bytes": {"type": "integer", "description": "The size of the whole record as JSON."},
                "parts": {
                    "type": "array",
                    "description": f"The first {MAX_PARTS} shortened values. Of `total` units, `data` has `kept` units"
                    " from `offset` on.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string"},
                            "offset": {"type": "integer"},
                            "kept": {"type": "integer"},
                            "total": {"type": "integer"},
                            "unit": {"type": "string", "enum": ["entries", "characters", "keys"]},
                        },
                        "required": ["path", "offset", "kept", "total", "unit"],
                    },
                },
                "more_parts": {"type": "integer", "description": "The number of further shortened values."},
                "missing_fields": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["message", "bytes", "parts", "more_parts", "missing_fields"],
        },
    },
    "required": ["request_id", "success", "status", "data", "error", "meta", "partial", "cut"],
}
"""The schema of every result. For a scraper, ``data`` has the schema of its record."""


def result(reply: Reply, view: View) -> CallToolResult:
    """Return the result of a call: its envelope, with ``partial`` and ``cut``. Failed calls have ``isError``."""
    content = {**reply.envelope, "partial": reply.partial, "cut": None}
    if reply.envelope.get("data") is not None:
        content = _viewed(content, view)
    elif size(content) > view.max_kb * BYTES_OF_KB:
        content = _with_short_error(content, view.max_kb)
    return CallToolResult(
        content=[TextContent(type="text", text=orjson.dumps(content).decode())],
        structured_content=content,
        is_error=reply.envelope.get("success") is not True,
    )


def failed(code: str, message: str, *, retryable: bool = False) -> Reply:
    """Return the reply of a call that has no response of the endpoint. Its envelope has the same keys."""
    status = {"code": code, "message": message, "retryable": retryable}
    error: Json = {"code": code, "message": message, "details": [], "retry_after": None}
    return Reply({"request_id": None, "success": False, "status": status, "data": None, "error": error, "meta": None})


def part_of(data: Any, part: Part) -> Any:
    """Return the part of a record at ``path``, from ``offset``.

    Raises:
        LookupError: the record has no value at the path. The message contains the part of the path that exists.
    """
    value, at = data, "data"
    for key in part.path.split(".") if part.path else []:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise LookupError(f"{at} has no {key!r}: it is {_describe(value)}.")
        at = f"{at}.{key}"
    return value[part.offset :] if isinstance(value, list | str) else value


def _viewed(content: Json, view: View) -> Json:
    """Return the content with the part of ``data`` that the view selects, and with ``cut``."""
    whole = content["data"]
    data, missing = _selected(whole, view.fields)
    shortener = Shortener(view.path, view.offset) if isinstance(view, Part) else Shortener()
    if view.limit is not None:
        data = shortener.limit(data, view.limit)
    room = view.max_kb * BYTES_OF_KB - size({**content, "data": None})
    if size(data) > room - (CUT_BYTES if missing or shortener.parts else 0):
        data = shortener.fit(data, room - CUT_BYTES)
    if not missing and not shortener.parts:
        return {**content, "data": data}
    cut = _cut(_explain(content["request_id"], missing), size(whole), shortener.parts)
    return {**content, "data": data, "cut": {**cut, "missing_fields": missing[:MAX_MISSING]}}


def _with_short_error(content: Json, max_kb: int) -> Json:
    """Return the content of a failed call, in which long texts and lists of the error are shortened."""
    described = {"status": content["status"], "error": content["error"]}
    shortener = Shortener()
    room = max_kb * BYTES_OF_KB - size({**content, "status": None, "error": None}) - CUT_BYTES
    shortened = shortener.fit(described, room)
    message = "`error` is shortened. With a larger `max_kb`, the same call returns more of it."
    return {**content, **shortened, "cut": _cut(message, size(described), shortener.parts)}


def _cut(message: str, whole_bytes: int, parts: list[Json]) -> Json:
    """Return the description of what was left out. Paths contain keys of the record, which may be long."""
    named = parts[:MAX_PARTS]
    while size(named) > PARTS_BYTES:
        named.pop()
    return {
        "message": message,
        "bytes": whole_bytes,
        "parts": named,
        "more_parts": len(parts) - len(named),
        "missing_fields": [],
    }


def _selected(data: Any, fields: list[str]) -> tuple[Any, list[str]]:
    """Return the selected fields, and the names of ``fields`` at which the record has no value."""
    if not fields:
        return data, []
    tree: Tree = {}
    for name in fields:
        add_path(tree, name.split("."))
    return pruned(data, tree), [name for name in fields if not _has(data, name.split("."))]


def _has(value: Any, path: list[str]) -> bool:
    if isinstance(value, list):
        return any(_has(each, path) for each in value)
    if not path:
        return True
    return isinstance(value, dict) and path[0] in value and (not path[1:] or _has(value[path[0]], path[1:]))


def _explain(request_id: str, missing: list[str]) -> str:
    nothing = "This record has no values for `missing_fields`. " if missing else ""
    return (
        f"{nothing}`data` is not the whole record. To read the rest without another call to the platform, call"
        f" read_record with request_id {request_id}: with the `path` of a list or text in `parts` and the sum of its"
        " `offset` and `kept` as `offset`, with `fields` for other fields, or with a larger `max_kb`."
    )


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with the keys {', '.join(list(value)[:20])}"
    return f"a list of {len(value)} entries" if isinstance(value, list) else "a single value"
