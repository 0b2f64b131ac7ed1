"""Warnings of outcomes. A warning describes a part that is missing from the record of a successful target.

There are five kinds: an optional source failed, a part of a payload was *unread* (``crawler.reading.contract``), the
payload does not confirm a requested param, requests were not sent because of a limit, or a listing is incomplete at its
last page (``crawler.platforms.coverage``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import structlog
from scrapy.statscollectors import StatsCollector

from crawler.errors import ExtractionFailed, ScrapeError
from crawler.logs import one_line
from crawler.platforms.coverage import Coverage
from crawler.reading.contract import MAX_NAME_LENGTH, MAX_NAMES, Unread

logger = structlog.get_logger(__name__)

UNREAD = "unread"
"""The reason of warnings about an unread part of a payload."""
UNPROVEN = "unproven"
"""The reason of warnings about a requested param that the payload does not confirm, such as a price filter."""
LIMIT = "limit"
"""The reason of warnings about requests that were not sent because of a limit: the user's, the operator's, or the
deadline."""
INCOMPLETE = "incomplete"
"""The reason of warnings about a listing whose pages do not contain all of its rows."""

FAILED_SOURCES = "sources/failed/"
"""Prefix of the stats ``sources/failed/<source>/<reason>``: number of targets that lack data of an optional source."""
UNREAD_PATHS = "unread/"
"""Prefix of the stats ``unread/<source>/<path>``: number of targets in whose payload this path was unread."""
UNREAD_ROWS = "unread_rows/"
"""Prefix of the stats ``unread_rows/<source>/<path>``: number of rows that were lost because they were unread."""
MISSING_ROWS = "coverage/missing/"
"""Prefix of the stats ``coverage/missing/<source>/<reason>``: number of incomplete listings with this reason."""
EXPECTED, COLLECTED = "coverage/expected", "coverage/collected"
"""Stats about incomplete listings: the number of rows that the platform stated, and the number collected."""


class OutcomeWarning(NamedTuple):
    """A part that a record lacks, and why."""

    source: str
    """The name of the source, as its page object class defines it."""
    code: str
    """The code of the error, such as ``UPSTREAM_BLOCKED``. ``EXTRACTION_FAILED`` for an unread part of a payload."""
    reason: str
    """A slug for the cause, never empty."""
    unread: Unread | None = None
    """The unread part of the source's payload, the part that does not confirm a param, or the rows that a limit
    excluded. None: the source failed, or its listing is incomplete."""
    coverage: Coverage | None = None
    """The rows of an incomplete listing, over all of its pages."""

    @classmethod
    def of_error(cls, source: str, error: ScrapeError) -> OutcomeWarning:
        """Return the warning about an optional source that failed."""
        return cls(source, error.code, error.reason or error.code.lower())

    @classmethod
    def of_unread(cls, source: str, unread: Unread) -> OutcomeWarning:
        """Return the warning about an unread part of a source's payload. The names in it are shortened."""
        names = tuple(one_line(name, MAX_NAME_LENGTH) for name in unread.names[:MAX_NAMES])
        reason = UNPROVEN if unread.cause == UNPROVEN else UNREAD
        return cls(source, ExtractionFailed.code, reason, unread._replace(names=names))

    @classmethod
    def of_limit(cls, source: str, path: str, count: int, of: int, error: type[ScrapeError]) -> OutcomeWarning:
        """Return the warning that, because of a limit, the source was not requested for ``count`` of ``of`` rows.

        ``path``: the path of the rows in the record. ``error``: the error class whose code describes the limit.
        """
        return cls(source, error.code, LIMIT, Unread(path, "limit", count, of))

    @classmethod
    def of_coverage(cls, source: str, coverage: Coverage) -> OutcomeWarning:
        """Return the warning about a listing that is incomplete at its end."""
        return cls(source, ExtractionFailed.code, INCOMPLETE, coverage=coverage)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> OutcomeWarning:
        """Restore a warning from the JSON data of ``as_dict``."""
        unread = None
        if "path" in stored:
            unread = Unread(**{name: stored[name] for name in Unread._fields if name in stored})
            unread = unread._replace(names=tuple(unread.names))
        coverage = Coverage.from_dict(stored) if "collected" in stored else None
        return cls(stored["source"], stored["code"], stored["reason"], unread, coverage)

    def as_dict(self) -> dict[str, Any]:
        """Return the warning as JSON data: source, code and reason, and the fields of an unread part or a coverage."""
        unread = {} if self.unread is None else self.unread._asdict() | {"names": list(self.unread.names)}
        coverage = {} if self.coverage is None else self.coverage.as_dict()
        return {"source": self.source, "code": self.code, "reason": self.reason, **unread, **coverage}

    def __str__(self) -> str:
        """Describe the warning in one line for people.

        >>> str(OutcomeWarning("timeline", "EXTRACTION_FAILED", "stale_query_id"))
        'without timeline: EXTRACTION_FAILED (stale_query_id)'
        >>> str(OutcomeWarning.of_unread("listing", Unread("rows[].rating", "missing", 40, 40)))
        'unread in listing: rows[].rating: missing in 40 of 40'
        >>> str(OutcomeWarning("video", "UPSTREAM_TIMEOUT", "limit", Unread("posts[]", "limit", 9, 30)))
        'without video for 9 of 30 posts[]: UPSTREAM_TIMEOUT (limit)'
        >>> str(OutcomeWarning.of_coverage("listing", Coverage(900, 443, ("no_end",))))
        'incomplete listing: 443 of 900 collected (no_end)'
        >>> str(OutcomeWarning.of_unread("listing", Unread("rows[].price", "unproven", 3, 40, names=("min_price",))))
        'unproven in listing: rows[].price: unproven in 3 of 40 (min_price)'
        """
        if self.coverage is not None:
            return f"incomplete {self.source}: {self.coverage}"
        if self.unread is None or self.reason == LIMIT:
            rows = f" for {self.unread.rows} of {self.unread.of} {self.unread.path}" if self.unread else ""
            return f"without {self.source}{rows}: {self.code} ({self.reason})"
        return f"{self.reason} in {self.source}: {self.unread}"


