"""Mutants: changes of single lines that the tests should notice. The results are in ``benchmarks/mutants.md``.

``nice -n 19 python -m benchmarks.mutants COPY TEST ...`` needs a second checkout of the same commit in the folder
``COPY``, beside this one. The program changes and restores files of the copy. It first runs the tests once with a probe
at each line that will be changed, and so learns which tests reach which line, in subprocesses too. Then it makes one
change at a time and runs the tests that passed and reach the line, quick ones first, for at most 40 s. A test that
fails, and passes alone without the change, kills the mutant. ``--reached FILE`` keeps what the first run learned, and
reads the file if it exists. ``--fates FILE`` keeps the results, and a second run tries only the missing and undecided
ones.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.stack import ROOT
from benchmarks.tables import grid

ROOMS = ("reading", "platforms", "targets", "downloads", "service", "outputs", "spiders")
PROBE = Path(__file__).with_name("mutants_probe.py")
INSTALLED = Path("crawler", "_mutants_probe.py")
"""The probe in the copy. It belongs to the package, so that each process can import it."""
IMPORT = "from crawler._mutants_probe import hit as _hit\n"
SECONDS = 40.0
MAX_DOUBTFUL = 3
"""Tests of a mutant that may fail without the change, too: with other tests before them, or on a slow machine."""
MAX_TESTS = 300
UNDECIDED = "undecided"
"""The tests failed or were too slow, but they do so without the change, too."""


# The changes

_PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    *((ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)),
    *((ast.And, ast.Or), (ast.Sub, ast.Add), (ast.Mult, ast.Div)),
]
SWAPPED = dict(_PAIRS) | {after: before for before, after in _PAIRS if after is not ast.Add}
"""Operator -> the operator in its place. Additions are not changed: most of them join texts, lists or counters."""


def changed_expression(node: ast.AST) -> ast.expr | None:
    """Return the changed copy of an expression; None: it is not changed."""
    changed: ast.expr | None = None
    match node:
        case ast.Compare(left, [operator], comparators) if type(operator) in SWAPPED:
            changed = ast.Compare(left, [SWAPPED[type(operator)]()], comparators)  # type: ignore[list-item]
        case ast.BoolOp(operator, values):
            changed = ast.BoolOp(SWAPPED[type(operator)](), values)  # type: ignore[arg-type]
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            changed = ast.BinOp(left, SWAPPED[type(operator)](), right)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not(), operand):
            changed = operand
        case ast.IfExp(test, body, orelse):
            changed = ast.IfExp(test, orelse, body)
        case ast.Constant(bool() as value):
            changed = ast.Constant(not value)
        case ast.Constant(int() as value):
            changed = ast.Constant(value + 1)
    return changed


def changed_statement(node: ast.AST) -> str | None:
    """Return the text in place of a statement; None: it is not changed. Statements that log are not changed."""
    match node:
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            return "return None"
        case ast.Expr(ast.Call(call)) if not re.search(r"\blog(ger)?\b", ast.unparse(call)):
            return "pass"
        case ast.Raise(exc) if exc is not None:
            return "pass"
        case ast.Continue() | ast.Break():
            return "pass"
        case ast.Assign([ast.Attribute()]) | ast.AugAssign():
            return "pass"
    return None


@dataclass(frozen=True)
class Mutant:
    """A change of a single line: the text between two columns (of UTF-8) is replaced."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    is_statement: bool

    @property
    def room(self) -> str:
        """The folder below the package."""
        return Path(self.file).parts[1]

    def applied(self, source: str) -> str:
        """Return the changed source."""
        return self._replaced(source, self.after)

    def probed(self, source: str, number: int) -> str:
        """Return the source with a probe at the place of the change."""
        if not self.is_statement:
            return self._replaced(source, f"(_hit({number}) or ({self.before}))")
        lines = source.splitlines(keepends=True)
        lines.insert(self.line - 1, f"{' ' * self.start}_hit({number})\n")
        return "".join(lines)

    def _replaced(self, source: str, text: str) -> str:
        lines = source.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        lines[self.line - 1] = (line[: self.start] + text.encode() + line[self.end :]).decode()
        return "".join(lines)


def mutants_of(file: str, source: str) -> Iterator[Mutant]:
    """Yield all changes of a module: in functions, outside of annotations, decorators, patterns and f-strings."""
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, (ast.pattern, ast.JoinedStr, ast.arguments)):
            continue
        if inside and isinstance(node, (ast.expr, ast.stmt)) and node.lineno == node.end_lineno:
            yield from _mutant(file, source, node)
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name, value in ast.iter_fields(node):
            if name not in {"annotation", "returns", "decorator_list", "args" if is_function else ""}:
                children = value if isinstance(value, list) else [value]
                waiting += [(child, inside or is_function) for child in children if isinstance(child, ast.AST)]


