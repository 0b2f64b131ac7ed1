"""The targets of the standing attack: those of the simulated platforms, with the code that each has without faults."""

from __future__ import annotations

import io
import json
import random
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crawler.registry import scrapers
from tests.targets.workbooks import workbook

SEARCH = "retail-search-v4"
NEED_BROWSER = {"shortvideo"}
"""A page in a browser needs more seconds of a processor than a hundred others."""
TEXT = "abcdefghij"


@dataclass(frozen=True)
class Wanted:
    """A target. ``code``: that of its outcome if nothing but the simulated platform misbehaves."""

    scraper: str
    params: dict[str, Any]
    code: str

    def contradiction(self, code: str, params: dict[str, Any] | None, data: dict[str, Any] | None) -> str | None:
        """Return what is wrong with an outcome. Faults may turn any outcome into an error of the platform."""
        if code == "OK" and self.code != "OK":
            return f"OK for {self}"
        if code in {"TARGET_NOT_FOUND", "TARGET_RESTRICTED", "INVALID_REQUEST"} and code != self.code:
            return f"{code} for {self}"
        if params is not None and not params.items() >= self.params.items():
            return f"the params {params} for {self}"
        if data is not None and self.scraper == SEARCH and data["query"] != self.params["query"]:
            return f"the record of {data['query']!r} for {self}"
        return None


class Targets:
    """Draws targets. ``origins``: of the simulated platforms."""

    def __init__(self, origins: dict[str, str]) -> None:
        self.faults: dict[str, str] = {}
        self.others: list[Wanted] = []
        for platform, origin in origins.items():
            if platform in NEED_BROWSER:
                continue
            with urllib.request.urlopen(f"{origin}/__world__") as response:  # noqa: S310  # the sandbox
                world = json.load(response)
            if platform == "retail":
                self.faults = {name: each["code"] for name, each in world["faults"].items()}
                continue
            samples = [(each["params"], "OK") for each in world["targets"]]
            samples += [(each["params"], each["code"]) for each in world["faults"].values()]
            names = {each.name: each for each in scrapers().values() if each.platform == platform}
            for name, scraper in names.items():
                known = scraper.example.keys() | {"url"}
                self.others += [Wanted(name, params, code) for params, code in samples if params.keys() <= known]

    def draw(self, chance: random.Random) -> Wanted:
        """Return a target: mostly a good search, else one of a target with a fault or of another platform."""
        kind, number = chance.random(), chance.randrange(100_000)
        if kind < 0.65:
            return Wanted(SEARCH, {"query": f"mustard {number}"}, "OK")
        if kind < 0.85:
            fault = chance.choice([*self.faults])
            return Wanted(SEARCH, {"query": fault}, self.faults[fault])
        return chance.choice(self.others)


Lines = dict[str, Wanted | None]
"""Id of each line -> its target, None for a line that is not one."""


def lines(targets: Targets, chance: random.Random, prefix: str) -> Lines:
    """Return the lines of an upload or a file, of which some are repeated and some are no targets."""
    found: Lines = {}
    for number in range(chance.randrange(5, 40)):
        kind = chance.random()
        wanted = None if kind < 0.03 else targets.draw(chance)
        if kind > 0.95 and found:
            wanted = chance.choice([*found.values()])
        found[f"{prefix}-{number}"] = wanted
    found[f"{prefix}-last"] = Wanted(SEARCH, {"query": f"mustard {prefix}"}, "OK")  # one valid line is required
    return found


def rows(of: Lines) -> list[dict[str, Any]]:
    invalid = {"scraper": "retail-serch", "query": "mustard"}
    return [
        {"id": id_, **(invalid if wanted is None else {"scraper": wanted.scraper, **wanted.params})}
        for id_, wanted in of.items()
    ]


def as_table(found: Sequence[dict[str, Any]]) -> list[list[Any]]:
    columns = sorted({name for row in found for name in row})
    return [columns, *([str(row.get(name, "")) for name in columns] for row in found)]


def as_csv(found: Sequence[dict[str, Any]]) -> bytes:
    import csv  # noqa: PLC0415  # beside its only use

    out = io.StringIO()
    csv.writer(out).writerows(as_table(found))
    return out.getvalue().encode()


FORMATS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "application/json": lambda found: json.dumps(found).encode(),
    "application/x-ndjson": lambda found: "".join(json.dumps(row) + "\n" for row in found).encode(),
    "text/csv": as_csv,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": lambda found: workbook(*as_table(found)),
}
"""Media type -> writes rows in this format."""
