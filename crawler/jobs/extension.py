"""What jobs add to the arguments of a crawl: ``-a job=NAME``, which makes it a worker of a job, and their check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import ValidationError
from scrapy import signals
from scrapy.exceptions import CloseSpider

from crawler.errors import StoreUnavailable
from crawler.jobs import open_jobs
from crawler.jobs.options import LimitedOptions
from crawler.outputs.feeds import FAILED
from crawler.platforms.model import validation_details
from crawler.registry import find_scraper, spider
from crawler.targets.arguments import SinceDate

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.jobs.job import Account, Job
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.options import JobOptions
    from crawler.jobs.source import JobSource
    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)


class JobWorker:
    """Extension that makes the targets of a job the spider's source of targets. Does nothing without ``-a job=``."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.source: JobSource | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> JobWorker:
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.engine_stopped, signals.engine_stopped)
        return extension

    async def spider_opened(self, spider: PlatformSpider) -> None:
        """Make the job the spider's source of targets, and apply the spider arguments that the job stores.

        Raises:
            CloseSpider: the job does not exist, is loading or cancelled, was made with a different value of SANDBOX, or
                the store is unavailable.
            UsageError: the store cannot be used here, or PostgreSQL needs an extra that is not installed.
        """
        if spider.args.job is None:
            return
        from crawler.jobs.job import ACCOUNT  # noqa: PLC0415  # imported late: only crawls of a job need it
        from crawler.jobs.source import JobSource  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

        account: Account | None = self.crawler.settings.get(ACCOUNT)
        jobs = open_jobs(self.crawler.settings)
        try:
            job = await self._find(jobs, spider.args.job, spider.args.run, account)
        except CloseSpider:
            await jobs.close()
            raise
        spider.args = type(spider.args)(**job.options.arguments).model_copy(update={"job": job.name, "run": job.run})
        spider.tracker.leave_unfinished = True
        spider.source = self.source = JobSource(jobs, job, spider, account)
        if since := spider.args.since:
            spider.since = self.source.seen if since == "last" else SinceDate(date.fromisoformat(since))

    async def _find(self, jobs: Jobs, name: str, run: int | None, account: Account | None) -> Job:
        try:
            job = await jobs.find(name, "" if account is None else account.owner, run)
        except StoreUnavailable as error:
            raise CloseSpider(f"the store of jobs is unavailable: {error}") from error
        if job is None or job.state in {"loading", "cancelled"}:
            state = "does not exist" if job is None else f"is {job.state}"
            raise CloseSpider(f"the job {name!r} {state}: scrapy jobs list shows the jobs")
        if account is None and job.options.sandbox != self.crawler.settings.getbool("SANDBOX"):
            raise CloseSpider(f"the job {name!r} was made with a different value of SANDBOX")
        return job

    async def engine_stopped(self) -> None:
        """Store the last outcomes, and release the claimed targets without an outcome."""
        if self.source is None:
            return
        from crawler.jobs.worker import WorkerStoppedError  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

        try:
            await self.source.close()
        except WorkerStoppedError as error:
            assert self.crawler.stats is not None
            self.crawler.stats.inc_value(FAILED.format("job"))
            logger.error("worker_stopped", error=str(error))  # noqa: TRY400  # the message is a sentence


def argument_problems(spider: type[PlatformSpider], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the message for each invalid ``-a`` argument by its name. The name is "" if several arguments conflict."""
    try:
        spider.arguments.model_validate(dict(arguments))
    except ValidationError as error:
        return problems_of(error)
    return {}


def problems_of(error: ValidationError) -> dict[str, str]:
    """Return the message for each invalid argument by its name. The name is "" if several arguments conflict."""
    return {".".join(map(str, each["loc"])): each["msg"] for each in validation_details(error)}


def problem_of(options: JobOptions, scrapers: Iterable[str]) -> tuple[str, str] | None:
    """Return the name of the first option that is wrong for one of a job's scrapers, and why it is wrong.

    None: the options are right for all scrapers.

    For example, a scraper's spider does not have the option, or has no listing that is sorted by time for ``since``.
    """
    for scraper in map(find_scraper, scrapers):
        of_platform = spider(scraper.platform)
        known = [name for name in LimitedOptions.model_fields if name in of_platform.arguments.model_fields]
        if unknown := [name for name in options.arguments if name not in known]:
            return unknown[0], f"{scraper.name} has no option {unknown[0]}; its options are {', '.join(known)}"
        problems = argument_problems(of_platform, options.arguments)
        if options.since and not any(each.entries for each in of_platform.scrapers):
            problems.setdefault("since", "since requires a listing that is sorted by newest first")
        if problems:
            name, problem = next(iter(problems.items()))
            return name or next(iter(options.arguments)), f"{scraper.name}: {problem}"
    return None
