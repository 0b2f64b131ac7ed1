"""The settings of Python's garbage collector for the start of commands, for crawls and for the endpoint."""

from __future__ import annotations

import atexit
import gc

STARTING = (250_000, 10, 10)
"""The collector's thresholds while a command starts. The start creates 190,000 objects. Nearly all of them are parts of
modules and schemas, which are never freed."""


def spare_modules() -> None:
    """Prevent garbage collections while a command starts and when it exits.

    The collector would search all modules and schemas several times while a command starts and again when it exits,
    which took a third of the CPU time of ``scrapy --help``.
    """
    gc.set_threshold(*STARTING)
    atexit.register(gc.freeze)


def end_start() -> None:
    """Tune the collector for a crawl, if its thresholds are still those of ``spare_modules()``."""
    if gc.get_threshold() == STARTING:
        tune_garbage_collector(collect=False)


def tune_garbage_collector(*, collect: bool = True) -> None:
    """Exclude all existing objects from garbage collection, and collect less often.

    A target creates thousands of objects, of which reference counting frees nearly all. The collector would still
    search all modules and schemas again and again, which took a fifth of the CPU time of a call.

    ``collect``: first free the existing garbage, which would never be freed later. This takes about 0.1 s.
    """
    if collect:
        gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
