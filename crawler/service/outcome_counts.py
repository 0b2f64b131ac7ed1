"""Counts of completed targets by platform, egress, minute and code, and of their warnings, for ``GET /v1/status``.

The same keys are counted in ``/metrics``. The counts are held in memory and stored regularly. The store keeps counts of
60 minutes, and the time of each egress's last success. The number of keys is bounded: the project defines codes,
sources, reasons and paths, and the operator defines the egresses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.jobs import tables
from crawler.jobs.clock import store_time
from crawler.jobs.tables import insert_into
from crawler.targets.target import Outcome, Target
from crawler.targets.warning import unread_paths

if TYPE_CHECKING:
    from crawler.jobs.store import Session

ADD = [(table, insert_into(table, add=["number"])) for table in (tables.outcomes, tables.unread)]
"""The tables of counts, and the statements that add to them."""
SUCCEEDED = (
    "INSERT INTO successes (platform, egress, at) VALUES (:platform, :egress, :at)"
    " ON CONFLICT (platform, egress) DO UPDATE SET at = excluded.at WHERE excluded.at > successes.at"
)

MINUTES = 60
"""The number of minutes that are kept, including the current one."""
MINUTE_SECONDS = 60
KEEP_SUCCESS_SECONDS = 30 * 24 * 3_600.0
"""The time of a last success is deleted after this many seconds."""


class CountKey(NamedTuple):
    """Identifies a count: of targets with a code, of targets with a warning, or of targets with an unread path."""

    minute: int
    """Minutes since the epoch."""
    platform: str
    egress: str
    """The name of the egress; "" if the target ended before it had one."""
    code: str
    """The code of the outcome, or of the warning; "" for an unread path."""
    source: str = ""
    """The source of the warning or of the unread path; "" for an outcome."""
    reason: str = ""
    """The reason of the warning; "" for an outcome or an unread path."""
    path: str = ""
    """The unread path; "" for an outcome or a warning."""


class OutcomeCounts:
    """The outcomes of this process that are not stored yet."""

    def __init__(self) -> None:
        self._counts: Counter[CountKey] = Counter()
        self._successes: dict[tuple[str, str], float] = {}
        """Platform and egress -> Unix time of the last success."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def count(self, outcome: Outcome, egress: str) -> list[CountKey]:
        """Count a completed target, and return the keys of its counts. ``egress``: the name of its egress, or ""."""
        assert isinstance(outcome.target, Target)
        now = store_time()
        minute, platform, code = int(now) // MINUTE_SECONDS, outcome.target.scraper.platform, outcome.code
        keys = [CountKey(minute, platform, egress, code)]
        if outcome.error is None:
            self._successes[platform, egress] = now
        if outcome.warnings:
            causes = {(each.code, each.source, each.reason) for each in outcome.warnings}
            keys += [CountKey(minute, platform, egress, *cause) for cause in causes]
            unread = unread_paths(outcome.warnings)
            keys += [CountKey(minute, platform, egress, "", source, path=path) for source, path in unread]
        self._counts.update(keys)
        return keys

    def take(self) -> OutcomeCounts:
        """Move all counts, and the times of successes, to a new object. Return the new object."""
        taken = OutcomeCounts()
        taken._counts, self._counts = self._counts, taken._counts
        taken._successes, self._successes = self._successes, taken._successes
        return taken

    def put_back(self, taken: OutcomeCounts) -> None:
        """Add counts that could not be stored, except counts of minutes that are no longer kept."""
        first = first_minute()
        self._counts.update({key: number for key, number in taken._counts.items() if key.minute >= first})
        self._successes = taken._successes | self._successes

    def store(self, session: Session) -> None:
        """Add the counts to those in the store, and store the times of successes."""
        # All processes use the same order, to prevent deadlocks.
        rows = [{**key._asdict(), "number": number} for key, number in sorted(self._counts.items())]
        for table, statement in ADD:
            own = (row for row in rows if bool(row["path"]) == (table is tables.unread))
            session.execute(statement, [{each.name: row[each.name] for each in table.c} for row in own])
        for (platform, egress), at in sorted(self._successes.items()):
            session.run(SUCCEEDED, platform=platform, egress=egress, at=at)


def first_minute() -> int:
    """Return the first of the minutes that are kept, in minutes since the epoch."""
    return int(store_time()) // MINUTE_SECONDS - MINUTES + 1


def purge(session: Session) -> None:
    """Delete the counts of minutes that are no longer kept, and the times of old successes."""
    session.run("DELETE FROM outcomes WHERE minute < :first", first=first_minute())
    session.run("DELETE FROM unread WHERE minute < :first", first=first_minute())
    session.run("DELETE FROM successes WHERE at < :first", first=store_time() - KEEP_SUCCESS_SECONDS)


class History:
    """The outcomes of the last 60 minutes in the store, and the last successes."""

    def __init__(self, session: Session) -> None:
        self.first = first_minute()
        query = (
            "SELECT minute, platform, egress, code, source, reason, '', number FROM outcomes WHERE minute >= :first"
            " UNION ALL SELECT minute, platform, egress, '', source, '', path, number FROM unread"
            " WHERE minute >= :first"
        )
        self._rows: defaultdict[tuple[str, str], list[tuple[CountKey, int]]] = defaultdict(list)
        """Platform and egress -> the counts."""
        for *key, number in session.rows(query, first=self.first):
            count_key = CountKey(*key)
            self._rows[count_key.platform, count_key.egress].append((count_key, number))
        self._successes = session.rows("SELECT platform, egress, at FROM successes")

    def outcomes(self, platform: str, egress: str | None = None) -> dict[str, list[int]]:
        """Return code -> 60 numbers, the oldest first. ``egress``: count only targets of this egress. None: of all."""
        found: dict[str, list[int]] = {}
        for key, number in self._of(platform, egress):
            if not key.source and key.minute < self.first + MINUTES:
                found.setdefault(key.code, [0] * MINUTES)[key.minute - self.first] += number
        return dict(sorted(found.items()))

    def warnings(self, platform: str, egress: str | None = None) -> list[dict[str, Any]]:
        """Return the warnings by source, code and reason, the most frequent first."""
        counts = (each for each in self._of(platform, egress) if each[0].source and not each[0].path)
        return _most_frequent(counts, "source", "code", "reason")

    def unread(self, platform: str, egress: str | None = None) -> list[dict[str, Any]]:
        """Return the number of targets for each unread path of a source, the most frequent first."""
        return _most_frequent((each for each in self._of(platform, egress) if each[0].path), "source", "path")

    def last_success(self, platform: str, egress: str | None = None) -> float | None:
        """Return the Unix time of the last success, or None."""
        times = (at for name, of, at in self._successes if name == platform and egress in {None, of})
        return max(times, default=None)

    def _of(self, platform: str, egress: str | None) -> Iterator[tuple[CountKey, int]]:
        for (name, of), counts in self._rows.items():
            if name == platform and egress in {None, of}:
                yield from counts


def _most_frequent(counts: Iterable[tuple[CountKey, int]], *names: str) -> list[dict[str, Any]]:
    """Group counts by some fields of their keys. Return the sum of each group with these fields, the largest first."""
    found: Counter[tuple[str, ...]] = Counter()
    for key, number in counts:
        found[tuple(getattr(key, name) for name in names)] += number
    ordered = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return [dict(zip(names, values, strict=True)) | {"count": number} for values, number in ordered]
