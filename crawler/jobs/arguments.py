"""The spider arguments of jobs: which of them a job stores, and which are valid for its scrapers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic import ValidationError

from crawler.platforms.model import validation_details
from crawler.registry import find_scraper, spider
from crawler.spiders.base import PlatformSpider

if TYPE_CHECKING:
    from scrapy import Spider

LIMITS = ("max_requests",)
"""The spider arguments that are limits. When a limit is reached, the job is paused, until it gets a higher limit."""
LISTING = ("max_pages", "exhaustive", "since")
"""The spider arguments that decide which pages of a listing are read."""
OF_JOBS = (*LISTING, *LIMITS)
"""The spider arguments that a job keeps, because they change its records."""


def needs_whole_roots(arguments: Mapping[str, str]) -> bool:
    """Whether the same worker must scrape a target and all its follow-ups, because its spider keeps state."""
    return "exhaustive" in arguments or arguments.get("since") == "last"


def argument_problems(spider: type[Spider], arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the message for each invalid ``-a`` argument by its name. The name is "" if several arguments conflict."""
    if not issubclass(spider, PlatformSpider):
        return {}
    try:
        spider.arguments.model_validate(dict(arguments))
    except ValidationError as error:
        return {".".join(map(str, each["loc"])): each["msg"] for each in validation_details(error)}
    return {}


def problem_of(arguments: Mapping[str, str], scrapers: Iterable[str]) -> str | None:
    """Return the first problem that one of a job's scrapers has with the job's arguments. None: there is no problem.

    For example, a scraper's spider does not have an argument, or has no listing that is sorted by time for ``since``.
    """
    for scraper in map(find_scraper, scrapers):
        of_platform = spider(scraper.platform)
        problems = list(argument_problems(of_platform, arguments).values())
        if "since" in arguments and not any(each.entries for each in of_platform.scrapers):
            problems.append("since requires a listing that is sorted by newest first")
        if problems:
            return f"{scraper.name}: {problems[0]}"
    return None
