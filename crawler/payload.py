"""Payloads of any shape: JSON out of HTML, and ways through it that no missing or mistyped key can break.

Everything here is iterative: a document nested a thousand levels deep must not break it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any

import orjson
from parsel import Selector

from crawler.errors import ExtractionFailed

Step = str | int

# Platforms cut texts between the two halves of an emoji. orjson refuses what is left, and all of the page with it.
_HALF = re.compile(
    r"(?P<whole>\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?![dD][89a-fA-F])))"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def decode(body: str, *, what: str) -> Any:
    r"""JSON to Python. ``what`` names the block in the error.

    >>> decode(r'{"cut": "so good \ud83d"}', what="block")
    {'cut': 'so good �'}

    Raises:
        ExtractionFailed: truncated, not JSON, or nested deeper than any real payload.
    """
    try:
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            if "surrogate" not in error.msg:
                raise
            return orjson.loads(_HALF.sub(lambda found: found["whole"] or r"\ufffd", body))
    except orjson.JSONDecodeError as error:
        raise ExtractionFailed(
            f"The page's {what} is no JSON: {error.msg} at character {error.pos}.",
            details=[{"loc": [what], "msg": error.msg, "type": "json_invalid"}],
            reason="broken_data_block",
        ) from error


def script_text(html: str, script_id: str) -> str | None:
    """The text of ``<script id=…>``, None where the page has none.

    Looks for the id as it is always written before it parses the page: parsing 0.7 MB costs more than all else.

    >>> script_text('<script id="DATA" type="application/json">{"a": 1}</script>', "DATA")
    '{"a": 1}'
    >>> script_text("<script type=x id=DATA>1</script>", "DATA")
    '1'
    >>> script_text("<p>DATA</p>", "DATA") is None
    True
    """
    start = html.find(f'<script id="{script_id}"')
    if start >= 0:
        opened = html.find(">", start)
        end = html.find("</script>", opened)
        if opened >= 0 and end >= 0:
            return html[opened + 1 : end]
    if script_id not in html:
        return None
    return Selector(html).css(f"script#{script_id}::text").get()


def dig(value: Any, *path: Step) -> Any:
    """The value at a path of keys and indexes, None where the path breaks off.

    >>> dig({"a": [{"b": 1}]}, "a", 0, "b")
    1
    >>> dig({"a": None}, "a", 0, "b") is None
    True
    """
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, [] for what is no list.

    >>> objects([{"a": 1}, None, 3]), objects(None)
    ([{'a': 1}], [])
    """
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    """The non-empty texts of a list, [] for what is no list.

    >>> strings(["a", "", None])
    ['a']
    """
    return [each for each in value if isinstance(each, str) and each] if isinstance(value, list) else []


def find_all(value: Any, key: str) -> Iterator[Any]:
    """The values of a key, wherever it stands, those nearer to the top first.

    >>> list(find_all([{"b": {"a": 1}}, {"a": {"a": 2}}], "a"))
    [{'a': 2}, 1, 2]
    """
    waiting = deque([value])
    while waiting:
        each = waiting.popleft()
        if isinstance(each, dict):
            if key in each:
                yield each[key]
            waiting.extend(v for v in each.values() if isinstance(v, dict | list))
        elif isinstance(each, list):
            waiting.extend(v for v in each if isinstance(v, dict | list))