def _mutant(file: str, source: str, node: ast.expr | ast.stmt) -> Iterator[Mutant]:
    line = source.splitlines()[node.lineno - 1].encode()
    before = line[node.col_offset : node.end_col_offset].decode()
    if isinstance(node, ast.expr):
        changed = changed_expression(node)
        after = None if changed is None else f"({ast.unparse(ast.fix_missing_locations(changed))})"
    else:
        after = changed_statement(node)
        if line[: node.col_offset].strip() or line[node.end_col_offset or 0 :].partition(b"#")[0].strip():
            return
    if after is not None:
        end = node.end_col_offset or 0
        yield Mutant(file, node.lineno, node.col_offset, end, before, after, isinstance(node, ast.stmt))


def chosen(root: Path, seed: int, number: int) -> list[Mutant]:
    """Return the changes: the same number for each room, at most one for each line, and always the same for a seed."""
    found = []
    for index, room in enumerate(ROOMS):
        files = sorted((root / "crawler" / room).rglob("*.py"))
        sources = {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}
        every = [mutant for file, source in sources.items() for mutant in mutants_of(file, source)]
        random.Random(f"{seed} {room}").shuffle(every)  # noqa: S311  # the same in each run
        lines = {(mutant.file, mutant.line): mutant for mutant in reversed(every)}
        first = [mutant for mutant in every if lines[mutant.file, mutant.line] is mutant]
        found += first[: number // len(ROOMS) + (index < number % len(ROOMS))]
    return found


# The tests that reach a line


@dataclass
class Reached:
    """The tests that passed: their durations, and the tests that reach each line."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[int, list[str]] = field(default_factory=dict)

    def of(self, number: int, seconds: float) -> list[str]:
        """Return tests that reach a line and take so long together: quick ones, and one of each function first."""
        turns: Counter[str] = Counter()
        order = []
        for test in sorted(self.tests.get(number, ()), key=self.seconds.__getitem__):
            turns[test.partition("[")[0]] += 1
            order.append((turns[test.partition("[")[0]], self.seconds[test], test))
        chosen_tests: list[str] = []
        for _, duration, test in sorted(order)[:MAX_TESTS]:
            seconds -= duration
            if seconds >= 0 or not chosen_tests:
                chosen_tests.append(test)
        return chosen_tests


class Copy:
    """The checkout whose files are changed."""

    def __init__(self, folder: Path, slowdown: float) -> None:
        if folder.resolve() == ROOT:
            raise SystemExit("The copy must not be this checkout: its files are changed.")
        self.folder, self.slowdown = folder, slowdown
        self._changes = 0

    def write(self, file: str, source: str) -> None:
        """Write a module. Its time differs from that of all versions before, so that no compiled one is used."""
        path = self.folder / file
        path.write_text(source, encoding="utf-8")
        self._changes += 1
        now = time.time() - 100_000 + 2 * self._changes
        os.utime(path, (now, now))

    def pytest(self, arguments: list[str], seconds: float | None = None) -> tuple[int | None, str]:
        """Run tests. Return the exit code, None after a timeout, and the output."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        names = self.folder / "mutants.log"  # names of tests can be longer than a command line may be
        names.write_text("".join(f"{each}\n" for each in arguments), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE", f"@{names}"]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, _ = process.communicate(timeout=seconds and seconds * self.slowdown)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None, ""
        return process.returncode, out

    def learn(self, mutants: list[Mutant], tests: list[str]) -> Reached:
        """Run the tests once with probes, and return which tests reach which change."""
        by_file: dict[str, list[tuple[int, Mutant]]] = defaultdict(list)
        for number, mutant in enumerate(mutants):
            by_file[mutant.file].append((number, mutant))
        probe = self.folder / INSTALLED
        log, counter = probe.with_name("_mutants_reached.log"), probe.with_name("_mutants_test.bin")
        log.unlink(missing_ok=True)
        probe.write_text(PROBE.read_text())
        for file, numbered in by_file.items():
            source = (ROOT / file).read_text(encoding="utf-8")
            for number, mutant in sorted(numbered, key=lambda each: -each[1].line):
                source = mutant.probed(source, number)
            head, mark, rest = source.rpartition("from __future__ import annotations\n")
            self.write(file, f"{head}{mark}{IMPORT}{rest}")
        try:
            status, out = self.pytest(["-p", "crawler._mutants_probe", *tests])
            print(f"tests with probes: exit code {status}, {out.splitlines()[-1]}", file=sys.stderr)
        finally:
            for file in by_file:
                self.write(file, (ROOT / file).read_text(encoding="utf-8"))
            probe.unlink()
            counter.unlink()
        return read_log(log)

    def fate(self, mutant: Mutant, number: int, reached: Reached, seconds: float) -> tuple[str, str]:
        """Run the tests that reach a change. Return what became of it, and the test that noticed it."""
        tests = reached.of(number, seconds * 0.75)
        if not tests:
            return "not reached", ""
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        for _ in range(MAX_DOUBTFUL + 1):
            self.write(mutant.file, mutant.applied(source))
            try:
                status, out = self.pytest(["-x", *tests], seconds)
            finally:
                self.write(mutant.file, source)
            if status == 0:
                return "survived", ""
            failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out, re.MULTILINE)
            suspects = [failed[1]] if failed else tests  # tests: after a timeout
            if self.pytest(["-x", *suspects], seconds)[0] == 0:
                return "killed", failed[1] if failed else "timeout"
            if not (tests := [each for each in tests if each not in suspects]):
                break
        return UNDECIDED, ""


def read_log(log: Path) -> Reached:
    """Read what the probes wrote: the tests in their order with durations and outcomes, and the probes reached."""
    reached, names, passed = Reached(), [], set()
    hits: dict[int, set[int]] = defaultdict(set)
    seconds: dict[str, float] = defaultdict(float)
    for line in log.read_text().splitlines():
        match json.loads(line):
            case ["test", str(name)]:
                names.append(name)
                passed.add(name)
            case ["report", str(name), float(duration), bool(is_failed)]:
                seconds[name] += duration
                passed -= {name} if is_failed else set()
            case ["hit", int(number), int(test)]:
                hits[number].add(test)
    reached.seconds = {name: round(seconds[name], 3) for name in names if name in passed}
    reached.tests = {
        number: sorted({names[test - 1] for test in each if test and names[test - 1] in passed})
        for number, each in sorted(hits.items())
    }
    return reached


def learned(copy: Copy, mutants: list[Mutant], tests: list[str], file: Path | None) -> Reached:
    """Return which tests reach which change: from the file if it exists."""
    if file and file.exists():
        found = json.loads(file.read_text())
        return Reached(found["seconds"], {int(number): each for number, each in found["tests"].items()})
    reached = copy.learn(mutants, tests)
    if file:
        file.write_text(json.dumps({"seconds": reached.seconds, "tests": reached.tests}))
    return reached


# The report


def summary(fates: list[tuple[Mutant, str, str]]) -> str:
    """Return a table with the shares by room."""
    fates_of: dict[str, Counter[str]] = {room: Counter() for room in ROOMS}
    for mutant, fate, _ in fates:
        fates_of[mutant.room][fate] += 1
    fates_of["all"] = sum(fates_of.values(), Counter())
    kinds = ("killed", "survived", UNDECIDED, "not reached")
    rows = []
    for room, counts in fates_of.items():
        share = f"{counts['killed'] / counts.total():.0%}" if counts else "–"
        rows.append((room, str(counts.total()), *(str(counts[kind]) for kind in kinds), share))
    return grid(("room", "mutants", *kinds, "share killed"), rows)


def details(fates: list[tuple[Mutant, str, str]]) -> str:
    """Return a table with all mutants."""
    rows = []
    for mutant, fate, test in fates:
        change = f"`{mutant.before}` → `{mutant.after}`" if len(mutant.before) < 60 else f"… → `{mutant.after[:60]}`"
        rows.append((f"{mutant.file.removeprefix('crawler/')}:{mutant.line}", change, fate, test.partition("[")[0]))
    return grid(("line", "change", "fate", "test that failed"), rows)


def main(show: Callable[[str], None] = print) -> None:
    """Read the arguments, run the tests, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("copy", type=Path, help="a second checkout, beside this one, of the same commit")
    parser.add_argument("tests", nargs="+", help="arguments of pytest: the tests that may notice a change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each mutant (default: %(default)s)")
    parser.add_argument(
        "--slowdown", type=float, default=1, help="the machine is that much slower than in the first run"
    )
    parser.add_argument("--reached", type=Path, metavar="FILE", help="file for the tests that reach each change")
    parser.add_argument("--fates", type=Path, metavar="FILE", help="file for the results: a second run goes on with it")
    given = parser.parse_args()
    copy, mutants = Copy(given.copy, given.slowdown), chosen(ROOT, given.seed, given.mutants)
    reached = learned(copy, mutants, given.tests, given.reached)
    known = json.loads(given.fates.read_text()) if given.fates and given.fates.exists() else {}
    for number, mutant in enumerate(mutants):
        if known.get(str(number), [UNDECIDED])[0] == UNDECIDED:
            known[str(number)] = copy.fate(mutant, number, reached, given.seconds)
            print(f"{number + 1}/{len(mutants)} {mutant.file}:{mutant.line}", *known[str(number)], file=sys.stderr)
        if given.fates:
            given.fates.write_text(json.dumps(known))
    fates = [(mutant, *known[str(number)]) for number, mutant in enumerate(mutants)]
    show(f"{summary(fates)}\n\n{details(fates)}")


if __name__ == "__main__":
    main()
