"""Reports the outcomes of targets: to the stats, the log, the receivers of ``target_completed``, and the source."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import structlog
from scrapy.crawler import Crawler

from crawler.targets.sources import TargetSource
from crawler.targets.target import Outcome, Target
from crawler.targets.warning import count_warnings

logger = structlog.get_logger(__name__)

target_completed = object()
"""Signal: a target has its outcome. Arguments: ``outcome``, ``spider``."""

PARTIAL = "targets/partial"
"""Stat: number of targets with the outcome OK and a warning. Other stats of ``targets/`` end with an outcome code."""
REPEATED = "rows/repeated"
"""Stat: number of rows of targets files that repeat the target of an earlier row, which was fetched only once."""
REPEATS_PER_TURN = 50
"""Maximum number of outcomes of repeating rows that are reported in one turn of the event loop."""


def outcomes_by_code(stats: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of completed targets by code, from the crawl's stats.

    >>> outcomes_by_code({"targets/OK": 2, "targets/partial": 1, "item_scraped_count": 2})
    {'OK': 2}
    """
    counts = {key.removeprefix("targets/"): n for key, n in sorted(stats.items()) if key.startswith("targets/")}
    counts.pop("partial", None)
    return counts


class OutcomeReporter:
    """Reports outcomes. If the source ``stores`` outcomes, an outcome is reported only after it was stored.

    ``on_reported``: called after delayed reports, so that the crawl can end when no report is pending.
    """

    def __init__(self, crawler: Crawler, on_reported: Callable[[], None]) -> None:
        assert crawler.stats is not None
        self.crawler, self.stats = crawler, crawler.stats
        self.source = TargetSource()
        """The source of the crawl's targets. The tracker sets it when it begins to take targets."""
        self._on_reported = on_reported
        self._unconfirmed: set[asyncio.Task[None]] = set()
        """Tasks that report an outcome after the source has stored it."""
        self._repeats: deque[Iterator[Outcome]] = deque()
        """The outcomes of repeating rows that are not reported yet."""

    @property
    def is_pending(self) -> bool:
        """Whether an outcome is not reported yet."""
        return bool(self._unconfirmed or self._repeats)

    def close(self) -> None:
        """Cancel the reports that wait for the source."""
        for task in self._unconfirmed:
            task.cancel()

    def flush(self) -> None:
        """Report the outcomes of all repeating rows at once."""
        self._announce_repeats(sys.maxsize)

    def report(self, outcome: Outcome) -> None:
        """Report an outcome, also for the rows that repeat its target."""
        if self.source.stores:
            task = asyncio.create_task(self._report_if_stored(outcome))
            self._unconfirmed.add(task)
            task.add_done_callback(self._confirmed)
            return
        self._announce(outcome)
        if repeats := self.source.repeats_of(outcome):
            self._repeats.append(iter(repeats))
            if len(self._repeats) == 1:
                self._announce_repeats(REPEATS_PER_TURN)

    async def _report_if_stored(self, outcome: Outcome) -> None:
        if await self.source.store(outcome):
            self._announce(outcome)
        else:
            logger.info("target_lease_lost", id=outcome.target.id, code=outcome.code)

    def _confirmed(self, task: asyncio.Task[None]) -> None:
        self._unconfirmed.discard(task)
        self._on_reported()

    def _announce_repeats(self, limit: int) -> None:
        """Report the outcomes of at most ``limit`` repeating rows, and the others in later turns of the event loop."""
        try:
            while self._repeats and limit:
                each = next(self._repeats[0], None)
                if each is None:
                    self._repeats.popleft()
                else:
                    self.stats.inc_value(REPEATED)
                    self._announce(each)
                    limit -= 1
        finally:  # also if the temporary file of the rows cannot be read
            if self._repeats:
                asyncio.get_running_loop().call_soon(self._announce_repeats, REPEATS_PER_TURN)
            else:
                self._on_reported()

    def _announce(self, outcome: Outcome) -> None:
        self.stats.inc_value(f"targets/{outcome.code}")
        if outcome.warnings and isinstance(outcome.target, Target):
            if outcome.is_partial:
                self.stats.inc_value(PARTIAL)
            count_warnings(outcome.warnings, outcome.target.scraper.platform, self.stats)
        self.crawler.signals.send_catch_log(target_completed, outcome=outcome, spider=self.crawler.spider)
        self.source.completed(outcome)
        logger.debug("target_completed", id=outcome.target.id, code=outcome.code, duration_ms=outcome.duration_ms)
