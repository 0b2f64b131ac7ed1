"""``MONITORS``: counts the fields and outcomes of a batch run. When the run ends, compares it with the last runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import structlog
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object
from scrapy.utils.project import data_path

from crawler.monitoring.compare import Report, compare
from crawler.monitoring.run import History, Run
from crawler.targets.reporter import target_completed

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)


class Monitors:
    """Extension that counts outcomes and runs the Spidermon suite at the end. Disabled in the endpoint's crawlers."""

    def __init__(self, crawler: Crawler, suite: type[Any]) -> None:
        self.crawler = crawler
        self.suite = suite
        assert crawler.spider is not None
        self.run = Run(spider=crawler.spider.name)
        folder = _folder(crawler.settings)
        # The runs of the sandbox must not be compared with real runs.
        self.history = History(folder / "sandbox" if crawler.settings.getbool("SANDBOX") else folder, self.run.spider)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Monitors:
        """Enable the monitors if ``MONITORS`` is set.

        Raises:
            NotConfigured: ``MONITORS`` is not set, or this is a crawler of the endpoint.
            RuntimeError: the extra or the folder is missing. The command ends with exit code 1.
        """
        if not crawler.settings.getbool("MONITORS") or cast("PlatformSpider", crawler.spider).on_demand:
            raise NotConfigured
        try:
            suite = load_object(crawler.settings["MONITORS_SUITE"])
        except ImportError as error:
            raise RuntimeError(f"MONITORS needs the extra 'monitors': {error}") from error
        extension = cls(crawler, suite)
        crawler.signals.connect(extension.run.add_outcome, target_completed)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        # Targets that were in flight when the spider was closed are completed before this signal.
        crawler.signals.connect(extension.engine_stopped, signals.engine_stopped)
        return extension

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """Record the reason for which the spider was closed."""
        self.run.reason = reason

    def engine_stopped(self) -> None:
        """Compare the run with the last runs, and run the Spidermon suite, which writes the reports."""
        settings = self.crawler.settings
        last = self.history.last(settings.getint("MONITORS_RUNS"))
        self._run_suite(compare(self.run, last, max_failed=settings.getfloat("MONITORS_MAX_FAILED")))

    def _run_suite(self, report: Report) -> None:
        from spidermon.runners import MonitorRunner  # noqa: PLC0415  # needs the extra "monitors"

        assert self.crawler.stats is not None
        runner = MonitorRunner()
        # ``report`` and ``history`` are for ``crawler.monitoring.suite``; Spidermon's own actions need the others.
        runner.run(
            self.suite(crawler=self.crawler),
            stats=self.crawler.stats.get_stats(),
            stats_history=[],
            crawler=self.crawler,
            spider=self.crawler.spider,
            sc_spider_name=self.run.spider,
            job=None,
            meta={},
            report=report,
            history=self.history,
        )
        failed = [result.monitor.name for result in runner.result.monitors_failed_results]
        log = logger.error if failed else logger.info
        facts = {"headline": report.headline, "compared_with": len(report.last), **runner.data.meta}
        log("monitors_done", ok=not failed, **facts)
        results = runner.result
        for result in (
            *results.monitors_finished_action_results,
            *results.monitors_passed_action_results,
            *results.monitors_failed_action_results,
        ):
            if result.error:
                logger.error("monitor_action_failed", action=result.action.name, error=result.error)


def _folder(settings: BaseSettings) -> Path:
    """Return the folder for runs and reports, which is created if it is missing.

    Raises:
        RuntimeError: there is no folder, or it cannot be written.
    """
    try:
        folder = Path(settings["MONITORS_DIR"] or data_path("monitors"))
        folder.mkdir(parents=True, exist_ok=True)
    except NotConfigured:  # Scrapy would disable the extension, and crawl without monitors
        raise RuntimeError(
            "MONITORS needs a folder for its reports: set MONITORS_DIR, or run the command in the folder of scrapy.cfg."
        ) from None
    except OSError as error:
        raise RuntimeError(
            f"MONITORS cannot write to its folder {folder}: {error.strerror}. Set MONITORS_DIR."
        ) from error
    return folder
