"""Memory that the C library keeps for later."""

from __future__ import annotations

import ctypes

TRIM_SECONDS = 5.0
"""Interval in seconds at which a long-running process trims its heap."""


def trim_heap() -> None:
    """Return the free pages of the heap to the system. This takes at most a few milliseconds.

    The GNU C library returns only the end of its heap. Pages of a megabyte that are freed in another order leave gaps,
    which grow with each mixture of sizes: 40 MB beside a job. Other C libraries have no such function.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
