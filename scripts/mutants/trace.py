"""The tests of each block of the project's functions: a plugin of pytest that traces them, and what it has found.

``scripts/test -p scripts.mutants.trace`` runs tests as usual, and notes which blocks each of them runs, in all of its
processes. The compiled modules are in ``build/mutants``; the sources stay as they are.
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import NamedTuple

import pytest

from benchmarks.lines import PLATFORMS, SANDBOX
from scripts.mutants import switch
from scripts.mutants.places import Mutant, instrumented
from scripts.mutants.switch import FOLDER
from tests import forks

ROOT = FOLDER.parents[1]
TESTS_SECONDS = 15.0
SLOW_SECONDS = 2.0
"""A test has one later turn for each time that it takes this long."""
DECLARED = (
    *("tests/contracts/test_keys.py", "tests/contracts/test_contracts.py::test_declarations_are_counted_not_guessed"),
    *("tests/platforms/test_budgets.py", "tests/platforms/test_records.py", "tests/platforms/test_links.py"),
    "tests/configuration/test_settings_check.py::test_the_page_of_settings_is_written_from_the_fields",
    *("tests/jobs/test_tables.py", "tests/outputs/test_formats.py"),
    "tests/service/test_openapi.py::test_operations_keep_the_names_that_clients_call",
)
"""Tests of what modules declare. They run no function that uses it."""
UNCHECKED = (1).to_bytes(4, "little")
"""The flag of compiled modules that are not compared with their sources (PEP 552)."""


class Modules(NamedTuple):
    """The compiled modules."""

    mutants: list[Mutant]
    """All mutants of the modules; those that are compiled have their change."""
    uses: dict[str, set[str]]
    """Name -> the blocks in which it occurs."""


def compiled(blocks: dict[str, int], mutants: Iterable[Mutant] = ()) -> Modules:
    """Compile the modules with the mutants in them, or all modules, for this process and those that it starts.

    Adds blocks with new numbers.
    """
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(FOLDER / "compiled")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise, each process would compile the libraries again
    sys.dont_write_bytecode = False
    chosen: dict[str, dict[int, int]] = defaultdict(dict)
    for number, mutant in enumerate(mutants, 1):
        chosen[mutant.file][mutant.place] = number
    every = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "crawler").rglob("*.py")))
    found = Modules([], defaultdict(set))
    for file in chosen or [each for each in every if not each.startswith(SANDBOX)]:
        source = (ROOT / file).read_bytes()
        tree, places = instrumented(file, source.decode(), chosen[file], blocks)
        target = Path(importlib.util.cache_from_source(str(ROOT / file)))
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_suffix(".new")
        head = importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(source)
        new.write_bytes(head + marshal.dumps(compile(tree, ROOT / file, "exec", dont_inherit=True)))
        new.replace(target)  # a process that imports the module reads one or the other
        found.mutants.extend(places.found)
        for name, of_name in places.uses.items():
            found.uses[name] |= of_name
    return found


class Trace:
    """Notes for each test that passes its seconds and the blocks that it has run, in this process and others."""

    def __init__(self, memory: memoryview) -> None:
        self._switch = memory
        self._file = (FOLDER / f"{os.environ[switch.VARIABLE]}.trace").open("w", buffering=1)
        self._not_passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._not_passed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._taken()
        started = time.monotonic()
        result = yield
        if item.nodeid not in self._not_passed and len(item.nodeid) < 999:
            self._file.write(json.dumps([item.nodeid, round(time.monotonic() - started, 3), self._taken()]) + "\n")
        return result

    def _taken(self) -> list[int]:
        found = [match.start() // 4 for match in re.finditer(b"\1", self._switch.tobytes())]
        for number in found:
            self._switch[number] = 0
        return found


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Trace the tests of this process. With xdist, the main process prepares the modules, and its workers trace."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        for old in FOLDER.glob("*.trace"):
            old.unlink()
        blocks: dict[str, int] = {}
        compiled(blocks)
        (FOLDER / "blocks.json").write_text(json.dumps({number: name for name, number in blocks.items()}))
        if getattr(early_config.known_args_namespace, "numprocesses", None):
            return
    os.environ.pop(forks.ADDRESS, None)  # the server of all workers has no switch: each worker starts its own
    assert "crawler" not in sys.modules
    switch.SWITCH = switch.shared(worker or "main")
    early_config.pluginmanager.register(Trace(switch.SWITCH))


@dataclass
class Traced:
    """What the last trace found."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Block -> tests that run it."""
    tests_seconds: float = TESTS_SECONDS
    """Tests of one mutant: as many as passed within this time when they were traced."""

    @classmethod
    def read(cls, tests_seconds: float = TESTS_SECONDS) -> Traced:
        """Read the last trace."""
        traced = cls(tests_seconds=tests_seconds)
        if not (files := list(FOLDER.glob("*.trace"))):
            raise SystemExit("No trace of the tests. First run: scripts/test -p scripts.mutants.trace")
        names = {int(number): name for number, name in json.loads((FOLDER / "blocks.json").read_text()).items()}
        for file in files:
            for line in file.read_text().splitlines():
                with suppress(ValueError):  # the last line of a run that was killed
                    test, seconds, numbers = json.loads(line)
                    traced.seconds[test] = seconds
                    for number in numbers:
                        traced.tests[names[number]].add(test)
        return traced

    def of(self, mutant: Mutant, uses: dict[str, set[str]]) -> list[str]:
        """Return the tests for a mutant in the order in which they run: in turns, each with one test of each function.
        A test of another room and a slow one have later turns. In a turn, those of blocks that few tests run come
        first, then quick ones.

        What runs when a module is imported has the tests of the blocks that use its name, of its own folder if there
        are any (fields of different rooms have the same names), or of all blocks of the module or the folder.
        """
        is_imported = self.is_imported(mutant)
        blocks = {mutant.block}
        if is_imported:
            folder = f"{PurePath(mutant.file).parent.as_posix()}/"
            of_file, of_folder = ({each for each in self.tests if each.startswith(of)} for of in (mutant.file, folder))
            named = uses.get(mutant.name, set()) & self.tests.keys()
            is_local = mutant.name.startswith("_") or folder.startswith(PLATFORMS)
            blocks = named & of_folder or (set() if is_local else named) or of_file or of_folder
        tests: dict[str, int] = {each: 0 for each in self.seconds if is_imported and each.startswith(DECLARED)}
        for of_block in sorted((self.tests.get(each, ()) for each in blocks), key=len):
            tests = {**dict.fromkeys(of_block, len(of_block)), **tests}
        room = (PurePath(mutant.file).parts[1:-1] or ("",))[-1]
        turns: Counter[tuple[str, bool]] = Counter()
        order = []
        for test in sorted(tests, key=lambda each: (tests[each], self.seconds[each], each)):
            is_far = bool(tests[test]) and room not in test
            turns[test.partition("[")[0], is_far] += 1
            turn = turns[test.partition("[")[0], is_far] + self.seconds[test] // SLOW_SECONDS
            order.append((turn * (3 if is_far else 1), tests[test], self.seconds[test], test))
        chosen: list[str] = []
        left = self.tests_seconds
        for *_, seconds, test in sorted(order):
            if seconds <= left or not chosen:
                chosen.append(test)
                left -= seconds
        return chosen

    def is_imported(self, mutant: Mutant) -> bool:
        """Whether a mutant must be active when its module is imported: no test runs its function."""
        function, _, _ = mutant.block.rpartition(":")
        return f"{function}:1" not in self.tests

    def work(self, mutants: list[Mutant], uses: dict[str, set[str]]) -> list[Work]:
        """Return what is to be run for each mutant; those of the same number are compiled."""
        return [Work(number, self.of(each, uses), self.is_imported(each)) for number, each in enumerate(mutants, 1)]


class Work(NamedTuple):
    """A mutant's number, its tests, and whether it must be active when the modules are imported."""

    number: int
    tests: list[str]
    is_imported: bool
