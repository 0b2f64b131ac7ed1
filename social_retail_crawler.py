"""The project's commands where Scrapy does not use this project's settings.

The package ``crawler`` may be that of another project here, so this module imports nothing of it. Scrapy imports the
module for each of its commands, in every project of the environment in which this project is installed.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from scrapy.commands import ScrapyCommand

WRONG_USE = 2
"""As in ``crawler/configuration/command.py``."""


class OutsideProject(ScrapyCommand):
    """Explains where to run a command of the project. In the project's folder, the command itself replaces it.

    The entry points ``scrapy.commands`` in ``pyproject.toml`` name it for each command. Without them, Scrapy would
    answer "Unknown command".
    """

    requires_crawler_process = False

    def short_desc(self) -> str:
        return "A command of social-retail-crawler: run it in the folder of this project"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        print(explanation(), file=sys.stderr)
        self.exitcode = WRONG_USE


def explanation() -> str:
    """Return a sentence that says why the command does not work here."""
    found = find_spec("crawler")
    own = Path(__file__).with_name("crawler") / "__init__.py"
    if found is None or found.origin is None or Path(found.origin).resolve() == own.resolve():
        return (
            "This command works only in the project: run it in the folder with the project's scrapy.cfg, "
            "or set SCRAPY_SETTINGS_MODULE=crawler.settings."
        )
    return (
        f"The package crawler in {Path(found.origin).parent} hides the package crawler of social-retail-crawler: "
        "install social-retail-crawler in an environment of its own."
    )
