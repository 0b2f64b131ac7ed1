"""Functions that parse HTML up to a number of tags and of attributes, that find JSON in HTML, and that read payloads in
which keys may be missing or have unexpected types.

No function recurses, so that a document nested a thousand levels deep cannot exhaust the stack.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import orjson
from lxml import etree
from parsel import Selector

from crawler.errors import ExtractionFailed
from crawler.reading.contract import invalid_error

MAX_TAGS = 50_000
"""More than four times the tags of the largest recorded page: a retail page of 1.7 MB has 10,755 (capture
25d700b25e6f). Each search in a page of 2 MB with 300,000 elements takes 0.1 s, in which the event loop stands."""
MAX_ATTRIBUTES = 200
"""Maximum number of attributes of an element, because building a tree takes quadratic time in them: 0.5 s for 20,000 of
one element, 0.4 s for a page of 2 MB whose elements have 500, 0.2 s if they have 200. Elements of recorded pages have
at most 25."""
_SPACE, _NAME = rb"[ \n\r\t\f]", rb'[^ \n\r\t\f"<>=/]'
_UNUSUAL_TAG = re.compile(
    rb'<[a-zA-Z](?!%b*+(?:%b++%b++(?:="[^"]*+")?){0,%d}%b*+/?+>)' % (_NAME, _SPACE, _NAME, MAX_ATTRIBUTES, _SPACE)
)
"""Matches a tag with too many attributes, or one that is not written as usual: a space before each attribute, values in
double quotes. Names contain neither quotation marks nor "<", so that at most two such tags overlap, one in a value of
the other, and the search is linear."""
_RAW_TEXT = re.compile(
    rb"<(?=title|textarea|style|script|xmp|iframe|noembed|noframes|noscript|plaintext)", re.IGNORECASE
)


class _MostAttributes:
    """Receives the events of a parser, and returns the largest number of attributes of an element."""

    def __init__(self) -> None:
        self._most = 0

    def start(self, _: str, attributes: dict[str, str]) -> None:
        self._most = max(self._most, len(attributes))

    def close(self) -> int:
        return self._most


def has_many_attributes(document: bytes, *, in_raw_text: bool = False) -> bool:
    """Whether an element has more than ``MAX_ATTRIBUTES``, found in linear time: no tree is built.

    ``document``: in UTF-8. ``in_raw_text``: also in the texts of elements such as ``title``, in which a browser finds
    elements if they are within ``svg`` or ``math``.

    Each "<" before a letter is first read as a tag, wherever it is. Only if one of them is not written as usual, as in
    18 of 76 recorded pages, a parser counts, which takes five times as long.
    """
    if not _UNUSUAL_TAG.search(document):
        return False
    readings = (document, _RAW_TEXT.sub(b"<x-", document)) if in_raw_text else (document,)
    parser: Any = etree.HTMLParser(target=_MostAttributes(), encoding="utf-8", huge_tree=True)
    return any(etree.fromstring(each, parser) > MAX_ATTRIBUTES for each in readings)


def parsed_html(document: str | bytes) -> Selector:
    """Return a document as elements.

    Raises:
        ExtractionFailed: it has more than ``MAX_TAGS`` tags, or an element with more than ``MAX_ATTRIBUTES``.
    """
    text = document if isinstance(document, str) else document.decode(errors="replace")
    if text.count("<") > MAX_TAGS or has_many_attributes(text.encode(errors="replace")):
        message = f"The page has more than {MAX_TAGS:,} tags, or an element with more than {MAX_ATTRIBUTES} attributes."
        raise invalid_error(message, ["html"], "Too many tags or attributes", "too_many", reason="too_large")
    return Selector(text, type="html")


Step = str | int

# Platforms sometimes cut a text in the middle of an emoji's surrogate pair. orjson then rejects the whole document.
_LONE_SURROGATE = re.compile(
    r"(?P<whole>\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?![dD][89a-fA-F])))"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

REPAIRABLE = ("surrogate", "UTF-8", "control character")
"""Words in orjson's error messages about faults that ``decode`` can repair."""

_JSON, _JSON_TEXT = re.compile(rb"\s*[{\[]"), re.compile(r"\s*[{\[]")


