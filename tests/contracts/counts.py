"""The evidence for contracts: how often each declared value was recorded, absent, null and filled.

The counts are in ``<platform>/counts.json``. They are made over all recorded responses of the machine. Only *whole*
captures (``captures.json``) prove that a key is in every row: somebody removed keys from the others.
``<platform>/documented.json`` lists, as patterns, values whose kind is taken from a document because there are too few
whole captures. ``<platform>/nulls.json`` lists values whose null is known from a document, although none was recorded.

The rules of ``contradictions``: a key that whole captures lack is not ``always``. A value that was recorded as null
may be null, and a value that was recorded in at least ten rows, and never as null, may not. A value that is neither
null nor empty in at least ten rows, and in all rows, is ``often``, unless a document says otherwise. With fewer than
ten rows, the declaration may be either.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, NamedTuple

import orjson

from crawler.reading.careful import find, objects
from crawler.reading.contract import EMPTY, OFTEN_ROWS, Contract, Value, contracts, steps, values
from tests.contracts.recorded import FOLDER, Recorded
from tests.microblog_parts import MADE_UP

MIN_ROWS = 10
MIN_WHOLE_PAYLOADS, MIN_WHOLE_ROWS = 2, 30
MIN_WHOLE = 5
"""Counts over at least two whole payloads and thirty rows prove an ``always`` value, and so do five whole payloads."""


@dataclass
class Count:
    """The counts of one declared value over the objects ("rows") of its contract."""

    rows: int = 0
    present: int = 0
    """Number of rows in which the key of one of the value's paths is present."""
    null: int = 0
    """Number of rows in which the value is null at one of its paths."""
    filled: int = 0
    """Number of rows in which the value is neither null nor an empty text or list."""
    whole_payloads: int = 0
    whole_rows: int = 0
    whole_present: int = 0
    pages: int = 0
    """Number of payloads with ten or more rows."""
    whole_pages: int = 0
    empty_pages: int = 0
    """Number of ``whole_pages`` in which the value is absent, null or empty in all rows."""

    @property
    def is_enough(self) -> bool:
        """Whether there are enough whole payloads to declare the value as ``identity``, ``always`` or ``often``."""
        enough_rows = self.whole_payloads >= MIN_WHOLE_PAYLOADS and self.whole_rows >= MIN_WHOLE_ROWS
        return enough_rows or self.whole_payloads >= MIN_WHOLE

    @property
    def is_never_null(self) -> bool:
        return self.present >= MIN_ROWS and self.null == 0

    @property
    def is_always_filled(self) -> bool:
        return self.rows >= MIN_ROWS and self.filled == self.rows

    def add(self, places: list[list[dict[str, Any]]], value: Value, *, whole: bool) -> None:
        """Add the rows of one payload. ``places``: the rows at each path. ``whole``: whether the payload is whole."""
        self.whole_payloads += whole
        for rows in places:
            found = [[find(row, steps(path)) for path in value.paths] for row in rows]
            filled = sum(any(each.value not in EMPTY for each in of_row) for of_row in found)
            # Some entries of a list may lack the key.
            present = sum(any(each.cause is None or each.value not in EMPTY for each in of_row) for of_row in found)
            is_page = len(rows) >= OFTEN_ROWS
            self.rows += len(rows)
            self.present += present
            self.null += sum(any(each.is_null for each in of_row) for of_row in found)
            self.filled += filled
            self.pages += is_page
            if whole:
                self.whole_rows += len(rows)
                self.whole_present += present
                self.whole_pages += is_page
                self.empty_pages += is_page and not filled


def listed(name: str, platform: str = "") -> dict[str, Any]:
    """Return the entries of a JSON file such as ``retail/captures.json``, of all platforms or of one."""
    files = sorted(FOLDER.glob(f"{platform or '*'}/{name}.json"))
    return {key: value for file in files for key, value in json.loads(file.read_bytes()).items()}


def key_of(kind: type[Contract], value: Value) -> str:
    """Return the key under which a value's counts are stored, such as ``retail.payload.InitialData.facets``."""
    return f"{kind.__module__.removeprefix('crawler.platforms.')}.{kind.__qualname__}.{value.name}"


class Payload(NamedTuple):
    """A part of a recorded response, and the contract by which a page object reads it from the root."""

    response: str
    root: type[Contract]
    data: Any


