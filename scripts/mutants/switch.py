"""Which mutant is active, and which blocks have run: memory that all processes of a test share.

The compiled modules read and write ``SWITCH``. Its first number is that of the active mutant, 0 for none. The others
belong to the blocks of the project's functions (``places.py``): 1 if the block has run.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "build" / "mutants"
VARIABLE = "MUTANT_SWITCH"
"""The environment variable with the name of the switch: processes of the same test have the same."""
NUMBERS = 20_000


def shared(name: str) -> memoryview:
    """Map a file of numbers, all 0 at first, for this process and those that it starts."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ[VARIABLE] = name
    with (FOLDER / f"{name}.switch").open("a+b") as file:
        file.truncate(4 * NUMBERS)
        return memoryview(mmap.mmap(file.fileno(), 4 * NUMBERS)).cast("I")


SWITCH = shared(os.environ[VARIABLE]) if VARIABLE in os.environ else memoryview(bytearray(4 * NUMBERS)).cast("I")
