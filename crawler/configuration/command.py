"""The base class of the project's commands, which checks the settings before the command starts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

from scrapy.addons import AddonManager
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawler.commands.exit_codes import RUN_FAILED, WRONG_USE
from crawler.configuration.settings_check import check_settings
from crawler.settings import Settings

if TYPE_CHECKING:
    from scrapy.crawler import CrawlerProcessBase
    from scrapy.settings import Settings as ScrapySettings


class CheckedCommand(ScrapyCommand):
    """A command that checks the settings before it logs anything, opens files or sends requests.

    If a setting is wrong, the command prints one sentence and exits with ``WRONG_USE``. A subclass raises
    ``UsageError`` for wrong arguments, with the same result.

    The docstring of a subclass is the command's help. Its first line is the summary in Scrapy's list of commands.
    """

    requires_project = True
    requires_crawler_process = False
    arguments: ClassVar[str] = ""
    """The command's arguments, as in a usage line. Empty: arguments are refused."""
    settings: ScrapySettings
    """The settings of the project. Scrapy sets this attribute before it calls the command."""
    crawler_process: CrawlerProcessBase
    """The process that runs crawlers. Scrapy sets this attribute if ``requires_crawler_process`` is true."""

    def syntax(self) -> str:
        return f"[options] {self.arguments}"

    def short_desc(self) -> str:
        return str(self.__doc__).partition("\n")[0].removesuffix(".")

    def long_desc(self) -> str:
        return " ".join(str(self.__doc__).replace("``", "").split())

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.error = self._refuse  # type: ignore[method-assign]  # Scrapy calls it for UsageError

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        if args and not self.arguments:
            raise UsageError(f"Unexpected arguments: {' '.join(args)}.")
        if Settings.model_fields.keys() - self.settings.keys():  # the command runs in another project, with the add-on
            AddonManager.load_pre_crawler_settings(self.settings)
        with wrong_use(ValueError):
            check_settings(self.settings)

    def wrong_arguments(self) -> UsageError:
        """Return the error for arguments that do not match ``arguments``."""
        return UsageError(f"Usage: scrapy {type(self).__module__.rpartition('.')[2]} {self.arguments}")

    def fail(self, problem: object, exit_code: int = RUN_FAILED) -> None:
        """Print a message or an error to stderr, and set the exit code. The command still has to return."""
        print(problem, file=sys.stderr)
        self.exitcode = exit_code

    def _refuse(self, message: str) -> NoReturn:
        """Print a message as a sentence to stderr, and to the log file if ``LOG_FILE`` is set. Exit with ``WRONG_USE``.

        The log file has the message, too, because Scrapyd shows its users nothing else.
        """
        sentence = message if message.endswith((".", "?")) else f"{message}."
        print(sentence, file=sys.stderr)
        if self.settings["LOG_FILE"]:
            with Path(self.settings["LOG_FILE"]).open("a", encoding="utf-8") as log:
                print(sentence, file=log)
        sys.exit(WRONG_USE)


@contextmanager
def wrong_use(*errors: type[Exception]) -> Iterator[None]:
    """Raise ``UsageError`` with the message of one of these errors, so that the command exits with ``WRONG_USE``."""
    try:
        yield
    except errors as error:
        raise UsageError(str(error)) from None
