"""Detects that this package hides a package ``crawler`` of another project.

``scrapy`` searches the installed packages before the project's folder, and Scrapyd searches them before the project's
egg. If social-retail-crawler is installed in the same environment, a project whose own package is called ``crawler``
would get the settings and spiders of this package.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

from scrapy.utils.conf import closest_scrapy_cfg

OWN = Path(__file__).parents[1]


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
