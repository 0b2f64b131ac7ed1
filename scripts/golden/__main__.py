"""The command line: ``python -m scripts.golden write FILE`` and ``python -m scripts.golden compare FILE``."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import scripts.golden
from scripts.captures import CAPTURES
from scripts.golden import record
from scripts.golden.crawls import Checkout, Crawl, Outcomes, crawls, run_group
from scripts.golden.extracts import Capture, every_capture, run_captures
from scripts.golden.outcome import Difference, outcome_differences
from scripts.golden.record import CAPTURED, Rows, Selection

MAX_VALUE_CHARACTERS = 300
"""Characters of a value that are printed."""


def default_jobs() -> int:
    """Return the number of processors plus one, because some crawls only wait."""
    return (os.cpu_count() or 1) + 1


class Runner:
    """Runs all targets of a selection, or those of some keys, in a checkout."""

    def __init__(self, folder: Path, only: Selection, jobs: int) -> None:
        self._folder, self._only, self._jobs = folder, only, jobs

    def outcomes(self, checkout: Checkout, keys: set[str] | None = None) -> Iterator[Outcomes]:
        """Yield outcomes by key. ``keys``: run only the crawls and captures that have some of these keys."""
        groups = [[each for each in group if covers(each, keys)] for group in crawls(checkout, self._only)]
        captures = [each for each in every_capture(self._folder, self._only) if covers(each, keys)]
        with ThreadPoolExecutor(self._jobs) as threads:
            for found in threads.map(lambda group: list(run_group(group)), filter(None, groups)):
                yield from found
            parts = [part for start in range(self._jobs) if (part := captures[start :: self._jobs])]
            for found in threads.map(lambda part: list(run_captures(checkout, part)), parts):
                yield from found

    def rows(self) -> Rows:
        """Return the rows of this checkout's outcomes."""
        return {key: outcome.row() for part in self.outcomes(Checkout()) for key, outcome in part.items()}

    def values(self, other: Checkout, keys: set[str]) -> dict[str, list[Difference]]:
        """Return the differences between the outcomes of another checkout and of this one, with their values."""
        was, now = (
            {key: outcome for part in self.outcomes(checkout, keys) for key, outcome in part.items() if key in keys}
            for checkout in (other, Checkout())
        )
        return {key: outcome_differences(was.get(key), now.get(key)) for key in sorted(keys)}


def covers(each: Crawl | Capture, keys: set[str] | None) -> bool:
    """Whether a crawl or capture has one of the keys; True for None."""
    if keys is None:
        return True
    if isinstance(each, Crawl):
        own = Selection((each.platform,), (each.variant,), (each.seed,), captures=False)
        return any(map(own.covers_row, keys))
    return any(key == each.key or key.startswith(f"{each.key} #") for key in keys)


def lines(found: dict[str, list[Difference]]) -> Iterable[str]:
    """Return one line for each difference: the key, the place, the old and the new value."""
    for key, each in found.items():
        for place, *values in each:
            yield "\t".join([key, place, *(value[:MAX_VALUE_CHARACTERS] for value in values)])


def summary(found: dict[str, list[Difference]]) -> Iterable[str]:
    """Return one line for each place that differs: the number of rows, and the place."""
    places = Counter(place for each in found.values() for place in {difference.place for difference in each})
    return (f"{number:6} {place}" for place, number in places.most_common())


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m scripts.golden", description=(scripts.golden.__doc__ or ""))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--platform", action="append", default=[], help="only this platform; may be repeated")
    parser.add_argument("--variant", action="append", default=[], help=f"only this variant of crawls, or {CAPTURED!r}")
    parser.add_argument("--seed", action="append", default=[], type=int, help="only this seed of the sandbox")
    parser.add_argument("--captures", type=Path, default=CAPTURES, help="folder of the captures (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="processes at a time (default: %(default)s)")
    parser.add_argument("--now", type=Path, help="compare with this record (default: run the current code)")
    parser.add_argument(
        "--values", type=Path, metavar="CHECKOUT", help="run what differs in this checkout too, and print the values"
    )
    return parser.parse_args()


def main() -> int:
    """Run the command line. Return 1 if rows differ."""
    given = options()
    only = Selection(tuple(given.platform), tuple(given.variant), tuple(given.seed))
    if not given.captures.is_dir():
        print(f"The captures are skipped: the folder {given.captures} does not exist.", file=sys.stderr)
        only = replace(only, captures=False)
    runner = Runner(given.captures, only, given.jobs)
    rows = record.read(given.now, only) if given.now else runner.rows()
    if given.action == "write":
        others = record.read(given.file, Selection()) if given.file.exists() else {}
        record.write(given.file, {key: row for key, row in others.items() if not only.covers_row(key)} | rows)
        return 0
    was = record.read(given.file, only)
    found = record.differences(was, rows)
    with_values = runner.values(Checkout(given.values.resolve()), set(found)) if given.values else found
    for line in lines(with_values):
        print(line)
    print(f"{len(was)} rows compared, {len(found)} differ", *summary(found), sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
