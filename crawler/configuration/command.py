"""The base class of the commands of the project, their exit codes, the check of settings, and shared options."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

from pydantic import ValidationError
from scrapy.addons import AddonManager
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings, default_settings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.conf import arglist_to_dict

from crawler.configuration.names import nearest
from crawler.downloads.egress_setting import check_egresses
from crawler.platforms import platforms
from crawler.platforms.model import first_problem
from crawler.platforms.requests import check_platform_ids
from crawler.registry import find_scraper, scraper_names, spider
from crawler.settings import Settings
from crawler.targets.target import Scraper

if TYPE_CHECKING:
    from scrapy.crawler import CrawlerProcessBase
    from scrapy.settings import Settings as ScrapySettings


class Exit:
    """The exit codes of the project's commands."""

    ALL_HAVE_DATA = 0
    """Every target has data."""
    RUN_FAILED = 1
    """The run itself failed, so that targets have no outcome, or lines are missing from the output."""
    WRONG_USE = 2
    """An option, argument or setting is wrong. No feed was opened, and no request was sent to a platform."""
    SOME_FAILED = 4
    """Some targets failed, rows of a target could not be read, or a listing lacks rows that the platform would serve.
    """


class CheckedCommand(ScrapyCommand):
    """A command that checks the settings before it logs anything, opens files or sends requests.

    If a setting is wrong, the command prints one sentence and exits with ``Exit.WRONG_USE``. A subclass raises
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

    def fail(self, problem: object, exit_code: int = Exit.RUN_FAILED) -> None:
        """Print a message or an error to stderr, and set the exit code. The command still has to return."""
        print(problem, file=sys.stderr)
        self.exitcode = exit_code

    def _refuse(self, message: str) -> NoReturn:
        """Print a message as a sentence to stderr, and to the log file if ``LOG_FILE`` is set. Exit.

        The log file has the message, too, because Scrapyd shows its users nothing else.
        """
        sentence = message if message.endswith((".", "?")) else f"{message}."
        print(sentence, file=sys.stderr)
        if self.settings["LOG_FILE"]:
            with Path(self.settings["LOG_FILE"]).open("a", encoding="utf-8") as log:
                print(sentence, file=log)
        sys.exit(Exit.WRONG_USE)


@contextmanager
def wrong_use(*errors: type[Exception]) -> Iterator[None]:
    """Raise ``UsageError`` with the message of one of these errors, so that the command ends with ``WRONG_USE``."""
    try:
        yield
    except errors as error:
        raise UsageError(str(error)) from None


ORIGIN = re.compile(r"https?://[^/?#\s]+")
PREFIX = "CRAWLER_"
"""The prefix of the environment variables that override settings."""
SERVICE_LINK = re.compile(
    r".+_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)
"""Matches the variables that Kubernetes sets in each pod for each service, such as ``CRAWLER_ENDPOINT_PORT`` for
``crawler-endpoint``."""
SIMILARITY = 0.87
"""An environment variable counts as misspelled if its similarity (0 to 1) to the name of a setting is at least this.
Settings of this project's dependencies are less similar: ``ZYTE_API_ETH_KEY`` and ``ZYTE_API_KEY`` have 0.86."""


