"""The base class of the project's commands, which checks the settings before the command starts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from scrapy.addons import AddonManager
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawler.commands.exit_codes import WRONG_USE
from crawler.configuration.settings_check import check_settings
from crawler.settings import Settings

if TYPE_CHECKING:
    from scrapy.crawler import CrawlerProcessBase
    from scrapy.settings import Settings as ScrapySettings


class CheckedCommand(ScrapyCommand):
    """A command that checks the settings before it logs anything, opens files or sends requests.

    If a setting is wrong, it prints one sentence and exits with ``WRONG_USE``. It does the same if a subclass raises
    ``UsageError``, as it must for wrong arguments.
    """

    requires_project = True
    requires_crawler_process = False
    settings: ScrapySettings
    """Scrapy sets it before it calls the command."""
    crawler_process: CrawlerProcessBase
    """Scrapy sets it if ``requires_crawler_process`` is true."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.error = self._refuse  # type: ignore[method-assign]  # Scrapy calls it for UsageError; it prints no usage

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        if Settings.model_fields.keys() - self.settings.keys():  # run in another project, which has the add-on
            AddonManager.load_pre_crawler_settings(self.settings)
        try:
            check_settings(self.settings)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def _refuse(self, message: str) -> NoReturn:
        """Print a message as a sentence to stderr, and to the log file if ``LOG_FILE`` is set. Exit with ``WRONG_USE``.

        Scrapyd shows its users only the log file.
        """
        sentence = message if message.endswith((".", "?")) else f"{message}."
        print(sentence, file=sys.stderr)
        if self.settings["LOG_FILE"]:
            with Path(self.settings["LOG_FILE"]).open("a", encoding="utf-8") as log:
                print(sentence, file=log)
        sys.exit(WRONG_USE)
