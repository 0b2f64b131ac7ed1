"""The part of targets files that one of several runs scrapes (argument ``shard``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several equal parts of the rows. 3/16 is every 16th row, starting with the third."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a shard such as ``3/16``.

        Raises:
            ValueError: the text is not a shard.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"{text!r} is not a shard: write 3/16 for the third of sixteen parts")
        return cls(int(found[1]), int(found[2]))

    def __contains__(self, row: int) -> bool:
        return row % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