def check_settings(settings: BaseSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Check the names of all settings. Check the values of those in ``Settings``, and convert them to their types.

    Raises:
        ValueError: a setting is wrong. The message names the setting and what is wrong with it, and ends with ``.`` or
            ``?``.
    """
    if problem := misspelled_name(settings, environment):
        raise ValueError(problem)
    given = {name: settings[name] for name in Settings.model_fields if name in settings}
    try:
        checked = Settings.model_validate(given)
    except ValidationError as error:
        raise ValueError(f"{first_problem(error)}.") from None
    for name in given:
        settings.set(name, getattr(checked, name), priority=settings.getpriority(name) or 0)
    for check in CHECKS:
        check(settings)


def misspelled_name(settings: BaseSettings, environment: Mapping[str, str]) -> str | None:
    """Return a sentence about the first setting whose name is misspelled. None: no name is misspelled.

    An environment variable with the prefix ``CRAWLER_`` counts as misspelled if its name is similar to a setting of
    this project or of Scrapy. A setting from another place (such as ``-s``) may belong to the user's project, so it
    counts as misspelled only if its name differs from a field of ``Settings`` by one letter, or by two swapped ones.
    """
    known = {*Settings.model_fields, *filter(str.isupper, vars(default_settings))}
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX)
        if name == variable or name in known or SERVICE_LINK.fullmatch(variable):
            continue
        if near := nearest(name, known, SIMILARITY):
            return f"{variable}: no setting is called {name}; did you mean {PREFIX}{near}?"
    for name in sorted(settings.keys() - known):
        if similar := [each for each in Settings.model_fields if _differ_in_one_letter(name, each)]:
            return f"{name}: no setting is called {name}; did you mean {similar[0]}?"
    return None


def _differ_in_one_letter(one: str, other: str) -> bool:
    """Whether two names differ by one added letter, one replaced letter, or two swapped neighbouring letters."""
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[same:], other[same:]
    swapped = one[:2] == other[1::-1] and one[2:] == other[2:]
    return swapped or one[1:] == other[1:] or one[1:] == other or one == other[1:]


def _check_launch_options(settings: BaseSettings) -> None:
    """Refuse a proxy of the browser alone, which would bypass the egress of the target."""
    if "proxy" in settings["PLAYWRIGHT_LAUNCH_OPTIONS"]:
        raise ValueError("PLAYWRIGHT_LAUNCH_OPTIONS: remove proxy. The browser uses the proxies in EGRESSES.")


def _check_names(settings: BaseSettings) -> None:
    """Check the names of platforms in settings, and that platforms in ``BROWSER_FALLBACK`` allow it."""
    if settings["PLATFORM_BUDGETS"].keys() - platforms().keys():
        known = [*platforms(), *get_spider_loader(settings).list()]
        _check_known("PLATFORM_BUDGETS", "platform", settings["PLATFORM_BUDGETS"], known)
    named = [key for key in settings["PLATFORM_ORIGINS"] if not ORIGIN.fullmatch(key)]
    _check_known("PLATFORM_ORIGINS", "platform", named, platforms())
    _check_known("BROWSER_FALLBACK", "platform", settings["BROWSER_FALLBACK"], platforms())
    for name in settings["BROWSER_FALLBACK"]:
        if not spider(name).can_use_browser:
            raise ValueError(f"BROWSER_FALLBACK: blocked pages of {name} cannot be loaded in the browser.")


def _check_known(setting: str, kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = list(dict.fromkeys(known))
    if unknown := sorted({*names} - {*known}):
        raise ValueError(f"{setting}: no {kind} is called {unknown[0]}; use {', '.join(known)}.")


def _check_origins(settings: BaseSettings) -> None:
    for name, value in settings["PLATFORM_ORIGINS"].items():
        if not (isinstance(value, str) and ORIGIN.fullmatch(value)):
            raise ValueError(
                f'PLATFORM_ORIGINS: {name}: expected an origin such as "http://127.0.0.1:8000", not {value!r}.'
            )


CHECKS = (_check_launch_options, _check_names, _check_origins, check_platform_ids, check_egresses)
"""The checks of values that depend on other settings, on platforms or on files."""


def add_values(parser: argparse.ArgumentParser, dest: str, meaning: str) -> None:
    """Add the option ``-a``, which may be given several times. ``dest``: the attribute that contains its values."""
    parser.add_argument("-a", dest=dest, action="append", default=[], metavar="NAME=VALUE", help=meaning)


def named_values(given: list[str], what: str) -> dict[str, str]:
    """Return the values of the options ``-a`` by their names. ``what``: what the error message calls them.

    Raises:
        UsageError: an option is not ``name=value``.
    """
    try:
        return dict(arglist_to_dict(given))
    except ValueError:
        raise UsageError(f"{what} must have the form -a name=value.") from None


def scraper_named(name: str) -> Scraper:
    """Return a scraper by its name or alias.

    Raises:
        UsageError: there is no such scraper.
    """
    try:
        return find_scraper(name)
    except KeyError:
        raise UsageError(f"Unknown scraper {name!r}; known scrapers are {', '.join(scraper_names())}.") from None


def at_least_one(text: str) -> int:
    """Parse the value of an option that is a positive number."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, not {number}")
    return number
