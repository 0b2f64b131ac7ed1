"""The parts of one process of the endpoint, which its routes and its periodic tasks use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scrapy.crawler import AsyncCrawlerRunner

from crawler.downloads.shared_state import SharedState, platform_facts
from crawler.jobs import store_location
from crawler.jobs.crawls import JobCrawls
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Store
from crawler.service import metrics
from crawler.service.jobs.client_jobs import ClientJobs
from crawler.service.jobs.runs import Runs
from crawler.service.limits import KeyLimits
from crawler.service.open_crawlers import OVERLAY, OpenCrawlers
from crawler.service.usage import Usage, account_settings
from crawler.service.webhooks import Webhooks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import Settings

    from crawler.jobs.job import Job
    from crawler.service.keys import Keys
    from crawler.service.responses import StaticContent


def listings(jobs: Jobs, settings: Settings, shared: SharedState) -> JobCrawls:
    """Return the loop for clients' jobs with spider arguments (``max_pages``, ``exhaustive``, ``since``).

    The spiders of such jobs keep state between the pages of a listing, so each job has a crawl of its own. The
    downloads of synchronous calls have priority over those of these crawls.
    """
    sandbox, crawl = settings.getbool("SANDBOX"), settings.copy()
    crawl.setdict(OVERLAY, priority="cmdline")

    def is_wanted(job: Job) -> bool:
        return bool(job.owner) and job.whole_roots and job.options.sandbox == sandbox

    account_of, arguments = partial(account_settings, waits=False), {"shared": shared}
    return JobCrawls(jobs, AsyncCrawlerRunner(crawl), is_wanted, account_of, arguments, waits=False)


class Parts:
    """Makes the parts from the settings."""

    def __init__(self, settings: Settings, keys: Keys, pages: Mapping[str, StaticContent]) -> None:
        """``pages``: path -> another page to serve, such as the console's."""
        self.settings = settings.copy()
        extensions = self.settings.getdict("EXTENSIONS") | metrics.prepare()
        self.settings.set("EXTENSIONS", extensions, priority="cmdline")
        self.store = Store(store_location(self.settings))
        self.keys = keys
        self.pages = pages
        self.usage = Usage(self.store)
        self.shared = SharedState()
        self.crawlers = OpenCrawlers(self.settings, self.shared)
        for crawler in self.crawlers.of.values():
            crawler.lanes.on_completed = metrics.count_outcome
        self.limits = KeyLimits(self.settings, platform_facts(self.shared, self.settings))
        self.service_url = (self.settings["SERVICE_URL"] or "").rstrip("/")
        """The setting ``SERVICE_URL``. "": links are paths."""
        jobs = Jobs(store_location(self.settings))
        lease, exits = self.settings.getfloat("JOB_LEASE"), self.settings.getint("JOB_EXITS")
        self.runs = Runs(jobs, self.crawlers, lease, exits)
        self.listings = listings(jobs, self.settings, self.shared)
        self.jobs = ClientJobs(jobs, self.runs, self.settings)
        self.webhooks = Webhooks(self.store, keys, jobs, self.service_url)
