"""Mutants: mistakes that the tests should notice, many in one compiled copy of the project's modules, one at a time.

``python -m scripts.mutants --sample N --seed S [ROOM ...]`` puts mutants into the modules of the rooms, each behind
a switch (``switch.py``, ``places.py``). The compiled modules are in ``build/mutants``; the sources stay as they are.
For each mutant, a fork of a process that has imported the libraries runs the tests that run its block, quick ones
first, until one fails. A slow test must then pass without the mutant.

The tests of each block are those of the last run of ``scripts/test -p scripts.mutants.trace`` (``trace.py``). If it
was interrupted or ran some of the tests only, a mutant may survive because the tests that notice it are missing in the
trace.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress
from importlib import import_module
from itertools import zip_longest
from multiprocessing.connection import Connection, wait
from pathlib import Path, PurePath
from typing import NamedTuple

import pytest

from benchmarks.lines import room
from benchmarks.tables import grid
from scripts.mutants import switch
from scripts.mutants.places import Mutant
from scripts.mutants.switch import FOLDER
from scripts.mutants.trace import ROOT, TESTS_SECONDS, Traced, Work, compiled

TRUSTED_SECONDS = 0.5
"""A test that takes longer can fail without a mutant, on a busy machine."""
LIBRARIES = "import sys, tests.forks.server as server; server.import_project(); print(*sys.modules)"
OPTIONS = ("-xq", "--tb=line", "-pno:cacheprovider", "-pno:xdist", "--assert=plain")
"""``plain``, because pytest could not rewrite the assertions of libraries that are imported already."""
SLOT = "slot-"
"""The beginning of the names of switches (``switch.py``) of processes that run mutants."""
OWN = ("crawler", "tests", "benchmarks", "scripts", "__main__")


def sample(mutants: list[Mutant], rooms: list[str], number: int, seed: str) -> list[Mutant]:
    """Choose mutants: of each room in proportion to the root of its lines, at most one of a line."""
    lines: dict[str, dict[tuple[str, int], list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for mutant in mutants:
        lines[room_of(mutant)][mutant.file, mutant.line].append(mutant)
    if unknown := set(rooms) - set(lines):
        raise SystemExit(f"unknown room: {', '.join(sorted(unknown))}. Choose from {', '.join(sorted(lines))}.")
    shares = {name: len(of_room) ** 0.5 for name, of_room in sorted(lines.items()) if not rooms or name in rooms}
    chosen = []
    for name, share in shares.items():
        of_seed = random.Random(f"{seed} {name}")  # noqa: S311  # the same in each run
        of_room = sorted(lines[name].items())
        number_of_room = min(len(of_room), round(number * share / sum(shares.values())))
        chosen += [of_seed.choice(each) for _, each in of_seed.sample(of_room, number_of_room)]
    return chosen


def room_of(mutant: Mutant) -> str:
    """Return the room of a mutant, without the package."""
    return room(PurePath(mutant.file)).removeprefix("crawler/")


class Fate(NamedTuple):
    """What became of a mutant, the test that noticed it, and how long that took."""

    number: int
    result: str
    test: str = ""
    seconds: float = 0


class Runner:
    """Runs mutants in forks of its process: those of imports before the tests are collected, the others after that."""

    def __init__(self, work: list[Work], seconds: dict[str, float], results: Connection) -> None:
        """``seconds``: the seconds of each test when it was traced."""
        self._work, self._seconds, self._results = work, seconds, results
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._running = self._folder / "running"
        self._items: dict[str, pytest.Item] = {}

    def run(self, name: str) -> None:
        """Run all mutants with an own switch. Their results are sent as they come."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        switch.SWITCH = switch.shared(name)
        switch.SWITCH[0] = 0
        log = os.open(FOLDER / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            for work in self._work:
                if work.is_imported:
                    self._results.send(self._fate(work))
            pytest.main(self._arguments([test for work in self._work for test in work.tests]), [self])
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        for work in self._work:
            if not work.is_imported:
                self._results.send(self._fate(work))
        return True

    def _fate(self, work: Work) -> Fate:
        started, tests = time.monotonic(), work.tests
        result, name = "survived" if tests else "not reached", ""
        while tests and result == "survived":
            passed, name = self._passes(work.number, tests)
            if passed:
                name = ""
                break
            suspects = [name] if name else tests[:3]
            if self._seconds.get(name, 1) < TRUSTED_SECONDS or self._passes(0, suspects)[0]:
                result = "killed"
            elif not (tests := [test for test in tests if test not in suspects]):
                result = "undecided"
        return Fate(work.number, result, name, time.monotonic() - started)

    def _passes(self, number: int, tests: list[str]) -> tuple[bool, str]:
        """Run tests in a fork with a mutant. Return whether they pass in time, and the last test that ran."""
        from tests.forks import client_command  # noqa: PLC0415  # after the switch is set

        self._running.write_text("")
        if self._items:
            client_command()  # one server for all forks; it reads the same switch
        switch.SWITCH[0] = number
        if (pid := os.fork()) == 0:
            code = 1
            with suppress(BaseException):
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.environ["TMPDIR"] = tempfile.tempdir = str(self._folder)
                code = self._play(tests) if self._items else pytest.main(self._arguments(tests), [Chosen(tests, self)])
            os._exit(code)
        ends = time.monotonic() + 30 + 5 * sum(self._seconds.get(test, 1) for test in tests)
        ended, status = 0, 1
        try:
            while not ended and time.monotonic() < ends:
                time.sleep(0.02)
                ended, status = os.waitpid(pid, os.WNOHANG)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            if not ended:
                os.waitpid(pid, 0)
        switch.SWITCH[0] = 0
        return bool(ended) and status == 0, self._running.read_text()

    def _play(self, tests: list[str]) -> int:
        """Run collected tests until one fails."""
        items = [self._items[test] for test in tests if test in self._items]
        for item, following in zip_longest(items, items[1:]):
            self.pytest_runtest_logstart(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if item.session.testsfailed:
                return 1
        return 0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running.write_text(nodeid)

    @staticmethod
    def _arguments(tests: list[str]) -> list[str]:
        return [*OPTIONS, *dict.fromkeys(test.partition("::")[0] for test in tests)]


class Chosen:
    """Selects tests in their order, for a process that has not imported the modules."""

    def __init__(self, tests: list[str], runner: Runner) -> None:
        self._tests, self.pytest_runtest_logstart = tests, runner.pytest_runtest_logstart

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {each.nodeid: each for each in items}
        items[:] = [found[test] for test in self._tests if test in found]


def import_libraries() -> None:
    """Import what the project imports, but not its own modules, so that forks need not."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    found = subprocess.run([sys.executable, "-c", LIBRARIES], check=True, capture_output=True, text=True).stdout
    for name in found.split():
        if name.partition(".")[0] not in OWN:
            with suppress(ImportError):
                import_module(name)


def main(arguments: list[str]) -> None:
    """Read the arguments, run the mutants, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m scripts.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help="as in `python -m benchmarks lines`; default: all")
    parser.add_argument("--sample", type=int, default=150, metavar="N")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=TESTS_SECONDS, metavar="N", help="of the tests of a mutant")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes that run mutants")
    parser.add_argument("--minutes", type=float, default=600, help="after which the mutants that are left are not run")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="exit code 1 if fewer are killed")
    given = parser.parse_args(arguments)
    started, traced, blocks = time.monotonic(), Traced.read(given.seconds), dict[str, int]()
    modules = compiled(blocks)
    chosen = sample(modules.mutants, given.rooms, given.sample, given.seed)
    described = {(each.file, each.place): each for each in compiled(blocks, chosen).mutants}
    chosen = [described[each.file, each.place] for each in chosen]
    work = traced.work(chosen, modules.uses)
    random.Random(given.seed).shuffle(work)  # noqa: S311  # if time ends, all rooms have had their share
    import_libraries()
    fork, readers, slots = multiprocessing.get_context("fork"), [], []
    for slot in range(given.jobs):
        reader, writer = fork.Pipe(duplex=False)
        runner = Runner(work[slot :: given.jobs], traced.seconds, writer)
        slots.append(fork.Process(target=runner.run, args=(f"{SLOT}{slot}",)))
        slots[-1].start()
        writer.close()
        readers.append(reader)
    fates: dict[int, Fate] = {}
    with suppress(KeyboardInterrupt):
        while readers and (left := started + 60 * given.minutes - time.monotonic()) > 0:
            ready = wait(readers, left)
            for reader in [each for each in readers if each in ready]:
                try:
                    found = reader.recv()
                except EOFError:
                    readers.remove(reader)
                    continue
                fates[found.number] = found
                mutant = chosen[found.number - 1]
                place = f"{mutant.file}:{mutant.line}"
                print(f"{len(fates)}/{len(work)}", found.result, place, found.test[:150], file=sys.stderr, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first one has ended the loop; the results are still printed
    for process in slots:
        process.terminate()
        process.join()
    end_commands()
    killed = report(chosen, fates)
    print(f"\n{len(fates)} of {len(chosen)} mutants in {time.monotonic() - started:.0f} s")
    if killed < given.at_least:
        raise SystemExit(1)


def end_commands() -> None:
    """Kill the commands that are still running. They have sessions of their own, so they outlive a killed test.

    Only on Linux, where ``/proc`` has the environment of each process.
    """
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # the process has ended, or is another user's
            if f"{switch.VARIABLE}={SLOT}".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


def report(mutants: list[Mutant], fates: dict[int, Fate]) -> float:
    """Print the results by room and the survivors. Return the per cent of killed ones."""
    results = ("killed", "survived", "not reached", "undecided")
    rooms: dict[str, list[Fate]] = defaultdict(list)
    for number in sorted(fates):
        rooms[room_of(mutants[number - 1])].append(fates[number])
    rooms["all"] = list(fates.values())
    rows = []
    share = 0.0
    for name, of_room in rooms.items():
        counts = Counter(each.result for each in of_room)
        share = 100 * counts["killed"] / (len(of_room) or 1)
        seconds = sum(each.seconds for each in of_room)
        numbers = (str(counts[each]) for each in results)
        rows.append((name, str(len(of_room)), *numbers, f"{share:.0f} %", f"{seconds:.0f}"))
    print(grid(("room", "mutants", *results, "killed", "seconds"), rows))
    for number, found in sorted(fates.items()):
        mutant = mutants[number - 1]
        if found.result != "killed":
            print(f"\n{found.result}: {mutant.file}:{mutant.line} {mutant.kind}\n    {mutant.change}")
    return share


if __name__ == "__main__":
    main(sys.argv[1:])
