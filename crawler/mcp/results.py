"""The results of tools: the envelope of a call, with the requested part of the record.

Records are shortened, so that they fit into the context of a language model.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from sys import maxsize
from typing import Any

import orjson
from mcp.types import CallToolResult, TextContent

from crawler.mcp.endpoint import Json, Reply
from crawler.mcp.tools import Outcomes, Sized, View

BYTES_OF_KB = 1_000
CUT_BYTES = 3_000
"""Bytes that are reserved for the description of the omitted parts."""
PARTS_BYTES = 1_500
"""Maximum bytes, of ``CUT_BYTES``, for the list of shortened values (``parts``)."""
MAX_PARTS = 10
"""Maximum number of entries in ``parts``."""
CUT_RECORD = (
    "`data` is not the whole record. To read more of it, call the tool again with `fields`, a larger `limit` or"
    " `max_kb`."
)
CUT_OUTCOMES = "`data` is not whole. Repeat the call with `fields`, or with a larger `max_kb`."
ELLIPSIS = "…"
CHARACTERS = 50
"""If ``fit`` keeps n entries of each list, it keeps n times this number of characters of each text and of keys of each
object."""
MAX_ENTRIES = 100_000

Parts = dict[str, dict[str, Any]]
"""The shortened values by path: of ``total`` entries, characters or keys (``unit``), the first ``kept`` are left. If
the whole value is omitted, the unit is bytes.

The values of all entries of a list have one path, with the numbers of the largest one: ``products[].badges``.
"""


def result(reply: Reply, view: Sized) -> CallToolResult:
    """Return the result of a tool: the envelope of its call, with ``partial`` and ``cut``.

    ``isError`` is true for failed calls.
    """
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
    """Return the reply for a call without a response from the endpoint, with an envelope like the endpoint's."""
    status = {"code": code, "message": message, "retryable": retryable}
    error: Json = {"code": code, "message": message, "details": [], "retry_after": None}
    return Reply({"request_id": None, "success": False, "status": status, "data": None, "error": error, "meta": None})


def _viewed(content: Json, view: Sized) -> Json:
    """Return the content with ``data`` shortened to the view's limits.

    ``cut`` describes the parts that were left out.
    """
    data = content["data"]
    parts: Parts = {}
    if isinstance(view, View) and view.limit is not None:
        data = limited(data, view.limit, parts)
    room = view.max_kb * BYTES_OF_KB - size({**content, "data": None})
    if size(data) > room - (CUT_BYTES if parts else 0):
        data, more = fit(data, room - CUT_BYTES)
        parts |= more
    if not parts:
        return content
    message = CUT_OUTCOMES if isinstance(view, Outcomes) else CUT_RECORD
    return {**content, "data": data, "cut": _cut(message, size(content["data"]), parts)}


def _with_short_error(content: Json, max_kb: int) -> Json:
    """Return the content of a failed call, in which long texts and lists of the error are shortened."""
    described = {"status": content["status"], "error": content["error"]}
    room = max_kb * BYTES_OF_KB - size({**content, "status": None, "error": None}) - CUT_BYTES
    shortened, parts = fit(described, room)
    message = "`error` is shortened. With a larger `max_kb`, the same call returns more of it."
    return {**content, **shortened, "cut": _cut(message, size(described), parts)}


def _cut(message: str, whole_bytes: int, parts: Parts) -> Json:
    """Return the description of the omitted parts. Paths contain keys of the record, which may be long."""
    named = sorted(parts.values(), key=lambda part: part["path"].count("."))[:MAX_PARTS]
    while size(named) > PARTS_BYTES:
        named.pop()
    return {"message": message, "bytes": whole_bytes, "parts": named, "more_parts": len(parts) - len(named)}


def size(value: Any) -> int:
    """Return the number of bytes of a value as JSON."""
    return len(orjson.dumps(value))


def limited(value: Any, entries: int, parts: Parts, characters: int = maxsize, path: str = "") -> Any:
    """Return the value with at most ``entries`` entries of each list, and ``characters`` characters of each text.

    ``characters`` is also the maximum number of keys of an object. Each shortened value is added to ``parts``.
    """
    if isinstance(value, list):
        kept, unit, found = entries, "entries", [*islice(value, entries)]
        shortened: Any = [limited(each, entries, parts, characters, f"{path}[]") for each in found]
    elif isinstance(value, dict):
        kept, unit = min(len(value), characters), "keys"
        rest = islice(value.items(), kept)
        shortened = {
            key: limited(each, entries, parts, characters, f"{path}.{key}" if path else key) for key, each in rest
        }
    elif isinstance(value, str) and len(value) > characters:
        kept, unit, shortened = characters, "characters", value[:characters] + ELLIPSIS
    else:
        return value
    if len(value) > kept and len(value) > parts.get(path, {"total": 0})["total"]:
        parts[path] = {"path": path, "kept": kept, "total": len(value), "unit": unit}
    return shortened


def fit(value: Any, room: int) -> tuple[Any, Parts]:
    """Return the value with at most ``room`` bytes as JSON, and the parts that were shortened.

    All lists keep the same number of first entries: the largest number that fits. Texts keep their beginning. If not
    even one entry fits, the value is null.
    """

    def with_entries(number: int) -> int:
        return size(limited(value, number, {}, CHARACTERS * number))

    number = bisect_right(range(1, MAX_ENTRIES), room, key=with_entries)
    parts: Parts = {}
    if not number:
        return None, {"": {"path": "", "kept": 0, "total": size(value), "unit": "bytes"}}
    return limited(value, number, parts, CHARACTERS * number), parts