def decode(body: str | bytes, *, what: str, code_after: bool = False) -> Any:
    r"""Decode JSON from bytes or text, and repair common faults. Bytes are faster, because orjson first encodes text.

    Args:
        body: the JSON document.
        what: the name of the document in error messages.
        code_after: whether program code may follow the JSON, because the document was cut out of a script.

    >>> decode(r'{"cut": "so good \ud83d"}', what="block")
    {'cut': 'so good �'}
    >>> decode(b'{"cut": "so good \xf0\x9f"}', what="block")
    {'cut': 'so good �'}
    >>> decode('{"raw": "two\nlines"}', what="block")
    {'raw': 'two\nlines'}
    >>> decode('{"a": "é"};var meta = 1', what="block", code_after=True)
    {'a': 'é'}
    >>> decode(r'{"a": "\ud83d"};var meta = 1', what="block", code_after=True)
    {'a': '�'}

    Raises:
        ExtractionFailed: the document is truncated, is not JSON, or is nested deeper than orjson accepts.
    """
    try:
        try:
            # orjson rejects subclasses of bytes, but accepts a memoryview, which copies nothing.
            return orjson.loads(memoryview(body) if isinstance(body, bytes) else body)
        except orjson.JSONDecodeError as error:
            text = body.decode(errors="replace") if isinstance(body, bytes) else body
            if code_after and "after document" in error.msg:
                return orjson.loads(text[: error.pos])
            if not any(reason in error.msg for reason in REPAIRABLE):
                raise
            text = _LONE_SURROGATE.sub(lambda found: found["whole"] or r"\ufffd", text)
            return _LENIENT.raw_decode(text.lstrip())[0] if code_after else _LENIENT.decode(text)
    except (ValueError, RecursionError) as error:
        problem, place = ("nested too deeply", "") if isinstance(error, RecursionError) else _cause(error)
        message = f"The page's {what} is not valid JSON: {problem}{place}."
        raise invalid_error(message, [what], problem, "json_invalid", reason="broken_data_block") from error


def _cause(error: ValueError) -> tuple[str, str]:
    """Return what is wrong with a document, and where."""
    return (error.msg, f" at character {error.pos}") if isinstance(error, json.JSONDecodeError) else (str(error), "")


def encode(data: object, *, what: str) -> bytes:
    """Encode data of a page as JSON, such as the values of script literals, so that a contract can read them.

    >>> encode({"a": [1]}, what="block")
    b'{"a":[1]}'

    Raises:
        ExtractionFailed: the data is nested deeper than 254 levels, or has an integer of more than 64 bits.
    """
    try:
        return orjson.dumps(data)
    except orjson.JSONEncodeError as error:
        message = f"The page's {what} cannot be written as JSON: {error}."
        raise invalid_error(message, [what], str(error), "json_invalid", reason="broken_data_block") from error


def is_json(document: str | bytes) -> bool:
    """Whether a document begins like a JSON object or list, so that it is JSON and neither HTML nor plain text.

    >>> is_json(b' [{"a": 1}]'), is_json('{"a": 1}'), is_json(b"<p>{}</p>"), is_json("")
    (True, True, False, False)
    """
    return bool(_JSON.match(document) if isinstance(document, bytes) else _JSON_TEXT.match(document))


