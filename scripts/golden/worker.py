"""Runs commands of Scrapy in this process: reads the arguments of one per line, and prints status, output and errors.

It runs in any checkout: its folder is the working directory.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

from scrapy.cmdline import execute


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command. Return its exit code, its output and its errors."""
    out, errors = io.BytesIO(), io.StringIO()
    text = io.TextIOWrapper(out, encoding="utf-8")
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(errors):
        try:
            execute(["scrapy", *arguments])
        except SystemExit as end:
            status = int(end.code or 0)
    text.flush()
    return status, out.getvalue().decode(), errors.getvalue()


def main() -> None:
    """Run the commands of all lines."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
