"""Simulated changes of platform payloads, chosen by a seed: renamed keys, renamed objects, moved values."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Any

import orjson

from crawler.platforms.page import PlatformPage
from crawler.reading.contract import Contract, Step, Value, joined, steps, values
from tests.contracts.mutants import Objects, at, objects_in
from tests.contracts.responses import Response, of_fixtures

WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "inlet", "juniper")
"""Words that no platform uses as keys."""
_BLOCK = re.compile(r"(?:^|[>=]\s*)(?=[{\[])")


@dataclass(frozen=True)
class Change:
    """A change that affects one value of a contract, and pages of the platform before and after the change."""

    kind: type[Contract]
    value: Value
    depth: int
    """Number of keys on the value's path, up to and including the changed key."""
    further: str
    """The path that the value has after the change."""
    changed: list[PlatformPage]
    good: list[PlatformPage]
    """Pages of other targets from before the change."""
    same: list[PlatformPage]
    """The page of the same target from before the change."""
    truth: Any
    """The item that the changed page gave before the change."""

    @property
    def declared(self) -> str:
        return joined(steps(self.value.paths[0])[: self.depth])

    def __str__(self) -> str:
        return f"{self.kind.__module__.split('.')[2]}.{self.kind.__name__}: {self.declared} -> {self.further}"