def script_block(body: bytes, script_id: str) -> bytes | None:
    """Return the contents of ``<script id=…>``, or None if the page has no such element or the element is empty.

    The usual spelling, ``<script id="…"``, is searched for first. The page is parsed only if this search fails, because
    parsing is expensive.

    Raises:
        ExtractionFailed: as for ``parsed_html``.

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
        end = body.find(b"<", opened)  # most blocks contain no "<", which is found far faster than "</script>"
        if not body.startswith(b"</script>", end):
            end = body.find(b"</script>", opened)
        if opened >= 0 and end >= 0:
            return body[opened + 1 : end]
    if script_id.encode() not in body:
        return None
    block = parsed_html(body).css(f"script#{script_id}::text").get()
    return None if block is None else block.encode()


def linked_data(blocks: Iterable[str | bytes]) -> tuple[list[dict[str, Any]], int]:
    """Return the outermost objects with ``@type`` in a page's ``application/ld+json`` blocks.

    Linked data is a secondary source, so that broken blocks are no error. Their number is returned, too.

    >>> linked_data(['{"@graph": [{"@type": "A", "b": {"@type": "B"}}]}', "{"])
    ([{'@type': 'A', 'b': {'@type': 'B'}}], 1)
    """
    waiting: deque[Any] = deque()
    broken = 0
    for block in blocks:
        try:
            waiting.append(decode(block, what="linked data"))
        except ExtractionFailed:
            broken += 1
    nodes = []
    while waiting:
        each = waiting.popleft()
        if isinstance(each, dict) and "@type" in each:
            nodes.append(each)
        elif isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return nodes, broken


_ASSIGNS = re.compile(rb"(?:[\"']\])?\s*=\s*(?=[\[{])")
_NAMED = (b"var ", b'window["', b"window['")


def assigned_block(body: bytes, name: str) -> bytes | None:
    """Return the JSON that a script assigns by ``var name =`` or ``window["name"] =``, or None if no script does.

    Code between the JSON and the script's end is returned, too, except a final semicolon.

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
            last = body[max(found.end(), end - 80) : end]  # the block is copied only once
            return body[found.end() : end - len(last) + len(last.rstrip().removesuffix(b";"))]
        at = body.find(mark, at + 1)
    return None


def scripts_with(body: bytes, mark: bytes) -> Iterator[bytes]:
    """Yield the contents of each script element whose contents contain the mark, in page order.

    The mark is searched for first, because usually only one of many scripts contains it. If the page ends inside a
    script, the incomplete script is yielded. Its JSON cannot be decoded.

    >>> list(scripts_with(b"<script>1</script><script type=x data-sjs>{'post': '<script>'}</script>", b"'post'"))
    [b"{'post': '<script>'}"]
    >>> list(scripts_with(b"<script>post", b"post")), list(scripts_with(b"post<script post>1</script>post", b"post"))
    ([b'post'], [])
    >>> list(scripts_with(b"post</script>", b"post"))
    []
    """
    after = 0  # the search for the next script with the mark starts at this position
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
    """Return the value at a path of keys and indexes, or None if the path does not exist.

    >>> dig({"a": [{"b": 1}]}, "a", 0, "b")
    1
    >>> dig({"a": None}, "a", 0, "b") is None
    True
    """
    for step in path:
        if type(value) is dict:  # the exact type that JSON decodes to: isinstance takes twice as long
            value = value.get(step)
        elif type(value) is list and type(step) is int and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the dicts in a list. For a value that is not a list, return [].

    >>> dicts([{"a": 1}, None, 3]), dicts(None)
    ([{'a': 1}], [])
    """
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def nonempty_strings(value: Any) -> list[str]:
    """Return the non-empty strings in a list. For a value that is not a list, return [].

    >>> nonempty_strings(["a", "", None])
    ['a']
    """
    return [each for each in value if isinstance(each, str) and each] if isinstance(value, list) else []


def all_dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the dicts in a payload, at any depth. Dicts nearer to the top come first.

    >>> list(all_dicts([{"a": {"b": 1}}, {}]))
    [{'a': {'b': 1}}, {}, {'b': 1}]
    """
    waiting = deque([value])
    while waiting:
        each = waiting.popleft()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict: the ``object_pairs_hook`` of decoders that refuse repeated keys.

    Raises:
        ValueError: a key is repeated. Without this hook, a decoder would take its last value.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return found


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError: the ``parse_constant`` of decoders that refuse NaN and Infinity."""
    raise ValueError(f"{name} is not a JSON value")


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python's message is about a function of Python
        raise ValueError(f"an integer has {len(text.lstrip('-')):,} digits") from None


def strict_decoder(**options: Any) -> json.JSONDecoder:
    """Return a decoder for JSON that people or programs send. It raises ValueError with a message for them.

    The standard library is used, because orjson accepts repeated keys, of which it takes the last value, and turns
    integers of more than 64 bits into floats.
    """
    refusals: dict[str, Any] = {"object_pairs_hook": unique_keys, "parse_constant": refuse_constant}
    return json.JSONDecoder(**refusals, parse_int=_integer, **options)


# Some documents have raw control characters, such as line breaks, inside strings. Numbers are read as by orjson.
_LENIENT = json.JSONDecoder(
    strict=False, parse_int=orjson.loads, parse_float=orjson.loads, parse_constant=refuse_constant
)
