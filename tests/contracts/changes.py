"""Changes that a platform may make to its pages, tried on recorded responses: which of them are silent?

A change of one name is *noticed* if reading the changed response gives an error, or a warning that the unchanged
response does not give. It is *silent* if the answer changes without one. The names that are tried are those that the
platform's code mentions in a text: a reader cannot depend on any other name.

``silent.json`` lists the names for which nothing in a page can speak, each with the reason. ``silent_names`` finds the
names that are silent if they are renamed, or set to null, everywhere in a response. ``measure`` also tries other
operations, single rows, and short pages. It counts a silent change apart if it makes a page *as recorded*: the list
says that the platform has sent this null, or rows without this key. Such a page is read as it should be.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import orjson

from crawler.platforms import platforms
from scripts.captures import ROOT
from tests.contracts.recorded import FOLDER, Answer, Recorded, recorded
from tests.mutations import SUFFIX, Block, Name, blocks, names, renamed

Operation = Literal["rename", "null", "remove", "wrap", "retype"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
Scope = Literal["everywhere", "one row", "1", "5", "9"]
"""Where a name is changed: everywhere; in one row of each long list; or everywhere, with long lists cut to this length.
"""
SCOPES: tuple[Scope, ...] = get_args(Scope)
LONG = 10
"""Lists of at least this number of objects are lists of rows."""
LIST = FOLDER / "silent.json"
AS_RECORDED = {"Null was recorded.", "Some recorded rows lack it."}
"""The reasons in the list that say that the changed page is like recorded pages."""
PROCESSES = 2
SAMPLE = 60
"""Number of changes that ``measure`` tries for each operation and scope in each response."""


class Silent(NamedTuple):
    """A change that was silent in a response."""

    platform: str
    change: str
    """The operation and the name, such as ``rename averageRating``: as in ``silent.json``."""
    response: str


# The names that are tried


@cache
def mentioned(platform: str) -> frozenset[str]:
    """Return the words in the texts of a platform's code, such as keys in paths, and classes in selectors."""
    folder = ROOT / "crawler" / "platforms"
    files = [*(folder / platform).rglob("*.py"), *folder.glob("*.py"), *(ROOT / "crawler" / "reading").glob("*.py")]
    return frozenset(word for file in files for text in _texts(ast.parse(file.read_text())) for word in _words(text))


def _texts(tree: ast.AST) -> Iterator[str]:
    statements = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in statements:
            yield each.value


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_$][\w$-]*", text)


def tried(response: Recorded) -> list[Name]:
    """Return the names in a response that the platform's code mentions."""
    known = mentioned(response.platform)
    return [each for each in names(response.body) if known.issuperset(_words(each.text))]


# Changed copies of responses


def changed(body: bytes, name: Name, operation: Operation, scope: Scope = "everywhere") -> bytes:
    """Return a copy of a response with a name changed. If nothing can be changed, return the body itself."""
    if operation == "rename" and scope == "everywhere":
        if name.sort != "key":
            return renamed(body, name)
        key = name.text.encode()
        return re.sub(rb'(?<=")%b(?=\\*"\s*:)' % re.escape(key), key + SUFFIX.encode(), body)
    if name.sort != "key":
        return body
    key = name.text.encode()
    for block in reversed(blocks(body)):
        if b'"%b"' % key in body[block.start : block.end]:
            body = _with_block(body, block, name.text, operation, scope)
    return body


def _with_block(body: bytes, block: Block, key: str, operation: Operation, scope: Scope) -> bytes:
    """Return the body with a changed copy of one of its JSON documents."""
    holders = list(_holders(block.content, key, inside=scope != "one row"))
    if not holders:
        return body
    saved = [(holder, dict(holder)) for holder in holders]
    for holder in holders:
        _change(holder, key, operation)
    text = orjson.dumps(block.content).replace(b"</", b"<\\/")
    for holder, before in saved:
        holder.clear()
        holder.update(before)
    return body[: block.start] + text + body[block.end :]


def _change(holder: dict[str, Any], key: str, operation: Operation) -> None:
    value = holder[key]
    if operation in {"rename", "remove"}:
        del holder[key]
    if operation == "rename":
        holder[f"{key}{SUFFIX}"] = value
    elif operation == "null":
        holder[key] = None
    elif operation == "wrap":
        holder[key] = {"value": value}
    elif operation == "retype":
        holder[key] = str(value) if isinstance(value, int | float) else [value]


def _holders(content: Any, key: str, *, inside: bool) -> Iterator[dict[str, Any]]:
    """Yield the objects that have a key. ``inside``: anywhere; else only in the middle row of each long list."""
    if isinstance(content, dict):
        if inside and key in content:
            yield content
        for each in content.values():
            yield from _holders(each, key, inside=inside)
    elif isinstance(content, list):
        is_long = _is_long(content)
        for number, each in enumerate(content):
            if inside or not is_long or number == len(content) // 2:
                yield from _holders(each, key, inside=inside or is_long)


def _is_long(content: list[Any]) -> bool:
    return len(content) >= LONG and all(isinstance(each, dict) for each in content)


def short(body: bytes, length: int) -> bytes:
    """Return a copy of a response with its long lists of objects cut to a length."""
    for block in reversed(blocks(body)):
        content, found = _cut(block.content, length)
        if found:
            body = body[: block.start] + orjson.dumps(content).replace(b"</", b"<\\/") + body[block.end :]
    return body


