"""The settings of Python's garbage collector, and the check whether this package hides a package ``crawler``.

``scrapy`` searches the installed packages before the project's folder, and Scrapyd searches them before the project's
egg. If social-retail-crawler is installed in the same environment, a project whose own package is called ``crawler``
would get the settings and spiders of this package.
"""

from __future__ import annotations

import atexit
import gc
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from scrapy.utils.conf import closest_scrapy_cfg

STARTING = (250_000, 10, 10)
"""The collector's thresholds while a command starts. The start creates 190,000 objects. Nearly all of them are parts of
modules and schemas, which are never freed."""

COLLECT_SECONDS = 30.0
"""Interval in seconds at which ``scrapy serve``, ``work`` and ``collect`` free reference cycles.

Errors form cycles in libraries: of failed downloads, with their responses, and of a store that is unavailable. The
garbage collector itself waits for 10,000 new objects, but not for 100 MB in a few of them.
"""


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


OWN = Path(__file__).parent


def hidden_package() -> str | None:
    """Return the folder of the package ``crawler`` of a project or egg if this package hides it, else None."""
    config = closest_scrapy_cfg()
    eggs = [entry for entry in sys.path if entry.endswith(".egg")]
    for entry in [*([str(Path(config).parent)] if config else []), *eggs]:
        found = PathFinder.find_spec(OWN.name, [entry])
        locations = list(found.submodule_search_locations or ()) if found else []
        # Another copy of this package, such as a clone, has the same spiders, so it may be hidden.
        is_own = _has("reading", locations)
        is_package = found is not None and found.origin is not None  # not just a folder with that name
        if (is_package or _has("settings", locations)) and not is_own:
            return locations[0]
    return None


def _has(module: str, locations: list[str]) -> bool:
    return PathFinder.find_spec(f"{OWN.name}.{module}", locations) is not None


def refuse_hidden_package() -> None:
    """End the process with one sentence and exit code 2 if this package hides the package of the project.

    No caller could handle an exception: Scrapy reads the settings before it knows the command.
    """
    if (hidden := hidden_package()) is not None:
        print(
            f"The package crawler of social-retail-crawler in {OWN} hides the package crawler in {hidden}: "
            "install social-retail-crawler in an environment of its own.",
            file=sys.stderr,
        )
        sys.exit(2)
