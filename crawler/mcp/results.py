"""The results of tools: the envelope of a call, with the requested part of the record."""

from __future__ import annotations

from typing import Any

import orjson
from mcp.types import CallToolResult, TextContent

from crawler.mcp.arguments import Outcomes, Part, Sized, View
from crawler.mcp.endpoint import Json, Reply
from crawler.mcp.shorten import Shortener, size
from crawler.outputs.selection import Tree, add_path, pruned

BYTES_OF_KB = 1_000
CUT_BYTES = 3_000
"""Bytes that are reserved for the description of the omitted parts."""
PARTS_BYTES = 1_500
"""The share of these bytes for the list of shortened values (``parts``)."""
MAX_PARTS = 10
"""Maximum number of entries in ``parts``."""
MAX_MISSING = 5
"""Maximum number of names in ``missing_fields``."""
CUT_OUTCOMES = "`data` is not whole. Repeat the call with `fields`, or with a larger `max_kb`."


def result(reply: Reply, view: Sized) -> CallToolResult:
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
    """Return the reply for a call without a response from the endpoint. Its envelope has the endpoint's keys."""
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


def _viewed(content: Json, view: Sized) -> Json:
    """Return the content with the part of ``data`` that the view selects, and with ``cut``."""
    whole = content["data"]
    data, missing = _selected(whole, view.fields) if isinstance(view, View) else (whole, [])
    shortener = Shortener(view.path, view.offset) if isinstance(view, Part) else Shortener()
    if isinstance(view, View) and view.limit is not None:
        data = shortener.limit(data, view.limit)
    room = view.max_kb * BYTES_OF_KB - size({**content, "data": None})
    if size(data) > room - (CUT_BYTES if missing or shortener.parts else 0):
        data = shortener.fit(data, room - CUT_BYTES)
    if not missing and not shortener.parts:
        return {**content, "data": data}
    message = CUT_OUTCOMES if isinstance(view, Outcomes) else _explain(content["request_id"], missing)
    cut = _cut(message, size(whole), shortener.parts)
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
    """Return the description of the omitted parts. Paths contain keys of the record, which may be long."""
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
    """Return the selected fields, and those of ``fields`` for which the record has no value."""
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