def _cut(content: Any, length: int) -> tuple[Any, bool]:
    if isinstance(content, dict):
        parts = {key: _cut(each, length) for key, each in content.items()}
        return {key: each for key, (each, _) in parts.items()}, any(found for _, found in parts.values())
    if isinstance(content, list):
        is_long = _is_long(content)
        entries = [_cut(each, length) for each in (content[:length] if is_long else content)]
        return [each for each, _ in entries], is_long or any(found for _, found in entries)
    return content, False


Effect = Literal["none", "noticed", "silent"]


def effect(original: Answer, answer: Answer) -> Effect:
    """Return whether a change of a response has changed its answer, and if so, whether the answer says so."""
    if answer.data == original.data:
        return "none"
    return "noticed" if answer.error or Counter(answer.warnings) - Counter(original.warnings) else "silent"


# The names that are silent


@cache
def silent_names(platform: str) -> frozenset[Silent]:
    """Return the changes of single names, everywhere in a response, that are silent."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        found = pool.map(_silent_names_of, [platform] * PROCESSES, range(PROCESSES))
        return frozenset(each for part in found for each in part)


def _silent_names_of(platform: str, part: int) -> list[Silent]:
    """Return the silent changes in one part of a platform's responses."""
    found = []
    for response in with_data(platform)[part::PROCESSES]:
        original = response.read()
        for name in tried(response):
            for operation in OPERATIONS[:2]:
                body = changed(response.body, name, operation)
                result = effect(original, response.read(body)) if body != response.body else "none"
                if result == "silent":
                    found.append(Silent(platform, f"{operation} {name.text}", response.name))
                if result == "none":
                    break  # the record does not depend on the name
    return found


def with_data(platform: str) -> list[Recorded]:
    """Return the recorded responses with data, each with one scraper per page class."""
    found: dict[tuple[str, str], Recorded] = {}
    for each in recorded(platform):
        if each.read().data is not None:
            found.setdefault((each.name, each.page_class), each)
    return list(found.values())


def listed_names(platform: str) -> dict[str, str]:
    """Return the changes that may be silent on a platform's pages, each with the reason."""
    every: dict[str, dict[str, str]] = json.loads(LIST.read_bytes())
    return every.get(platform, {})


def unlisted(platform: str) -> Iterator[str]:
    """Yield a line for each change that is silent but not in the list: the change, and a response."""
    found = {each.change: each.response for each in silent_names(platform)}
    yield from (
        f"{platform}: {change} is silent in {found[change]}" for change in found.keys() - listed_names(platform)
    )


def wrongly_listed(platform: str) -> Iterator[str]:
    """Yield a line for each change in the list that is noticed now in all responses."""
    found = {each.change for each in silent_names(platform)}
    yield from (f"{platform}: {change} is no longer silent" for change in listed_names(platform).keys() - found)


# Measuring


def measure(platform: str) -> Iterator[str]:
    """Yield a line per scope and operation: how many changes change the answer, and how many of them are silent.

    The changes that make a page as recorded are not counted as silent.
    """
    with ProcessPoolExecutor(PROCESSES) as pool:
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for part in pool.map(_measured, [platform] * PROCESSES, range(PROCESSES)):
            for key, count in part.items():
                counts[key] += count
    every: Counter[str] = sum(counts.values(), Counter())
    for (scope, operation), count in [*sorted(counts.items()), (("all", ""), every)]:
        of = count["noticed"] + count["silent"] + count["as recorded"]
        share = 100 * count["silent"] / of if of else 0
        silent = f"{count['silent']} silent, {share:.1f} %"
        yield f"{platform} {scope} {operation}: {of} changes, {silent}, and {count['as recorded']} as recorded"


def _measured(platform: str, part: int) -> dict[tuple[str, str], Counter[str]]:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for response in with_data(platform)[part::PROCESSES]:
        candidates = [each for each in tried(response) if each.sort == "key"]
        for scope in SCOPES:
            body = short(response.body, int(scope)) if scope.isdigit() else response.body
            original = response.read(body)
            if original.data is None or (scope.isdigit() and body == response.body):
                continue
            for name in random.Random(response.name).sample(candidates, min(SAMPLE, len(candidates))):  # noqa: S311
                for operation in OPERATIONS:
                    other = changed(body, name, operation, "one row" if scope == "one row" else "everywhere")
                    found = effect(original, response.read(other)) if other != body else "none"
                    if found == "none" and operation == "rename":
                        break  # the record does not depend on the name
                    is_recorded = found == "silent" and _is_as_recorded(platform, operation, name)
                    counts[scope, operation]["as recorded" if is_recorded else found] += 1
    return counts


def _is_as_recorded(platform: str, operation: Operation, name: Name) -> bool:
    """Whether the list says that the platform has sent this null, or rows without this key."""
    change = f"{'null' if operation == 'null' else 'rename'} {name.text}"
    return listed_names(platform).get(change) in AS_RECORDED


def write(platform: str) -> None:
    """Write the list of a platform anew. Known reasons are kept, and new entries have the reason ""."""
    changes = sorted({each.change for each in silent_names(platform)})
    found = {each: listed_names(platform).get(each, "") for each in changes}
    every = {each: found if each == platform else listed_names(each) for each in platforms()}
    LIST.write_text(json.dumps(every, indent=1, ensure_ascii=False) + "\n")
