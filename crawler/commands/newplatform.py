"""``scrapy newplatform``: writes the files of a new platform, which works with its own simulated site.

A developer then changes the files for the real site.
"""

from __future__ import annotations

import argparse
import keyword
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any, ClassVar

from scrapy.exceptions import UsageError

import crawler
from crawler.configuration.command import CheckedCommand

# Names that are valid in a host name, and so short that no generated line is too long.
NAME = re.compile(r"[a-z][a-z0-9]{0,19}")
PACKAGES = ("platforms", "spiders", "sandbox")
CHECKOUT = ("pyproject.toml", "docs/platforms", "tests/platforms")
OWN_IMPORTS = re.compile(r"(?:^from crawler\..*\n)+", re.MULTILINE)


class Command(CheckedCommand):
    """Exit codes: 0 if all files were written, 2 for wrong usage. No file is written then."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "<name>"

    def short_desc(self) -> str:
        return "Write a new platform: package, spider, sandbox, tests and documentation"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("Expected one platform name: scrapy newplatform <name>")
        (name,) = args
        root = Path(crawler.__file__).parents[1]
        if not all((root / path).exists() for path in CHECKOUT):
            raise UsageError(f"{root} contains an installed package: run this command in a checkout of the project.")
        if not NAME.fullmatch(name) or keyword.iskeyword(name):
            raise UsageError(
                f"{name!r} is not a platform name: use 1 to 20 lower-case letters and digits, starting with a letter."
            )
        new = platform_files(name)
        taken = [str(root / path) for path in new if (root / path).exists()] + list(_modules(name))
        if taken:
            raise UsageError(f"{name!r} is taken: {taken[0]} exists. Choose another name.")
        for path, text in new.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with (root / path).open("x", encoding="utf-8") as file:
                file.write(text)
            print(path)
        print(f"\nTry it: scripts/test -k {name}; scrapy crawl {name} -a item_id=item-1 -s SANDBOX=1 -O -:jsonlines")


def platform_files(name: str) -> dict[str, str]:
    """Return the files of a new platform: path in the project -> text."""
    words = {"name": name, "Name": name.capitalize()}
    return {
        path.removesuffix(".tmpl").replace("NAME", name): _sorted_imports(Template(text).substitute(words))
        for path, text in _templates(files("crawler.commands") / "templates")
    }


def _templates(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(".tmpl"):
            yield above + entry.name, entry.read_text(encoding="utf-8")


def _sorted_imports(text: str) -> str:
    """Sort the imports from ``crawler`` in a file's text, because their order depends on the platform's name."""
    return OWN_IMPORTS.sub(lambda block: "".join(sorted(block[0].splitlines(keepends=True))), text)


def _modules(name: str) -> Iterator[str]:
    """Yield the paths of existing modules with this name, such as ``crawler/platforms/page.py`` for ``page``."""
    for package in PACKAGES:
        found = find_spec(f"crawler.{package}.{name}")
        # A spec without an origin is a folder without code, such as a folder with only a cache.
        if found is not None and found.origin is not None:
            yield found.origin
