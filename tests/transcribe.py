"""Write the transcribed fixtures: ``python -m tests.transcribe``, where the captures are present (``../shared``).

A transcribed fixture has the structure of a real response (keys, nesting, types, order, null and missing parts, markup,
script wrappers) and invented content. ``tests/transcription/captures.json`` lists the captures by the names that
``scripts/captures.py`` gives them. A capture is one JSON value, markup, or a list of responses.

Only the inputs are written. What a page object must extract from them (``output.json``, ``exception.json``) is written
by ``tests.expect`` from the platforms' field maps, or by hand, and never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from web_poet import HttpResponse, PageParams
from web_poet.serialization import SerializedDataFileStorage, serialize

from crawler.platforms import platforms
from scripts import captures
from tests.make_fixtures import TRANSCRIBED
from tests.transcription import leaves, markup, shape
from tests.transcription.invent import Inventor

TESTS = Path(__file__).parent
PATHS = {"photoapp": "/p/Example0001/", "professional": "/in/example-member"}
"""Paths of the fixtures' URLs where a page object would take the home page for a block."""
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@dataclass(frozen=True)
class Entry:
    """A capture, and the fixture that it becomes."""

    capture: str
    """The name of the capture."""
    platform: str
    name: str
    page: str
    """The dotted path of the page object."""
    status: int = 200
    part: int | None = None
    """The number of the response in a capture that is a list of responses."""

    @property
    def folder(self) -> Path:
        return TESTS / "fixtures" / self.page / f"{TRANSCRIBED}{self.name}"


def entries() -> list[Entry]:
    """All transcribed captures, the newest of each platform first."""
    listed = json.loads((TESTS / "transcription" / "captures.json").read_text(encoding="utf-8"))
    return [Entry(**each) for each in listed]


def body_of(entry: Entry) -> str:
    """The text of the response that an entry names."""
    text = captures.body_of(entry.capture).decode()
    if entry.part is None:
        return text
    body = json.loads(text)[entry.part]["body"]
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


@cache
def captured() -> leaves.Content:
    """The content of all captures, including captures without a fixture: fixtures must have none of it."""
    return leaves.content(captures.body_of(name).decode() for name in captures.captures())


def transcribe(entry: Entry, seen: set[str]) -> str:
    """Return the body of an entry's fixture. ``seen`` are the row kinds that the platform's fixtures already show."""
    body = body_of(entry)
    inventor = Inventor(entry.platform, hashlib.sha256(body.encode()).digest(), captured().parts)
    if entry.platform == "photoapp":
        inventor.overrides = _codes(inventor, body)
    pruner = shape.Pruner(entry.platform, seen)
    if is_json(body):
        return json.dumps(inventor.value(pruner(json.loads(body))), ensure_ascii=False, separators=(",", ":"))
    return markup.transcribe(inventor, body, pruner, seen)


def is_json(body: str) -> bool:
    """Whether a body is JSON, not markup."""
    return body.lstrip()[:1] in {"{", "["}


def _codes(inventor: Inventor, body: str) -> dict[str, str]:
    """The replacements of the photo app's shortcodes: each encodes the id of its post."""
    ids = set(re.findall(r"(?<!\d)\d{15,20}(?!\d)", body))
    pairs = ((_code(int(each)), _code(int(inventor.digits(each)))) for each in ids)
    return {before: after for before, after in pairs if before in body}


def _code(number: int) -> str:
    code = ""
    while number:
        number, digit = divmod(number, 64)
        code = BASE64URL[digit] + code
    return code


def write(entry: Entry, body: str) -> None:
    """Write the inputs of a fixture, and nothing else."""
    inputs = entry.folder / "inputs"
    shutil.rmtree(inputs, ignore_errors=True)
    inputs.mkdir(parents=True)
    url = platforms()[entry.platform].origin + PATHS.get(entry.platform, "/")
    headers = {"Content-Type": "text/html; charset=utf-8"}
    response = HttpResponse(url, body.encode(), status=entry.status, headers=headers)
    SerializedDataFileStorage(inputs).write(serialize([response, PageParams({})]))


def structure(body: str) -> set[str]:
    """The key paths of a body."""
    if is_json(body):
        return set(shape.paths(json.loads(body)))
    return set(markup.paths(body))


def coverage() -> Iterator[tuple[str, int, int, int]]:
    """Yield platform, number of fixtures, key paths of the captures, and how many of these the fixtures have."""
    found: dict[str, tuple[list[Entry], set[str], set[str]]] = {}
    for entry in entries():
        listed, captured, covered = found.setdefault(entry.platform, ([], set(), set()))
        listed.append(entry)
        captured |= structure(body_of(entry))
        covered |= structure(fixture_body(entry))
    for platform, (listed, captured, covered) in found.items():
        yield platform, len(listed), len(captured), len(captured & covered)


def fixture_body(entry: Entry) -> str:
    """The body of an entry's fixture."""
    return (entry.folder / "inputs" / "HttpResponse-body.html").read_text(encoding="utf-8")


def main() -> None:
    """Write the inputs of all transcribed fixtures, and print how much of the captures' structure they cover."""
    seen: dict[str, set[str]] = {}
    for entry in entries():
        write(entry, transcribe(entry, seen.setdefault(entry.platform, set())))
    for platform, fixtures, captured, covered in coverage():
        size = sum(len(fixture_body(each)) for each in entries() if each.platform == platform)
        share = f"{covered} of {captured} paths ({covered / captured:.1%})"
        print(f"{platform}: {fixtures} fixtures, {share}, {size} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
