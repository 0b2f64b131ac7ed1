"""The project's commands outside of the project's folder, where Scrapy does not know the project's settings."""

from __future__ import annotations

import argparse
import sys

from scrapy.commands import ScrapyCommand

from crawler.exit_codes import WRONG_USE


class OutsideProject(ScrapyCommand):
    """Explains where to run a command of the project. In the project's folder, the command itself replaces it.

    The entry points ``scrapy.commands`` in ``pyproject.toml`` name it for each command. Without them, Scrapy would
    answer "Unknown command".
    """

    requires_crawler_process = False

    def short_desc(self) -> str:
        return "A command of the project 'crawler': run it in the project's folder"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        print(
            "This command works only in the project: run it in the folder with the project's scrapy.cfg, "
            "or set SCRAPY_SETTINGS_MODULE=crawler.settings.",
            file=sys.stderr,
        )
        self.exitcode = WRONG_USE
