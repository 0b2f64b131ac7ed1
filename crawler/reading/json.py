"""Payloads of any shape: JSON out of HTML, and ways through it that no missing or mistyped key can break.

Everything here is iterative: a document nested a thousand levels deep must not break it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
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

MENDED = ("surrogate", "UTF-8", "control character")
"""What orjson finds wrong with texts that are mended."""

# Line breaks and the like stand raw in some texts, which JSON forbids. Outside of texts they are only space.
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")


def _escape_controls(text: re.Match[str]) -> str:
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text[0])


def decode(body: str | bytes, *, what: str, code_after: bool = False) -> Any:
    r"""JSON to Python, of bytes at once: text would be encoded again. ``what`` names the block in the error.
    ``code_after``: it was cut out of a script, which may go on behind it.

    >>> decode(r'{"cut": "so good \ud83d"}', what="block")
    {'cut': 'so good �'}
    >>> decode(b'{"cut": "so good \xf0\x9f"}', what="block")
    {'cut': 'so good �'}
    >>> decode('{"raw": "two\nlines"}', what="block")
    {'raw': 'two\nlines'}
    >>> decode('{"a": "é"};var meta = 1', what="block", code_after=True)
    {'a': 'é'}

    Raises:
        ExtractionFailed: truncated, not JSON, or nested deeper than any real payload.
    """
    try:
        try:
            return orjson.loads(bytes(body) if isinstance(body, bytes) else body)  # it takes no subclass of bytes
        except orjson.JSONDecodeError as error:
            text = body.decode(errors="replace") if isinstance(body, bytes) else body
            if code_after and "after document" in error.msg:
                return orjson.loads(text[: error.pos])
            if not any(reason in error.msg for reason in MENDED):
                raise
            whole = _HALF.sub(lambda found: found["whole"] or r"\ufffd", text)
            return orjson.loads(_TEXT.sub(_escape_controls, whole))
    except orjson.JSONDecodeError as error:
        raise ExtractionFailed(
            f"The page's {what} is no JSON: {error.msg} at character {error.pos}.",
            details=[{"loc": [what], "msg": error.msg, "type": "json_invalid"}],
            reason="broken_data_block",
        ) from error


def is_bare_json(body: bytes) -> bool:
    """Whether an answer begins as JSON does, so that it is data without a page around them.

    >>> is_bare_json(b' [{"a": 1}]'), is_bare_json(b"<p>{}</p>"), is_bare_json(b"")
    (True, False, False)
    """
    return body[:100].lstrip().startswith((b"{", b"["))


def script_block(body: bytes, script_id: str) -> bytes | None:
    """What stands in ``<script id=…>``, None where the page has none.

    Looks for the id as it is always written before it parses the page: parsing 0.7 MB costs more than all else.

    >>> script_block(b'<script id="DATA" type="application/json">{"a": 1}</script>', "DATA")
    b'{"a": 1}'
    >>> script_block(b"<script type=x id=DATA>1</script>", "DATA")
    b'1'
    >>> script_block(b"<p>DATA</p>", "DATA") is None
    True
    """
    start = body.find(b'<script id="%b"' % script_id.encode())
    if start >= 0:
        opened = body.find(b">", start)
        end = body.find(b"</script>", opened)
        if opened >= 0 and end >= 0:
            return body[opened + 1 : end]
    if script_id.encode() not in body:
        return None
    block = Selector(body.decode(errors="replace")).css(f"script#{script_id}::text").get()
    return None if block is None else block.encode()


def linked_data(blocks: Iterable[str | bytes]) -> list[dict[str, Any]]:
    """The nodes of a page's ``application/ld+json`` blocks, the outermost ones only. A broken block gives none.

    >>> [node["@type"] for node in linked_data(['{"@graph": [{"@type": "A", "b": {"@type": "B"}}]}', "{"])]
    ['A']
    """
    waiting: deque[Any] = deque()
    for block in blocks:
        with suppress(ExtractionFailed):  # a second witness: the page can speak without it
            waiting.append(decode(block, what="linked data"))
    nodes = []
    while waiting:
        each = waiting.popleft()
        if isinstance(each, dict) and "@type" in each:
            nodes.append(each)
        elif isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return nodes


_ASSIGNS = re.compile(rb"(?:[\"']\])?\s*=\s*(?=[\[{])")
_NAMED = (b"var ", b'window["', b"window['")


def assigned_block(body: bytes, name: str) -> bytes | None:
    """What a script of the page assigns to a variable, up to the script's end; None where none does.

    >>> assigned_block(b'<script>var data = {"a": "};"};</script>', "data")
    b'{"a": "};"}'
    >>> assigned_block(b"<script>window['data'] = {};</script>", "data")
    b'{}'
    >>> assigned_block(b"<p>data = {}</p><script>var data = null</script>", "data") is None
    True
    """
    mark = name.encode()
    at = body.find(mark)
    while at >= 0:
        found = _ASSIGNS.match(body, at + len(mark))
        if found and body[max(at - 8, 0) : at].endswith(_NAMED):
            end = body.find(b"</script>", found.end())
            end = end if end >= 0 else len(body)
            last = body[max(found.end(), end - 80) : end]  # so that the block is copied only once
            return body[found.end() : end - len(last) + len(last.rstrip().removesuffix(b";"))]
        at = body.find(mark, at + 1)
    return None


def scripts_with(body: bytes, mark: bytes) -> Iterator[bytes]:
    """What stands in the script elements that contain a mark, in their order.

    Looks for the mark first: of a megabyte with forty scripts mostly one is wanted. A script in which the page breaks
    off is given as far as it goes: its reader then says that it is broken.

    >>> list(scripts_with(b"<script>1</script><script type=x data-sjs>{'post': '<script>'}</script>", b"'post'"))
    [b"{'post': '<script>'}"]
    >>> list(scripts_with(b"<script>post", b"post")), list(scripts_with(b"post<script post>1</script>post", b"post"))
    ([b'post'], [])
    """
    after = 0  # no script that contains the mark begins before
    position = body.find(mark)
    while position >= 0:
        after = max(after, body.rfind(b"</script>", after, position))
        start = body.find(b"<script", after, position)
        opened = body.find(b">", start) if start >= 0 else position
        if opened < 0:
            return
        if opened < position:
            end = body.find(b"</script>", position)
            yield body[opened + 1 : end if end >= 0 else len(body)]
            if end < 0:
                return
            after = opened = end
        else:
            after = max(after, start)
        position = body.find(mark, opened + 1)


def dig(value: Any, *path: Step) -> Any:
    """The value at a path of keys and indexes, None where the path breaks off.

    >>> dig({"a": [{"b": 1}]}, "a", 0, "b")
    1
    >>> dig({"a": None}, "a", 0, "b") is None
    True
    """
    for step in path:
        if type(value) is dict:  # exactly, as JSON decodes: asking for subclasses too takes twice as long
            value = value.get(step)
        elif type(value) is list and type(step) is int and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, [] for what is no list.

    >>> objects([{"a": 1}, None, 3]), objects(None)
    ([{'a': 1}], [])
    """
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def nonempty_strings(value: Any) -> list[str]:
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
        if type(each) is dict:  # exactly, as JSON decodes: asking for subclasses too takes twice as long
            if key in each:
                yield each[key]
            waiting.extend([v for v in each.values() if type(v) is dict or type(v) is list])
        elif type(each) is list:
            waiting.extend([v for v in each if type(v) is dict or type(v) is list])
