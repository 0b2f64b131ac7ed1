"""Notes which test reaches which probe: a plugin of pytest, and the function that the probes call in any process.

``benchmarks/mutants.py`` copies this module into the package of the copy. The number of the running test is in a file
that all processes map, because processes that a fixture starts outlive the test that started them.
"""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

FOLDER = Path(__file__).parent
LOG = FOLDER / "_mutants_reached.log"
NUMBER = FOLDER / "_mutants_test.bin"
SIZE = 4


def _mapped() -> mmap.mmap:
    file = os.open(NUMBER, os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, SIZE)
    return mmap.mmap(file, SIZE)


_test = _mapped()
_seen: set[tuple[int, int]] = set()


def _write(*values: object) -> None:
    with LOG.open("a") as log:
        log.write(json.dumps(values) + "\n")


def hit(number: int) -> None:
    """Note that the running test reaches a probe."""
    test = int.from_bytes(_test[:SIZE], "little")
    if (number, test) not in _seen:
        _seen.add((number, test))
        _write("hit", number, test)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Begin a test."""
    _test[:SIZE] = (int.from_bytes(_test[:SIZE], "little") + 1).to_bytes(SIZE, "little")
    _write("test", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the duration of a part of a test, and whether it did not pass."""
    _write("report", report.nodeid, float(report.duration), not report.passed)


def pytest_configure() -> None:
    """Begin with the first test."""
    _test[:SIZE] = bytes(SIZE)
