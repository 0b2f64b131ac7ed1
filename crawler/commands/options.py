"""Options and arguments of several commands."""

from __future__ import annotations

import argparse

from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict

from crawler.registry import find_scraper, scraper_names
from crawler.targets.target import Scraper


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