def distinct(responses: Iterable[Recorded]) -> Iterator[Payload]:
    """Yield the payloads that page objects read in recorded responses, each once: several scrapers read the same."""
    seen: set[tuple[type[Contract], bytes]] = set()
    for response in responses:
        for root, data in response.payloads():
            if (read := (root, orjson.dumps(data))) not in seen:
                seen.add(read)
                yield Payload(response.name, root, data)


def count(payloads: Iterable[Payload]) -> dict[str, Count]:
    """Return key -> counts over distinct payloads."""
    counts: dict[str, Count] = defaultdict(Count)
    whole_captures = {name for name, each in listed("captures").items() if each["whole"]}
    for response, root, data in payloads:
        places: dict[type[Contract], list[list[dict[str, Any]]]] = defaultdict(list)
        for (kind, _), rows in objects(root, data).items():
            if own := [row for row in rows if MADE_UP not in row]:
                places[kind].append(own)
        for kind, of_kind in places.items():
            for value in values(kind):
                counts[key_of(kind, value)].add(of_kind, value, whole=response in whole_captures)
    return dict(sorted(counts.items()))


# Declarations that the counts contradict


class Form(NamedTuple):
    """A declared value in one of the contracts that have it: the class that declares it, or one that inherits it."""

    contract: type[Contract]
    value: Value
    counted: Count


def contradictions(roots: Iterable[type[Contract]], counts: dict[str, Count]) -> list[str]:
    """Return why counts contradict the declarations in contracts, and in contracts inside them.

    A line of a base class is one declaration: it must fit all classes that inherit it.
    """
    lines: dict[str, list[Form]] = defaultdict(list)
    for kind in dict.fromkeys(each for root in roots for each in contracts(root)):
        for value in values(kind):
            owner = next(each for each in kind.__mro__ if value.name in vars(each))
            lines[key_of(owner, value)].append(Form(kind, value, counts.get(key_of(kind, value), Count())))
    return sorted(f"{line} {reason}" for line, forms in lines.items() for reason in _contradictions(forms))


def _has_documented_nulls(forms: list[Form]) -> bool:
    return any(key_of(kind, value) in listed("nulls") for kind, value, _ in forms)


def _is_never_null(forms: list[Form]) -> bool:
    if _has_documented_nulls(forms):
        return False
    occurring = [each.counted for each in forms if each.counted.present]
    return bool(occurring) and all(each.is_never_null for each in occurring)


def _is_filled(forms: list[Form]) -> bool:
    if _has_documented_nulls(forms):
        return False
    occurring = [each.counted for each in forms if each.counted.rows]
    return bool(occurring) and all(each.is_always_filled for each in occurring)


def _contradictions(forms: list[Form]) -> Iterator[str]:
    """Yield why a declaration is wrong."""
    patterns = listed("documented")
    documented = [any(fnmatch(key_of(kind, value), each) for each in patterns) for kind, value, _ in forms]
    for (_, value, each), is_documented in zip(forms, documented, strict=True):
        if value.required and each.whole_present < each.whole_rows:
            yield f"is {value.kind}, but the key is in {each.whole_present} of {each.whole_rows} rows of whole captures"
        if value.often and each.empty_pages:
            yield f"is often, but it is empty in {each.empty_pages} of {each.whole_pages} pages of whole captures"
        if each.null and not value.nullable and value.kind != "identity":
            yield f"was recorded as null in {each.null} of {each.present} rows"
        if (value.required or value.often) and not (each.is_enough or each.is_always_filled or is_documented):
            yield f"is {value.kind}, but there are only {each.whole_rows} rows in {each.whole_payloads} whole captures"
    if _is_never_null(forms) and any(each.value.nullable for each in forms):
        yield f"was recorded in {sum(each.counted.present for each in forms)} rows, never as null"
    is_settled = any(documented) or forms[0].value.often or forms[0].value.kind == "identity"
    if not is_settled and _is_filled(forms) and any(each.counted.pages for each in forms):
        yield f"is filled in all {sum(each.counted.rows for each in forms)} rows"


def load(platform: str = "") -> dict[str, Count]:
    """Return key -> stored counts, of all platforms or of one."""
    return {key: Count(**each) for key, each in listed("counts", platform).items()}


def save(platform: str, counts: dict[str, Count]) -> None:
    """Write the ``counts.json`` of a platform."""
    lines = (f"{json.dumps(key)}: {json.dumps(vars(each))}" for key, each in counts.items())
    (FOLDER / platform / "counts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
