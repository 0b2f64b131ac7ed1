"""Makes changed copies of responses: each name renamed, each key removed or set to null, in one row or in all rows.

A platform may rename any key, class, element or variable of its pages. These functions find all such names in the
sandbox's responses (``tests.fixture_sources``), and determine by trial which of them a page object depends on: those
whose renaming changes its result. So the names need not be listed, and new fields are covered automatically.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple, cast

import orjson
from lxml import html

from crawler.errors import ExtractionFailed, ScrapeError
from crawler.platforms import platforms
from crawler.reading.documents import all_dicts
from tests.make_fixtures import Case, cases

SUFFIX = "Renamed"
"""The suffix that is appended to a name to rename it."""

Sort = Literal["key", "bare key", "class", "id", "element", "attribute", "variable"]
Place = tuple[str | int, ...]


# Reading


@dataclass(frozen=True)
class Reading:
    """The result of a page object: an item or an error, and the errors and unread parts that it reports for an item."""

    item: Any
    error: ScrapeError | None
    skipped: frozenset[str]
    """The reason and details of each error of a skipped part, and each unread part, as text."""


@dataclass(frozen=True)
class PageFixture:
    """A response from which a page object reads data."""

    case: Case

    @property
    def name(self) -> str:
        """The id of the fixture in test names."""
        return f"{self.platform}-{self.case.page.__name__}-{self.case.name}"

    @property
    def platform(self) -> str:
        return self.case.page.__module__.split(".")[2]

    @property
    def body(self) -> bytes:
        return self.case.body

    @cached_property
    def original(self) -> Reading:
        """The result for the unchanged body."""
        return self.read(self.body)

    @property
    def item(self) -> Any:
        return self.original.item

    def read(self, body: bytes) -> Reading:
        """Read a changed copy of the body. An exception that is not a typed error is raised."""
        page = self.case.page_object(body)
        try:
            item = asyncio.run(page.to_item())
        except ScrapeError as error:
            return Reading(None, error, frozenset())
        skipped = {f"{each.reason}: {each.details}" for each in page.skipped} | set(map(str, page.unread))
        return Reading(dict(item), None, frozenset(skipped))


@cache
def fixtures(platform: str = "") -> tuple[PageFixture, ...]:
    """Return the sandbox's responses with data, of all platforms or of one, in a fixed order.

    Transcribed fixtures are left out: they are so large that changing each of their names takes minutes.
    """
    if not platform:
        return tuple(chain.from_iterable(map(fixtures, platforms())))
    return tuple(PageFixture(case) for case in cases(platform) if case.has_data)


# Names


class Name(NamedTuple):
    """A name in a response that the platform may change."""

    sort: Sort
    text: str


_NAME = rb"[A-Za-z_$][\w.$:-]{0,80}"
_PLACES: dict[Sort, re.Pattern[bytes]] = {
    "key": re.compile(rb'(?<=")(?P<name>' + _NAME + rb')(?=\\*"\s*:)'),
    "bare key": re.compile(rb"(?<=[{,])(?P<name>[A-Za-z_$][\w$]*)(?=:)"),
    "class": re.compile(rb'(?<![\w-])class="(?P<names>[^"]*)"'),
    "id": re.compile(rb'(?<![\w-])id="(?P<name>[^"]+)"'),
    "element": re.compile(rb"(?<=<)/?(?P<name>" + _NAME + rb")"),
    "attribute": re.compile(rb'\s(?!version=|encoding=)(?P<name>[a-z][\w:-]*)(?==")'),
    "variable": re.compile(rb"(?:var |window\[[\"'])(?P<name>" + _NAME + rb")(?=(?:[\"']\])?\s*=)"),
}
"""A pattern for each sort of name. The patterns do not match content."""


def _sorts(body: bytes) -> list[Sort]:
    start = body[:200].lstrip()
    if start.startswith((b"{", b"[")):
        return ["key"]
    if start.startswith((b"<?xml", b"<feed")):
        return ["element", "attribute"]
    return ["key", "class", "id", "variable", *(["bare key"] if b"$R[" in body else [])]  # type: ignore[list-item]


@cache
def names(body: bytes) -> tuple[Name, ...]:
    """Return all names that can be renamed in a response: JSON keys, elements, attributes, classes, ids, variables."""
    found: set[Name] = set()
    for sort in _sorts(body):
        for match in _PLACES[sort].finditer(body):
            texts = match["names"].split() if sort == "class" else [match["name"]]
            found |= {Name(sort, text.decode()) for text in texts}
    return tuple(sorted(found))


def renamed(body: bytes, *changed: Name) -> bytes:
    """Return the response with the given names renamed wherever they occur as names."""
    by_sort: dict[Sort, set[bytes]] = {}
    for name in changed:
        by_sort.setdefault(name.sort, set()).add(name.text.encode())
    for sort, texts in by_sort.items():
        body = _PLACES[sort].sub(lambda match, texts=texts: _renaming(match, texts), body)  # type: ignore[misc]
    return body


def _renaming(match: re.Match[bytes], texts: set[bytes]) -> bytes:
    group = "names" if "names" in match.re.groupindex else "name"
    words = re.split(rb"(\s+)", match[group]) if group == "names" else [match[group]]
    changed = b"".join(word + SUFFIX.encode() if word in texts else word for word in words)
    start = match.start(group) - match.start()
    return match[0][:start] + changed + match[0][start + len(match[group]) :]


def field_map(fixture: PageFixture) -> tuple[Name, ...]:
    """Return the names that the page object depends on: those whose renaming changes the result or adds a warning."""
    return tuple(_needs(fixture))


def mandatory_names(fixture: PageFixture) -> tuple[Name, ...]:
    """Return the names whose renaming makes the page object raise an error."""
    return tuple(name for name, is_mandatory in _needs(fixture).items() if is_mandatory)


TOGETHER = 8
"""Number of names that are first renamed together: a page object depends on few of the names in a response."""


@cache
def _needs(fixture: PageFixture) -> dict[Name, bool]:
    """Return the names that the page object depends on, and for each, whether it is mandatory."""
    every = names(fixture.body)
    groups = (every[start : start + TOGETHER] for start in range(0, len(every), TOGETHER))
    return dict(chain.from_iterable(_needed(fixture, group) for group in groups))


def _needed(fixture: PageFixture, some: tuple[Name, ...]) -> Iterator[tuple[Name, bool]]:
    reading = fixture.read(renamed(fixture.body, *some))
    if reading == fixture.original:
        return
    if len(some) == 1:
        yield some[0], reading.item is None
        return
    for half in (some[: len(some) // 2], some[len(some) // 2 :]):
        yield from _needed(fixture, half)


# Changes of single parts


class Mutation(NamedTuple):
    """A changed copy of a response."""

    label: str
    body: bytes


def removals(fixture: PageFixture, keys: Iterable[str]) -> Iterator[Mutation]:
    """Yield copies of the response, each with one key removed from all objects."""
    for key in keys:
        yield from _mutation(fixture, f"{key} removed", changed_json(fixture.body, (), key, _remove))


def nulls(fixture: PageFixture, keys: Iterable[str]) -> Iterator[Mutation]:
    """Yield copies of the response, each with one key set to null in all objects."""
    for key in keys:
        yield from _mutation(fixture, f"{key} null", changed_json(fixture.body, (), key, nullify))


def _mutation(fixture: PageFixture, label: str, body: bytes) -> Iterator[Mutation]:
    if body != fixture.body:
        yield Mutation(label, body)


def row_changes(fixture: PageFixture, changed: Iterable[Name]) -> Iterator[Mutation]:
    """Yield copies of the response, each with one name renamed in only the last row of each list.

    A row is an object in a JSON list of several, or an element with siblings of the same tag and class.
    """
    used = sorted(changed)
    for place in _rows(fixture.body):
        for key in [name.text for name in used if name.sort == "key"]:
            label = f"{'.'.join(map(str, place))}: {key}"
            yield from _mutation(fixture, label, changed_json(fixture.body, place, key, _rename))
    classes = [name.text for name in used if name.sort == "class"]
    if classes:
        yield from _changed_elements(fixture.body, classes)


Change = Callable[[dict[str, Any], str], None]


def _remove(node: dict[str, Any], key: str) -> None:
    del node[key]


def nullify(node: dict[str, Any], key: str) -> None:
    """Set a key of an object to null."""
    node[key] = None


def _rename(node: dict[str, Any], key: str) -> None:
    items = list(node.items())
    node.clear()
    node.update((each + SUFFIX if each == key else each, value) for each, value in items)


class Block(NamedTuple):
    """A JSON document in a response: its position, and its content."""

    start: int
    end: int
    content: Any


_SCRIPT = re.compile(rb"<script[^>]*>(.*?)</script>", re.DOTALL)
_START = re.compile(rb"\A(?:[^{}\[\]<>]{0,80}(?:=|:)\s*)?(?=[\[{])")


@cache
def blocks(body: bytes) -> tuple[Block, ...]:
    """Return the JSON documents in a response: the whole body, or the scripts that are JSON or assign JSON."""
    spans = [(0, body)]
    if body.lstrip()[:1] == b"<":
        spans = [(found.start(1), found[1]) for found in _SCRIPT.finditer(body)]
    return tuple(block for start, text in spans if (block := _block(start, text)) is not None)


def _block(start: int, text: bytes) -> Block | None:
    before = _START.match(text)
    if before is None:
        return None
    document = text[before.end() :].decode()
    try:
        content, length = json.JSONDecoder(strict=False).raw_decode(document)
    except ValueError:
        return None
    start += before.end()
    return Block(start, start + len(document[:length].encode()), content)


def changed_json(body: bytes, place: Place, key: str, change: Change) -> bytes:
    """Return the response with a change at each occurrence of the key below a place.

    A place is the number of a JSON document in the response, then keys and indexes. () is the whole response.
    """
    for number, block in reversed(list(enumerate(blocks(body)))):
        if (place and place[0] != number) or b'"%b"' % key.encode() not in body[block.start : block.end]:
            continue
        content = orjson.loads(orjson.dumps(block.content))
        changed = [each for each in all_dicts(_at(content, place[1:])) if key in each]
        for node in changed:
            change(node, key)
        if changed:
            text = orjson.dumps(content).replace(b"</", b"<\\/")
            body = body[: block.start] + text + body[block.end :]
    return body


def _at(content: Any, place: Place) -> Any:
    for step in place:
        content = content[step]
    return content


def _rows(body: bytes) -> Iterator[Place]:
    """Yield the places of the last rows of lists in a response. Of lists with equal key paths, only one is used."""
    seen: set[Place] = set()
    waiting: list[tuple[Place, Any]] = [((number,), block.content) for number, block in enumerate(blocks(body))]
    while waiting:
        place, each = waiting.pop(0)
        if isinstance(each, dict):
            waiting += [((*place, key), value) for key, value in each.items()]
        elif isinstance(each, list):
            waiting += [((*place, index), value) for index, value in enumerate(each)]
            kind = tuple(step if isinstance(step, str) else "" for step in place)
            objects = [index for index, value in enumerate(each) if isinstance(value, dict)]
            if len(objects) > 1 and kind not in seen:
                seen.add(kind)
                yield (*place, objects[-1])


def _changed_elements(body: bytes, classes: list[str]) -> Iterator[Mutation]:
    groups: dict[tuple[Any, str, str], int] = {}
    tree = html.fromstring(body, parser=html.HTMLParser(encoding="utf-8"))
    elements = [each for each in tree.iter() if isinstance(each.tag, str) and each.get("class")]
    for number, each in enumerate(elements):
        groups[(each.getparent(), each.tag, each.get("class"))] = number
    repeated = [(kind, last) for kind, last in groups.items() if sum(_kind(each) == kind for each in elements) > 1]
    for (_, tag, name), last in repeated:
        inside = {token for each in elements[last].iter() if isinstance(each.tag, str) for token in each.classes}
        for token in (each for each in classes if each in inside):
            changed = html.fromstring(body, parser=html.HTMLParser(encoding="utf-8"))
            row = [each for each in changed.iter() if isinstance(each.tag, str) and each.get("class")][last]
            for each in row.iter():
                if isinstance(each.tag, str) and token in each.classes:
                    each.set("class", " ".join(t + SUFFIX if t == token else t for t in each.classes))
            yield Mutation(f"{tag}.{name}: {token}", cast("bytes", html.tostring(changed, encoding="utf-8")))


def _kind(element: Any) -> tuple[Any, str, str]:
    return element.getparent(), element.tag, element.get("class")


# Differences between items

EMPTY: tuple[Any, ...] = (None, "", [], {}, False)
"""The values that fields have if their part of the page is missing. ``has_about`` and similar fields have False."""


class Difference(NamedTuple):
    """A difference at a path: a missing or different value, or a missing or new row."""

    path: str
    kind: Literal["emptied", "changed", "row lost", "row added"]
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> list[Difference]:
    """Return the differences between two items. Their rows are aligned, so that one lost row is one difference."""
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        keys = {**before, **after}
        return [each for key in keys for each in differences(before.get(key), after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list):
        if any(isinstance(row, dict) for row in (*before, *after)):
            return _row_differences(before, after, path)
        return [Difference(path, "emptied" if set(after) <= set(before) else "changed", before, after)]
    return [Difference(path, "emptied" if after in EMPTY else "changed", before, after)]


def _row_differences(before: list[Any], after: list[Any], path: str) -> list[Difference]:
    found: list[Difference] = []
    rows = list(after)
    spare = len(before) - len(after)
    for index, row in enumerate(before):
        each = differences(row, rows[0], f"{path}[{index}]") if rows else []
        if not rows or (spare > 0 and any(one.kind == "changed" for one in each)):
            found.append(Difference(f"{path}[{index}]", "row lost", row, None))
            spare -= 1
        else:
            found += each
            rows.pop(0)
    return found + [Difference(f"{path}[]", "row added", None, row) for row in rows]


def _has_rows(value: Any) -> bool:
    """Whether a record contains a list of objects that is not empty."""
    if isinstance(value, list):
        return any(isinstance(each, dict) for each in value)
    return isinstance(value, dict) and any(map(_has_rows, value.values()))


def violations(
    fixture: PageFixture,
    body: bytes,
    *,
    alternatives: tuple[str, ...] = (),
    one_row: bool = False,
    stated: bool = False,
) -> list[str]:
    """Read a changed copy of a response, and return the rules for changed pages that the result breaks.

    The rules: the error, if any, is an ``ExtractionFailed`` with paths. No value is invented, and no row is lost
    without a new entry in ``skipped``. With ``one_row``, there is no error if the record has rows, and at most one row
    of each list is lost.
    With ``stated``, the response itself states that the parts are missing: any error is allowed, and no entry is
    required.

    ``alternatives`` are regular expressions for paths whose value may come from another part of the page.
    """
    before, after = fixture.original, fixture.read(body)
    if after.error is not None:
        if one_row and _has_rows(before.item):
            return [f"one row fails the record: {after.error!r} {after.error.details}"]
        if stated or (isinstance(after.error, ExtractionFailed) and after.error.details):
            return []
        return [f"not an EXTRACTION_FAILED with a path: {after.error.code} {after.error.reason}"]
    found = differences(before.item, after.item)
    lost = [each for each in found if each.kind == "row lost"]
    added = [each for each in found if each.kind == "row added"]
    changed = [each for each in found if each.kind == "changed"]
    invented = [each for each in changed if not any(re.search(path, each.path) for path in alternatives)]
    problems = [f"{each.kind}: {each.path}: {each.before!r} -> {each.after!r}"[:200] for each in (*added, *invented)]
    if lost and not stated and not after.skipped - before.skipped:
        problems.append(f"{len(lost)} rows lost in silence, the first is {lost[0].path}")
    if one_row and max(Counter(re.sub(r"\[\d+\]$", "", each.path) for each in lost).values(), default=0) > 1:
        problems.append(f"{len(lost)} rows lost with one")
    return problems
