"""The tables of changed pages, ``tests/platforms/<platform>/table.yaml``: a page, a change, and what it changes.

``pages`` has the unchanged pages. ``page`` is the class of the page object below ``crawler.platforms.<platform>``,
``data`` the JSON document of the response, and ``body`` the text around it, with ``{json}`` in place of the document.
``fixture`` takes them from a folder below ``tests/fixtures``, ``from`` from another page of the table, with a change.
``url``, ``status``, ``headers`` and ``params`` are those of the response and its request. Paths in rows begin ``at`` a
path of the document, or at the document if they begin with ``/``; ``short`` has names for beginnings of paths. Paths in
items begin at ``record``. ``item`` has values of the unchanged page's item, ``error`` is its error; a page that is
``partial`` lacks keys of recorded pages, and has warnings.

``rows`` has changes of each page, by the behaviour that they show:

- ``times``: ``{path: n}`` makes a list n rows long with copies of its last row, before the change.
- ``set``: ``{path: value}`` replaces or adds values. ``[*]`` is each row, ``[1:]`` each but the first, ``..key`` each
  value of a key at any depth.
- ``cut``: the paths to remove. ``rename``: the paths whose last key gets another name.
- ``text``: ``{old: new}`` replaces text around the document. ``body``: another body in place of all that.
- ``url``, ``status``, ``headers`` and ``params`` replace those of the page.

What is expected is compared with all that differs from the unchanged page:

- ``item``: ``{path: value}``; a row or key that the item lacks is ``lost``.
- ``warns``: the warnings; of a warning that begins with ``…``, only the end.
- ``unproven``: the params that the page does not prove.
- ``error``: code and reason, in place of an item. ``loc``, ``msg`` and ``type``: those of its first detail; if ``loc``
  is a list, those of all details.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import yaml
from web_poet import HttpResponse, PageParams
from web_poet.testing import Fixture

from crawler.errors import ScrapeError
from crawler.platforms.page import PlatformPage
from crawler.reading.documents import all_dicts
from tests.mutations import blocks

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "fixtures"
PLATFORMS = tuple(sorted(file.parent.name for file in HERE.glob("*/table.yaml")))
LOST = "lost"
RENAMED = object()
CHANGE = ("from", "times", "set", "cut", "rename")
EXPECTED = ("item", "warns", "unproven", "error", "loc", "msg", "type")
_STEP = re.compile(r"\[(?:(\d+)|(\*)|(\d*):(\d*))\]|(\.?)\.?([^.\[\]]+)")
Step = str | int | slice | tuple[str]

Changes = dict[str, Any]
"""Path -> the value after the change."""


@dataclass(frozen=True)
class Reading:
    """What a page object reads from a response."""

    item: Any
    warns: list[str]
    unproven: list[str]
    error: ScrapeError | None = None


@dataclass(frozen=True, eq=False)
class Page:
    """An unchanged page of a table."""

    platform: str
    name: str
    of: dict[str, Any]

    @cached_property
    def kind(self) -> type[PlatformPage]:
        """The class of the page object."""
        return page_class(self.platform, self.source["page"])

    @cached_property
    def source(self) -> dict[str, Any]:
        """The page with the response of its fixture."""
        if "from" in self.of:
            base = pages(self.platform)[self.of["from"]]
            return base.source | {"data": base.data(self.of)} | {k: v for k, v in self.of.items() if k not in CHANGE}
        if "fixture" not in self.of or "body" in self.of:
            return {"body": "{json}", **self.of}
        folder = FIXTURES / f"crawler.platforms.{self.platform}.{self.of['page']}" / self.of["fixture"]
        page: Any = Fixture(folder).get_page(page_class(self.platform, self.of["page"]))
        body: bytes = page.response.body
        response = {
            "url": str(page.response.url),
            "status": page.response.status,
            "headers": dict(page.response.headers),
            "params": dict(page.page_params),
        }
        document = max(blocks(body), key=lambda block: block.end - block.start, default=None)
        if document is None:
            return {"body": body.decode(), **response, **self.of}
        around = (body[: document.start] + b"{json}" + body[document.end :]).decode()
        for old, new in self.of.get("text", {}).items():
            around = around.replace(old, new)
        whole = Page(self.platform, self.name, {"body": around, "data": document.content, **response, **self.of})
        return whole.of | {"data": whole.data(self.of)}

    def steps(self, path: str) -> list[Step]:
        """Return the steps of a path to a value in the document."""
        first = re.match(r"[^.\[]*", path)
        name = first[0] if first else ""
        path = self.source.get("short", {}).get(name, name) + path[len(name) :]
        at = "" if path.startswith("/") else self.source.get("at", "")
        joined = f"{at}{'' if path.startswith(('.', '[')) else '.'}{path}" if at else path.removeprefix("/")
        return list(map(_step, _STEP.finditer(joined)))

    def below(self, path: str) -> str:
        """Return a path of an error or a warning without the path at which the table's paths begin."""
        at = self.source.get("at", "")
        if not at:
            return path
        return path.removeprefix(f"{re.sub(r'[0-9]+', '', at)}.").removeprefix(f"{at}.")

    def data(self, row: dict[str, Any]) -> Any:
        """Return the document with the changes of a row."""
        data = copy.deepcopy(self.source.get("data"))
        for path, length in row.get("times", {}).items():
            (rows,) = _values(data, self.steps(path))
            rows += [copy.deepcopy(rows[-1]) for _ in range(length - len(rows))]
        for path, value in row.get("set", {}).items():
            _change(data, self.steps(path), value)
        for path in row.get("cut", ()):
            _change(data, self.steps(path))
        for path in row.get("rename", ()):
            _change(data, self.steps(path), RENAMED)
        return data

    def record(self, found: Changes) -> Changes:
        """Return changes of an item with paths that begin at the page's ``record``."""
        start = f"{self.source['record']}." if "record" in self.source else ""
        return {
            path.removeprefix(start) if path.startswith(start) else f"/{path}": value for path, value in found.items()
        }

    def read(self, row: dict[str, Any]) -> Reading:
        """Read the page with the changes of a row."""
        of = self.source | row
        data = self.data(row)
        body = of["body"]
        for old, new in row.get("text", {}).items():
            assert old in body, f"{old} is not in the body"
            body = body.replace(old, new)
        document = orjson.dumps(data).decode().replace("</", "<\\/" if body != "{json}" else "</")
        response = HttpResponse(
            of["url"],
            body.replace("{json}", document, 1).encode(),
            status=of.get("status", 200),
            headers={"Content-Type": "text/html; charset=utf-8"} | of.get("headers", {}),
        )
        page = self.kind(response=response, page_params=PageParams(of.get("params", {})))
        try:
            item = asyncio.run(page.to_item())
        except ScrapeError as error:
            return Reading(None, [], [], error)
        return Reading(dict(item), page.problems(), list(getattr(page, "unproven", ())))


