"""The numbers and the date of each simulated article and post. They depend only on its link."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from crawler.sandbox.professional.people import MONTHS

if TYPE_CHECKING:
    from crawler.sandbox.professional.words import Row

FIRST_DAY, DAYS = int(datetime(2016, 1, 1, tzinfo=UTC).timestamp()), 3_800
DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Figures:
    """The numbers and the date of an article or a post, which its card and the linked data contain."""

    reactions: int
    comments: int | None
    """None for a card without a number of comments."""
    published: int
    """Time of publication in Unix seconds."""

    @property
    def day(self) -> int:
        """Return the start of the day of publication (UTC), in Unix seconds."""
        return self.published - self.published % DAY_SECONDS

    @property
    def day_text(self) -> str:
        """Return the day of publication as a page shows it: ``Jun 2, 2026``."""
        moment = datetime.fromtimestamp(self.published, UTC)
        return f"{MONTHS[moment.month - 1]} {moment.day}, {moment.year}"

    @property
    def time_text(self) -> str:
        """Return the time of publication in the format of the linked data: ISO 8601 with milliseconds."""
        return datetime.fromtimestamp(self.published, UTC).isoformat(timespec="milliseconds")


def figures(row: Row) -> Figures:
    """Return the figures of a row of articles or activity, computed from the row's link, not drawn at random."""
    seed = zlib.crc32(row["link"].encode())
    return Figures(
        reactions=seed % 9_973 if seed % 11 else 0,
        comments=seed % 709 if seed % 7 else None,
        published=FIRST_DAY + seed % (DAYS * DAY_SECONDS),
    )
