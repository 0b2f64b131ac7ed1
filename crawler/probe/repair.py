"""Tries suggested lines on changed pages, and checks the lines in force against good pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from crawler.logs import one_line
from crawler.platforms.page import PlatformPage
from crawler.probe.likeness import agreement
from crawler.probe.reread import MAX_LINE, Overrides, ReadPage, read_again, reread
from crawler.probe.suggest import Rows, Suggestion, by_identity, of_kind, rows_of, suggestions
from crawler.reading.careful import find
from crawler.reading.contract import values
from crawler.reading.names import NO_NAMES, Line, Names, SelectorTable, label, renamed
from crawler.reading.paths import steps
from crawler.storage.kept import GOOD, KeptError, kept, of_source

NEWEST = 5
"""Maximum number of unread or failed responses that are examined for each source: the newest ones."""
MAX_JSON = 800
"""Maximum number of characters of a line as a JSON object. The two paths in a line together have at most 600."""
ROUNDS = 3
"""Maximum number of rounds in which lines are tried: a line may make an object readable that lacks another key."""


class Repair(NamedTuple):
    """The result of a repair: the suggested lines, and the remaining gaps."""

    names: Names
    """The lines in force together with the proven lines."""
    proven: list[Suggestion]
    unproven: list[Suggestion]
    wrong: list[str]
    """A sentence for each line in force whose values differ from the values of good pages."""
    left: list[str]
    """The unread parts that remain with these names, and a sentence for each file that cannot be read."""


def repair(pages: Sequence[PlatformPage], good: Sequence[PlatformPage], names: Names) -> Repair:
    """Suggest lines that make changed pages readable, and try the lines for which there is evidence.

    ``good``: pages of the same sources from before the change. May be empty.
    """
    before, read = rows_of(read_again(good, names), names), read_again(pages, names)
    wrong = list(wrong_lines(names, rows_of(read, names), before))
    proven: list[Suggestion] = []
    failed: list[Suggestion] = []
    found = suggestions(rows_of(read, names), before, names)
    for _ in range(ROUNDS):
        number = len(proven)
        for each in found:
            if not each.evidence or each in failed:
                continue
            with_line = Names((each.line, *names.lines))
            after = read_again(pages, with_line)
            if _lacking(after) < _lacking(read):
                mended = _paths(read) - _paths(after)
                names, read = with_line, after
                proven.append(each._replace(mends=tuple(sorted(mended))))
            else:
                failed.append(each)
        if len(proven) == number:
            break
        found = suggestions(rows_of(read, names), before, names)
    unproven = [each._replace(evidence="") for each in failed] + [each for each in found if not each.evidence]
    left = dict.fromkeys(problem for each in read for problem in each.problems)
    return Repair(names, proven, unproven, wrong, list(left))


def _paths(read: Sequence[ReadPage]) -> set[str]:
    return {path for each in read for path in each.page.problem_paths(each.error)}


def _lacking(read: Sequence[ReadPage]) -> tuple[int, int]:
    """Return the number of pages without data, and of unread values and rows."""
    unread = sum(each.rows for every in read for each in every.page.unread) + sum(len(e.page.skipped) for e in read)
    return sum(each.error is not None for each in read), unread


def wrong_lines(names: Names, changed: Rows, good: Rows) -> Iterator[str]:
    """Yield a sentence for each line in force that leads to another value than the declared path on good pages."""
    for line in names.lines:
        contract = line.contract
        if isinstance(contract, SelectorTable):
            continue
        for kind in dict.fromkeys(each for each, _ in good if issubclass(each, contract)):
            for path in (path for value in values(kind) if not value.contracts for path in value.paths):
                further = renamed(path, line)
                if further is None:
                    continue
                rows = dict(enumerate(of_kind(good, kind)))
                was = {key: find(row, steps(path)).value for key, row in rows.items()}
                beside = {key: find(row, steps(further)).value for key, row in rows.items()}
                same_page = agreement(beside, was)
                if same_page.compared and same_page.matching < same_page.compared / 2:
                    yield _sentence(line, beside, was)
                    break
                now = by_identity(names.contract(kind), of_kind(changed, kind), steps(further))
                known = by_identity(kind, of_kind(good, kind), steps(path))
                if agreement(now, known).is_refutation:
                    yield _sentence(line, now, known)
                    break


def _sentence(line: Line, now: dict[Any, Any], was: dict[Any, Any]) -> str:
    key = next(key for key, value in now.items() if value is not None and was.get(key) not in (None, value))
    what = f"{label(line.contract)}: {line.further} is not {line.declared}"
    seen = f"{one_line(str(now[key]), 40)} and not {one_line(str(was[key]), 40)}"
    return one_line(f"PAYLOAD_NAMES: {what}: its value in a row of a good page is {seen}.", 400)


def repair_kept(folder: Path, names: Names, platforms: Iterable[str], overrides: Overrides) -> Repair:
    """Repair the kept responses of platforms, one source after the other."""
    result = Repair(names, [], [], [], [])
    for source in dict.fromkeys(path.parent for path in kept(folder, platforms)):
        found = repair_source(source, result.names, overrides)
        result = Repair(
            found.names,
            result.proven + found.proven,
            result.unproven + [each for each in found.unproven if each.line not in {e.line for e in result.unproven}],
            list(dict.fromkeys(result.wrong + found.wrong)),
            list(dict.fromkeys(result.left + found.left)),
        )
    return result


def repair_source(folder: Path, names: Names, overrides: Overrides) -> Repair:
    """Repair the newest kept responses in a source's folder, by comparison with the good responses there."""
    refused: list[str] = []
    changed = list(_pages(of_source(folder), overrides, refused))
    good = list(_pages(of_source(folder, GOOD), overrides, refused))
    found = repair(changed[-NEWEST:], good, names)
    return found._replace(left=found.left + refused)


