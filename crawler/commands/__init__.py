"""The project's Scrapy commands. The setting ``COMMANDS_MODULE`` makes Scrapy load them.

After this package is imported, every command of Scrapy ends without a traceback if the command's output is closed, as
by ``scrapy … | head``.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import TracebackType


def _discard_output() -> None:
    """Discard further output, because Python would fail again when it flushes the output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, BrokenPipeError):
        _discard_output()
    else:
        sys.__excepthook__(kind, error, traceback)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


sys.excepthook = _report
atexit.register(_flush)
