"""``docs/demo.svg``: a recording of the terminal, from the output of ``scripts/demo``.

``scripts/demo | python -m scripts.picture`` writes the lines until the end of the first record as a picture.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
COMMAND = "$ scripts/demo"
WIDTH = 118  # columns of the terminal
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich's style sheet loads fonts from another host. The picture uses the fonts of its reader."""


def first_record(lines: Iterable[str]) -> list[str]:
    """Return the lines of the demo until the end of the table of the first record."""
    shown = [COMMAND]
    for line in lines:
        shown.append(line.rstrip())
        if line.lstrip().startswith("... and "):
            break
    return shown


def picture(lines: list[str]) -> str:
    """Return a terminal with these lines as SVG."""
    console = Console(record=True, width=WIDTH, file=StringIO())
    for line in lines:
        is_heading = line == COMMAND or re.match(r"\d+\. ", line)
        console.print(Text(line, style="bold" if is_heading else "", no_wrap=True, overflow="ellipsis"))
    return FONT.sub("", console.export_svg(title="scripts/demo", unique_id="demo")) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(first_record(sys.stdin)))