def good_pages(folder: Path, platform: str, sources: Collection[str], overrides: Overrides) -> list[PlatformPage]:
    """Return the pages of the kept good responses of sources."""
    paths = [path for source in sources for path in of_source(folder / platform / source, GOOD)]
    return list(_pages(paths, overrides, []))


def _pages(paths: Iterable[Path], overrides: Overrides, refused: list[str]) -> Iterator[PlatformPage]:
    """Yield the page objects of kept responses. For each unusable file, append a sentence to ``refused``."""
    for path in paths:
        try:
            yield reread(path, NO_NAMES, overrides).page
        except (KeptError, OSError) as error:
            refused.append(one_line(str(error), MAX_LINE))


def report(result: Repair) -> Iterator[str]:
    """Yield the lines of a report for people."""
    yield from (f"WRONG      {each}" for each in result.wrong)
    yield from (f"proven     {each}" for each in result.proven)
    yield from (f"unproven   {each}" for each in result.unproven)
    yield from (f"LEFT       {each}" for each in result.left)
    yield f"lines: {len(result.proven)} proven and tried, {len(result.unproven)} not proven; left: {len(result.left)}"


def as_json(names: Names) -> str:
    """Return the content of a file of ``PAYLOAD_NAMES``."""
    return orjson.dumps(_content(names), option=orjson.OPT_INDENT_2).decode()


def as_line(line: Line) -> str:
    """Return the content of a file of ``PAYLOAD_NAMES`` that has a single entry, without line breaks."""
    return one_line(orjson.dumps(_content(Names((line,)))).decode(), MAX_JSON)


def _content(names: Names) -> dict[str, dict[str, str | list[str]]]:
    found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for line in names.lines:
        found[label(line.contract)][line.declared].append(line.further)
    return {
        kind: {key: paths if len(paths) > 1 else paths[0] for key, paths in of.items()} for kind, of in found.items()
    }
