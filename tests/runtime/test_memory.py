"""The heap of the C library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GAPS = """
from pathlib import Path
from crawler.service.endpoint import trim_heap

def megabytes():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024

kept = [b"x" * (100_000 + number) for number in range(400)]
del kept[::2]
before = megabytes()
trim_heap()
print(before - megabytes())
"""


def test_gaps_in_the_heap_are_returned_to_the_system() -> None:
    """The gaps are those of 200 freed objects of 100 kB, whose neighbours are still in use."""
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", GAPS], capture_output=True, text=True, check=True, cwd=root)
    assert float(found.stdout) > 10
