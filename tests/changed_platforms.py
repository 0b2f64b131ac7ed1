"""Simulated platforms in whose payloads one declared value changes after some pages.

Commands under test import this module. The sandbox's truth does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.platforms import platforms
from crawler.platforms.names import contracts_of
from crawler.platforms.page import PlatformPage
from crawler.probe.explain import other
from crawler.reading.contract import Contract
from crawler.registry import scrapers
from crawler.sandbox.protocol import FakeRequest, FakeResponse, FakeSite
from crawler.sandbox.server import Sandbox
from tests.contracts.mutants import Objects, at, objects_in
from tests.contracts.responses import Payload
from tests.probe.changes import replaced

BEFORE = 10
"""Number of pages that still contain the value unchanged. All later pages contain it changed."""


class Change(NamedTuple):
    """The change of a value in all objects of a contract."""

    platform: str
    contract: str
    """The contract's label."""
    keys: list[str]
    """The keys of the value's path up to the changed one."""
    further: list[str]
    """The keys that replace ``keys``. If both are equal, the value stays in its place, inside a new list."""
    neighbour: str = ""
    """A key that is added to the object that contained the value, with a different value of the same form, or ""."""

    @property
    def is_retyped(self) -> bool:
        return self.further == self.keys

    @property
    def line(self) -> dict[str, dict[str, str]]:
        return {self.contract: {".".join(self.keys): ".".join(self.further)}}

    def __str__(self) -> str:
        return f"{self.contract} {'.'.join(self.keys)} -> {'[]' if self.is_retyped else '.'.join(self.further)}" + (
            f" beside {self.neighbour}" if self.neighbour else ""
        )


def payloads(platform: str, body: bytes) -> list[Payload]:
    """Return the payloads in the body of a response, with their contracts."""
    text, found = body.decode(), []
    for kind in _pages(platform):
        if not kind.recognise(text):
            continue
        page = kind(response=HttpResponse(platforms()[platform].origin, body), page_params=PageParams({}))
        page.payloads = []
        _read(page)
        found += [Payload(kind, data) for kind, data in page.payloads]
    return found


def _pages(platform: str) -> list[type[PlatformPage]]:
    every = [page for each in scrapers().values() if each.platform == platform for page in each.pages]
    return list(dict.fromkeys(every))


def _read(page: PlatformPage) -> None:
    reading = page.to_item()  # page objects do no I/O, so they are read without an event loop
    try:
        reading.send(None)
    except (StopIteration, ScrapeError, LookupError, ValueError, TypeError):
        reading.close()


def changed(body: bytes, change: Change) -> bytes:
    """Return the body of a response after the change, or the same body if no object of the contract has the value."""
    kind = contracts_of(change.platform)[change.contract]
    pairs = []
    for payload in payloads(change.platform, body):
        places = [place for each in _objects(payload, kind) for place in each.places]
        data = orjson.loads(orjson.dumps(payload.data))
        if sum(_apply(at(data, place), change) for place in places):
            pairs += [(payload.data, data), *((at(payload.data, place), at(data, place)) for place in places)]
    return replaced(body, pairs) if pairs else body


def _objects(payload: Payload, kind: type[Contract]) -> Iterator[Objects]:
    yield from (each for each in objects_in(payload) if each.kind is kind)


def _apply(row: Any, change: Change) -> bool:
    held = row
    for key in change.keys[:-1]:
        held = held.get(key) if isinstance(held, dict) else None
    if not isinstance(held, dict) or change.keys[-1] not in held:
        return False
    value = held[change.keys[-1]] if change.is_retyped else held.pop(change.keys[-1])
    if change.neighbour:
        held[change.neighbour] = other(value)
    if change.is_retyped:
        held[change.keys[-1]] = [value]
        return True
    into = row
    for key in change.further[:-1]:
        into = into.setdefault(key, {})
    into[change.further[-1]] = value
    return True


class ChangedSite:
    """A site whose pages change. Its targets with the fault ``flaky`` get their data with the first request."""

    def __init__(self, site: FakeSite, change: Change) -> None:
        self._site, self._change = site, change
        self._pages = 0
        self._made: dict[bytes, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site, name)

    def fault(self, request: FakeRequest) -> str | None:
        name = self._site.fault(request)
        return None if name == "flaky" else name

    def page(self, request: FakeRequest) -> FakeResponse:
        status, headers, body = self._site.page(request)
        after = self._made.get(body) or self._made.setdefault(body, changed(body, self._change))
        self._pages += after != body
        return status, headers, after if self._pages > BEFORE else body


class RecordingSite(ChangedSite):
    """A site that writes the bodies of its pages to a folder."""

    def __init__(self, site: FakeSite, folder: str) -> None:
        self._site, self._folder = site, Path(folder)

    def page(self, request: FakeRequest) -> FakeResponse:
        status, headers, body = self._site.page(request)
        (self._folder / f"{len(list(self._folder.iterdir()))}.body").write_bytes(body)
        return status, headers, body


def install(platform: str, change: list[Any] | str) -> None:
    """Change a simulated platform of this process, or record its pages.

    ``change``: the arguments of ``Change``, or the folder to which the bodies of the pages are written.
    """
    build = Sandbox._build  # the sandbox has no hook for other sites

    def built(self: Sandbox, name: str) -> FakeSite:
        self.light = True
        site = build(self, name)
        if name != platform:
            return site
        return RecordingSite(site, change) if isinstance(change, str) else ChangedSite(site, Change(*change))

    Sandbox._build = built  # type: ignore[method-assign]
