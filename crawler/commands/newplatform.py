"""``scrapy newplatform``: writes the files of a new platform, which works with its own simulated site."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, ClassVar

from scrapy.exceptions import UsageError

from crawler.commands import scaffold
from crawler.configuration.command import CheckedCommand

PACKAGES = ("platforms", "spiders", "sandbox")
THING = "item"
"""The entity that a record of the example describes."""


class Command(CheckedCommand):
    """Write a new platform: package, spider, sandbox, tests and documentation.

    Exit codes: 0 for success, 2 for wrong use, before any file is written. Also 2 if the files were written, but a
    program that formats or documents them has failed.
    """

    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}
    arguments = "<name>"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("Expected one platform name: scrapy newplatform <name>")
        (name,) = args
        root = scaffold.checkout()
        scaffold.check_name(name, "platform")
        words = platform_words(name)
        new = platform_files(words)
        taken = [str(root / path) for path in new if (root / path).exists()] + list(_modules(name))
        if taken:
            raise UsageError(f"{name!r} is taken: {taken[0]} exists. Choose another name.")
        scaffold.write(root, new, scaffold.with_scraper(root, words), words)


def platform_words(name: str) -> dict[str, str]:
    """Return the replacements for the words in the templates of a new platform."""
    modules = {module: module for module in ("pages", "schema", "payload", "requests")}
    return scaffold.words(name, THING, f"https://{name}.example", source=name, **modules)


def platform_files(words: dict[str, str]) -> scaffold.Files:
    """Return the files of a new platform, whose only scraper also takes links."""
    return scaffold.rendered("scraper", words) | scaffold.rendered("platform", words)


def _modules(name: str) -> Iterator[str]:
    """Yield the paths of existing modules with this name, such as ``crawler/platforms/page.py`` for ``page``."""
    for package in PACKAGES:
        found = find_spec(f"crawler.{package}.{name}")
        # A spec without an origin is a folder without code, such as a folder with only a cache.
        if found is not None and found.origin is not None:
            yield found.origin
