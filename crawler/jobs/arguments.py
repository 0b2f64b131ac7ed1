"""Checks the spider arguments of jobs and crawls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from crawler.platforms.model import validation_details
from crawler.registry import find_scraper, spider
from crawler.spiders.base import PlatformSpider

if TYPE_CHECKING:
    from scrapy import Spider

    from crawler.jobs.options import JobOptions


def argument_problems(spider: type[Spider], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the message for each invalid ``-a`` argument by its name. The name is "" if several arguments conflict."""
    if not issubclass(spider, PlatformSpider):
        return {}
    try:
        spider.arguments.model_validate(dict(arguments))
    except ValidationError as error:
        return problems_of(error)
    return {}


def problems_of(error: ValidationError) -> dict[str, str]:
    """Return the message for each invalid argument by its name. The name is "" if several arguments conflict."""
    return {".".join(map(str, each["loc"])): each["msg"] for each in validation_details(error)}


def problem_of(options: JobOptions, scrapers: Iterable[str]) -> str | None:
    """Return the first problem that one of a job's scrapers has with the job's options. None: there is no problem.

    For example, a scraper's spider does not have an option, or has no listing that is sorted by time for ``since``.
    """
    for scraper in map(find_scraper, scrapers):
        of_platform = spider(scraper.platform)
        problems = list(argument_problems(of_platform, options.arguments).values())
        if options.since and not any(each.entries for each in of_platform.scrapers):
            problems.append("since requires a listing that is sorted by newest first")
        if problems:
            return f"{scraper.name}: {problems[0]}"
    return None
