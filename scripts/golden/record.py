"""The file of a record: one line for each row, and one for each shape, the list of the paths that rows have."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from scripts.golden.outcome import HASH_DIGITS, Difference, Row, digest, row_differences

CAPTURED = "captures"
"""The name of the captures in keys, and in the option for variants."""
PLAIN = "plain"
"""The variant that keys do not name."""

Rows = dict[str, Row]


@dataclass(frozen=True)
class Selection:
    """A part of the record. An empty tuple selects all."""

    platforms: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    captures: bool = True
    """Whether the captures are available."""

    def covers(self, platform: str, variant: str, seed: int | None = None) -> bool:
        """Whether a crawl, or the captures of a platform, are in the selection."""
        return (
            platform in (self.platforms or (platform,))
            and (self.captures or variant != CAPTURED)
            and variant in (self.variants or (variant,))
            and (seed is None or seed in (self.seeds or (seed,)))
        )

    def covers_row(self, key: str) -> bool:
        """Whether a row is in the selection."""
        kind, first, rest = key.split("/", 2)
        if kind == CAPTURED:
            return self.covers(first, CAPTURED)
        platform = re.split("[-/ ]", rest, maxsplit=1)[0]
        variant = re.search(r" \[(\w+)\](?: #\d+)?$", rest)
        return self.covers(platform, variant[1] if variant else PLAIN, int(first))


def write(file: Path, rows: Rows) -> None:
    """Write a record. The hashes of a row's data follow each other in the order of its shape's paths."""
    shapes: dict[str, list[str]] = {}
    lines = []
    for key, row in sorted(rows.items()):
        line = {"key": key, **row}
        if "data" in row:
            paths = sorted(row["data"])
            line |= {"shape": digest(paths), "data": "".join(row["data"][path] for path in paths)}
            shapes[line["shape"]] = paths
        lines.append(line)
    heads = [{"shape": name, "paths": paths} for name, paths in sorted(shapes.items())]
    file.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in [*heads, *lines]), encoding="utf-8")


def read(file: Path, only: Selection) -> Rows:
    """Read the rows of a record that are in the selection."""
    shapes: dict[str, list[str]] = {}
    rows: Rows = {}
    for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        if "paths" in line:
            shapes[line["shape"]] = line["paths"]
        elif only.covers_row(line["key"]):
            if "shape" in line:
                starts = range(0, len(line["data"]), HASH_DIGITS)
                hashes = [line["data"][start : start + HASH_DIGITS] for start in starts]
                line["data"] = dict(zip(shapes[line.pop("shape")], hashes, strict=True))
            rows[line.pop("key")] = line
    return rows


def differences(was: Rows, now: Rows) -> dict[str, list[Difference]]:
    """Return the differences by the key of the row. Equal rows are left out."""
    found = {key: row_differences(was.get(key), now.get(key)) for key in sorted(was.keys() | now.keys())}
    return {key: each for key, each in found.items() if each}