def new_name(key: str, draw: random.Random) -> str:
    """Return a new name for a key: respelled, with a word added or removed, or an unrelated word."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", key) or [key]
    camel = "".join([words[0].lower(), *(each.capitalize() for each in words[1:])])
    styles = [
        "_".join(words).lower(),
        f"{camel}V2",
        f"{camel}Info",
        f"{draw.choice(WORDS)}{camel[:1].upper()}{camel[1:]}",
    ]
    return draw.choice([each for each in styles if each != key] + [draw.choice(WORDS)])


def changes_of(platform: str, seed: int, operations: tuple[str, ...] = ("rename", "rename", "move")) -> Change:
    """Choose a change of a platform by a seed.

    ``operations``: ``rename``, ``move``, or ``replace``: the value is removed, and a new key has a different value of
    the same type and format.
    """
    draw = random.Random(f"{platform} {seed}")  # noqa: S311  # a fixed draw
    for _ in range(500):
        response, *others = draw.sample(_with_twins(platform), 1)[0]
        payload = draw.choice(response.original.payloads)
        objects = draw.choice(list(objects_in(payload)))
        required = [each for each in values(objects.kind) if each.required and len(each.paths) == 1]
        if not required:
            continue
        value = draw.choice(required)
        keys = _keys(steps(value.paths[0]))
        depth = draw.randint(1, len(keys)) if keys else 0
        operation = draw.choice(operations)
        if operation == "replace" and (value.contracts or depth < len(steps(value.paths[0]))):
            continue
        change = _change(payload.data, objects, keys[:depth], operation, draw) if keys else None
        if change is None:
            continue
        data, further = change
        page = response.make()
        pairs = [(payload.data, data), *((at(payload.data, place), at(data, place)) for place in objects.places)]
        body = replaced(page.response.body, pairs)
        good = [each.make() for each in others if _has(each, objects)][:2]
        if body != page.response.body and _is_filled(payload.data, objects, value) and good:
            made = with_body(page, body)
            return Change(objects.kind, value, depth, further, [made], good, [page], response.original.item)
    raise AssertionError(f"no change of {platform} in 500 draws")


def _has(response: Response, objects: Objects) -> bool:
    """Return whether a response has objects of the same contract at the same path."""
    found = (each for payload in response.original.payloads for each in objects_in(payload))
    return any((each.kind, each.path) == (objects.kind, objects.path) for each in found)


def _with_twins(platform: str) -> list[list[Response]]:
    """Return a list for each response: the response, followed by the other responses of its page class."""
    found = [each for each in of_fixtures(platform) if each.original.payloads]
    by_class: dict[type, list[Response]] = {}
    for each in found:
        by_class.setdefault(type(each.make()), []).append(each)
    return [[each, *(o for o in twins if o is not each)] for twins in by_class.values() for each in twins]


def _keys(path: tuple[Step, ...]) -> list[str]:
    """Return the keys at the beginning of a path, before the first step into a list or into every key of an object."""
    keys = []
    for step in path:
        if not isinstance(step, str) or step in {"[]", "*"}:
            break
        keys.append(step)
    return keys


def _is_filled(data: Any, objects: Objects, value: Value) -> bool:
    """Return whether the payload has data at the declared path of this value.

    Without data, the change would not be visible.
    """
    found = []
    for place in objects.places:
        held = at(data, place)
        for step in _keys(steps(value.paths[0])):
            held = held.get(step) if isinstance(held, dict) else None
        found.append(held)
    return any(each not in (None, "", [], {}) for each in found)


def _change(
    data: Any, objects: Objects, keys: list[str], operation: str, draw: random.Random
) -> tuple[Any, str] | None:
    """Return the changed payload, and the new path of the changed keys."""
    changed = orjson.loads(orjson.dumps(data))
    name = new_name(keys[-1], draw)
    further = _moved(keys, draw) if operation == "move" else [*keys[:-1], name]
    if operation == "replace":
        further[-1] = draw.choice(WORDS)
    for place in objects.places:
        row = held = at(changed, place)
        for key in keys[:-1]:
            held = held.get(key) if isinstance(held, dict) else None
        if not isinstance(held, dict) or keys[-1] not in held:
            continue
        value, into = held.pop(keys[-1]), row
        for key in further[:-1]:
            into = into.setdefault(key, {})
        if not isinstance(into, dict) or further[-1] in into:
            return None
        into[further[-1]] = other(value) if operation == "replace" else value
    return changed, ".".join(further)


def _moved(keys: list[str], draw: random.Random) -> list[str]:
    up = [*keys[:-2], keys[-1]] if len(keys) > 1 else None
    down = [*keys[:-1], draw.choice(WORDS), keys[-1]]
    return draw.choice([each for each in (up, down) if each])


def replaced(body: bytes, pairs: list[tuple[Any, Any]]) -> bytes:
    """Return a page in which the JSON block that equals the first value of a pair is replaced by the second value."""
    text, decoder, end, pieces = body.decode(), json.JSONDecoder(), 0, []
    for found in _BLOCK.finditer(text):
        if found.end() < end:
            continue
        try:
            block, stop = decoder.raw_decode(text, found.end())
        except ValueError:
            continue
        after = _with(block, pairs)
        if after is not block:
            pieces += [text[end : found.end()], json.dumps(after, separators=(",", ":"), ensure_ascii=False)]
            end = stop
    return "".join((*pieces, text[end:])).encode()


def _with(block: Any, pairs: list[tuple[Any, Any]]) -> Any:
    changed = next((new for data, new in pairs if block == data), block) if isinstance(block, dict | list) else block
    if changed is not block:
        return changed
    if isinstance(block, dict):
        inside = {key: _with(each, pairs) for key, each in block.items()}
        return inside if any(inside[key] is not block[key] for key in block) else block
    if isinstance(block, list):
        entries = [_with(each, pairs) for each in block]
        return entries if any(one is not two for one, two in zip(entries, block, strict=True)) else block
    return block


def other(value: Any) -> Any:
    """Return a different value of the same type and form. None and values of other types are returned unchanged.

    >>> other("Az9-"), other(4), other(True), other(["a"]), other(None)
    ('Ba0-', 5, False, ['b'], None)
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value.translate(_OTHER)
    return [other(each) for each in value] if isinstance(value, list) else value


_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
_OTHER = {ord(one): next_ for each in _ALPHABETS for one, next_ in zip(each, each[1:] + each[0], strict=True)}


def with_body(page: PlatformPage, body: bytes) -> PlatformPage:
    """Return a page object of the same class for another body."""
    old = page.response
    response = type(old)(str(old.url), body, status=old.status, headers=dict(old.headers))
    return type(page)(response=response, page_params=page.page_params)