@dataclass(frozen=True)
class Behaviour:
    """A behaviour of a page object, shown by changes of a page."""

    page: Page
    name: str
    rows: list[dict[str, Any]]

    @property
    def expected(self) -> list[dict[str, Any]]:
        """What the rows expect."""
        return [{key: row[key] for key in EXPECTED if key in row} for row in self.rows]

    @property
    def found(self) -> list[dict[str, Any]]:
        """What differs from the page without the change, for each row."""
        return [self._found(row) for row in self.rows]

    def _found(self, row: dict[str, Any]) -> dict[str, Any]:
        reading = self.page.read(row)
        if reading.error:
            details = reading.error.details
            places = [self.page.below(".".join(map(str, detail["loc"]))) for detail in details]
            error = {
                "error": f"{reading.error.code} {reading.error.reason}",
                "loc": places if isinstance(row.get("loc"), list) else "".join(places[:1]),
                "msg": details[0]["msg"] if details else "",
                "type": details[0]["type"] if details else "",
            }
            return {key: value for key, value in error.items() if key == "error" or key in row}
        before = self.page.read({"times": row.get("times", {})})
        found = {
            "item": self.page.record(changes(before.item, reading.item)),
            "warns": _shortened([self.page.below(each) for each in reading.warns if each not in before.warns], row),
            "unproven": [each for each in reading.unproven if each not in before.unproven],
        }
        return {key: value for key, value in found.items() if value}


def page_class(platform: str, page: str) -> type[PlatformPage]:
    """Return the class of a page object by its name below ``crawler.platforms.<platform>``."""
    module, _, name = f"crawler.platforms.{platform}.{page}".rpartition(".")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def _shortened(warns: list[str], row: dict[str, Any]) -> list[str]:
    """Return the warnings, each as short as the row has it."""
    ends = [each[1:] for each in row.get("warns", ()) if each.startswith("…")]
    return [next((f"…{end}" for end in ends if each.endswith(end)), each) for each in warns]


