"""Returns freed memory to the system, which the C library would keep for later."""

from __future__ import annotations

import ctypes

TRIM_SECONDS = 5.0
"""Interval in seconds at which a long-running process trims its heap."""
COLLECT_SECONDS = 30.0
"""Interval in seconds at which a long-running process frees reference cycles (``gc.collect()``), which takes some
milliseconds. Errors form cycles in libraries: of failed downloads, with their responses, and of a store that is
unavailable. The garbage collector itself waits for 10,000 new objects, but not for 100 MB in a few of them."""


def trim_heap() -> None:
    """Return the free memory of the heap to the system. This takes at most a few milliseconds.

    The GNU C library by itself returns only the end of its heap. Platforms' pages of a megabyte leave gaps in the
    heap, which grow with each mixture of sizes: to 40 MB while a job runs. With other C libraries, this function does
    nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
