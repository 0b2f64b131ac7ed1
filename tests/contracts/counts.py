"""Counts over whole captures in how many objects of a contract a declared value is present, and in how many null.

The counts are in ``<platform>/counts.json``: they are the evidence for the kind of each declared value.
``<platform>/documented.json`` lists, as patterns, values whose kind is taken from a document because there are too few
whole captures.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from crawler.reading.careful import find
from crawler.reading.contract import EMPTY, OFTEN_ROWS, Contract, Value, contracts, values
from crawler.reading.paths import steps
from tests.contracts.mutants import at, objects_in
from tests.contracts.responses import FOLDER, Payload, Response, listed

MIN_PAYLOADS, MIN_ROWS = 2, 30
MIN_WHOLE = 5
"""Counts over at least two payloads and thirty objects are enough evidence, and so are counts over five payloads."""


@dataclass
class Count:
    """The counts of one declared value over the objects of its contract in whole captures."""

    objects: int = 0
    present: int = 0
    null: int = 0
    payloads: int = 0
    """Number of payloads with such objects."""
    pages: int = 0
    """Number of payloads with ten or more such objects."""
    empty_pages: int = 0
    """Number of ``pages`` in which the value is absent, null, an empty text or an empty list in all objects."""
    types: list[str] = field(default_factory=list)

    @property
    def is_enough(self) -> bool:
        """Whether there are enough objects to declare the value as ``identity``, ``always`` or ``often``."""
        return (self.payloads >= MIN_PAYLOADS and self.objects >= MIN_ROWS) or self.payloads >= MIN_WHOLE

    def add(self, found: list[tuple[bool, Any]]) -> None:
        """Add the objects of one payload. ``found``: for each, whether the key is present, and the value or None."""
        self.objects += len(found)
        self.payloads += 1
        self.present += sum(present for present, _ in found)
        self.null += sum(present and value is None for present, value in found)
        if len(found) >= OFTEN_ROWS:
            self.pages += 1
            self.empty_pages += all(value in EMPTY for _, value in found)
        self.types = sorted({*self.types, *(type(value).__name__ for _, value in found if value is not None)})


def key_of(kind: type[Contract], value: Value) -> str:
    """Return the key under which a value's counts are stored, such as ``retail.payload.ApiData.facets``."""
    return f"{kind.__module__.removeprefix('crawler.platforms.')}.{kind.__qualname__}.{value.name}"


def count(responses: Iterable[Response]) -> dict[str, Count]:
    """Return key -> counts over the payloads of the responses that are whole."""
    counts: dict[str, Count] = defaultdict(Count)
    for response in responses:
        if response.whole:
            for payload in response.original.payloads:
                _add(payload, counts)
    return dict(sorted(counts.items()))


def _add(payload: Payload, counts: dict[str, Count]) -> None:
    found: dict[str, list[tuple[bool, Any]]] = defaultdict(list)
    for objects in objects_in(payload):
        for value in values(objects.kind):
            for place in objects.places:
                results = [find(at(payload.data, place), steps(path)) for path in value.paths]
                present = any(each.cause is None for each in results)
                filled = next((each.value for each in results if each.value is not None), None)
                found[key_of(objects.kind, value)].append((present, filled))
    for key, each in found.items():
        counts[key].add(each)


def wrong_kinds(kind: type[Contract], counts: dict[str, Count]) -> Iterator[str]:
    """Yield the declarations in a contract and in contracts inside it that the counts contradict or do not support."""
    documented = listed("documented")
    for each in contracts(kind):
        for value in values(each):
            counted = counts.get(key_of(each, value), Count())
            where = f"{key_of(each, value)} is {value.kind}"
            if value.required and counted.present < counted.objects:
                yield f"{where}, but the key is in {counted.present} of {counted.objects}"
            if value.kind == "identity" and counted.null:
                yield f"{where}, but it is null in {counted.null} of {counted.objects}"
            if value.often and counted.empty_pages:
                yield f"{where} and often, but it is empty in {counted.empty_pages} of {counted.pages} pages"
            is_documented = any(fnmatch(key_of(each, value), pattern) for pattern in documented)
            if (value.required or value.often) and not counted.is_enough and not is_documented:
                yield f"{where}, but there are only {counted.objects} in {counted.payloads} payloads"


def load(platform: str = "") -> dict[str, Count]:
    """Return key -> stored counts, of all platforms or of one."""
    return {key: Count(**each) for key, each in listed("counts", platform).items()}


def save(platform: str, counts: dict[str, Count]) -> None:
    """Write the ``counts.json`` of a platform."""
    lines = (f"{json.dumps(key)}: {json.dumps(vars(each))}" for key, each in counts.items())
    (FOLDER / platform / "counts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