def _step(match: re.Match[str]) -> Step:
    index, every, start, end, deep, key = match.groups()
    if key:
        return (key,) if deep and match[0].startswith("..") else key
    if index:
        return int(index)
    return slice(None) if every else slice(int(start or 0), int(end) if end else None)


def _values(data: Any, steps: list[Step]) -> list[Any]:
    found = [data]
    for step in steps:
        if isinstance(step, tuple):
            found = [each[step[0]] for holder in found for each in all_dicts(holder) if step[0] in each]
        else:
            found = [each for holder in found for each in (holder[step] if isinstance(step, slice) else [holder[step]])]
        assert found, f"{step} of {steps} is not in the page"
    return found


def _change(data: Any, steps: list[Step], *value: Any) -> None:
    *path, last = steps
    holders = _values(data, path)
    if isinstance(last, tuple):
        (last,) = last
        holders = [each for holder in holders for each in all_dicts(holder) if last in each]
        assert holders, f"{last} of {steps} is not in the page"
    for holder in holders:
        keys = range(len(holder))[last] if isinstance(last, slice) else [last]
        assert keys, f"{last} of {steps} is not in the page"
        for key in reversed(keys):
            if not value:
                del holder[key]
            elif value[0] is RENAMED:
                holder[f"{key}New"] = holder.pop(key)
            elif isinstance(holder, list) and key == len(holder):
                holder.append(copy.deepcopy(value[0]))
            else:
                holder[key] = copy.deepcopy(value[0])


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, of the same types."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def changes(before: Any, after: Any, path: str = "") -> Changes:
    """Return the differences between two items. What is the same in all rows of a list has one path, with ``[*]``."""
    if same(before, after):
        return {}
    if isinstance(before, dict) and isinstance(after, dict):
        return {
            name: value
            for key in {**before, **after}
            for name, value in (
                changes(before.get(key, LOST), after.get(key, LOST), f"{path}.{key}" if path else key).items()
            )
        }
    if isinstance(before, list) and isinstance(after, list) and any(isinstance(row, dict) for row in (*before, *after)):
        kept = _kept(before, after)
        if kept is None:
            return {path: after}
        lost: Changes = {f"{path}[{index}]": LOST for index in range(len(before)) if index not in kept}
        pairs = [changes(before[index], row, "") for index, row in zip(kept, after, strict=True)]
        if len(pairs) > 1 and all(same(pair, pairs[0]) for pair in pairs):
            return lost | {_join(f"{path}[*]", key): value for key, value in pairs[0].items()}
        return lost | {
            _join(f"{path}[{index}]", key): value
            for index, pair in zip(kept, pairs, strict=True)
            for key, value in pair.items()
        }
    return {path: after}


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if key and not key.startswith("[") else path + key


def _kept(before: list[Any], after: list[Any]) -> list[int] | None:
    """Return the index in a list of each row of the list after a change; None: other rows than before."""
    if len(before) == len(after):
        return list(range(len(before)))
    kept: list[int] = []
    for row in after:
        start = kept[-1] + 1 if kept else 0
        index = next((each for each in range(start, len(before)) if same(before[each], row)), None)
        if index is None:
            return None
        kept.append(index)
    return kept


@cache
def pages(platform: str) -> dict[str, Page]:
    """Return the pages of a platform's table."""
    return {name: Page(platform, name, of) for name, of in _table(platform)["pages"].items()}


def behaviours(platform: str) -> Iterator[Behaviour]:
    """Yield the behaviours in a platform's table."""
    for page, of in _table(platform)["rows"].items():
        for name, rows in of.items():
            yield Behaviour(pages(platform)[page], name, rows)


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]  # untyped
    """Refuses two values of one key: the first would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        keys = [key.value for key, _ in node.value if key.value != "<<"]
        if duplicate := next((key for key in keys if keys.count(key) > 1), None):
            raise ValueError(f"{duplicate!r} occurs twice: {node.start_mark}")
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]


@cache
def _table(platform: str) -> dict[str, Any]:
    table: dict[str, Any] = yaml.load((HERE / platform / "table.yaml").read_bytes(), _Loader)  # noqa: S506  # a safe one
    return table