def add_warning(warnings: list[OutcomeWarning], new: OutcomeWarning) -> None:
    """Add a warning to an outcome, once for each cause.

    If several pages of a target lack the same path for the same cause, their rows are added up.
    """
    for index, known in enumerate(warnings):
        if known == new and new.unread is None:
            return
        if known.unread and new.unread and _place(known) == _place(new):
            warnings[index] = known._replace(unread=_sum(known.unread, new.unread))
            return
    warnings.append(new)


def _place(warning: OutcomeWarning) -> tuple[str, ...]:
    assert warning.unread is not None
    return warning.source, warning.unread.path, warning.unread.cause


def _sum(one: Unread, other: Unread) -> Unread:
    return one._replace(
        rows=one.rows + other.rows,
        of=one.of + other.of,
        loses_rows=one.loses_rows or other.loses_rows,
        names=tuple(dict.fromkeys(one.names + other.names))[:MAX_NAMES],
    )


def unread_paths(warnings: Iterable[OutcomeWarning]) -> dict[tuple[str, str], Unread]:
    """Return the unread parts of a target's payloads by source and path. Of several causes for a path, one is kept."""
    return {(each.source, each.unread.path): each.unread for each in warnings if each.unread and each.reason == UNREAD}


def count_warnings(warnings: Iterable[OutcomeWarning], platform: str, stats: StatsCollector) -> None:
    """Count the warnings of an outcome in the crawl's stats. Log each unread path once per crawl."""
    for warning in warnings:
        if warning.coverage is not None:
            _count_coverage(warning.source, warning.coverage, stats)
        elif warning.unread is None or warning.reason != UNREAD:
            stats.inc_value(f"{FAILED_SOURCES}{warning.source}/{warning.reason}")
        elif warning.unread.loses_rows:
            stats.inc_value(f"{UNREAD_ROWS}{warning.source}/{warning.unread.path}", warning.unread.rows)
    for (source, path), unread in unread_paths(warnings).items():
        stat = f"{UNREAD_PATHS}{source}/{path}"
        if not stats.get_value(stat):
            facts = unread._asdict() | {"names": ", ".join(unread.names)}
            logger.warning("unread", platform=platform, source=source, **facts)
        stats.inc_value(stat)


def _count_coverage(source: str, coverage: Coverage, stats: StatsCollector) -> None:
    for reason in coverage.failures:
        stats.inc_value(f"{MISSING_ROWS}{source}/{reason}")
    stats.inc_value(COLLECTED, coverage.collected)
    if coverage.expected is not None:
        stats.inc_value(EXPECTED, coverage.expected)
