"""The counts and the date of each simulated article and post, which depend only on its link."""

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
    """The counts and the date of an article or a post, for its card and for the linked data."""

    reactions: int
    comments: int | None
    """None if the card shows no number of comments."""
    published: int
    """Time of publication in Unix seconds."""

    @property
    def day(self) -> int:
        """Return the start of the day of publication (UTC), in Unix seconds."""
        return self.published - self.published % DAY_SECONDS

    @property
    def day_text(self) -> str:
        """Return the day of publication in the format of pages: ``Jun 2, 2026``."""
        moment = datetime.fromtimestamp(self.published, UTC)
        return f"{MONTHS[moment.month - 1]} {moment.day}, {moment.year}"

    @property
    def time_text(self) -> str:
        """Return the time of publication in the format of the linked data: ISO 8601 with milliseconds."""
        return datetime.fromtimestamp(self.published, UTC).isoformat(timespec="milliseconds")


def figures(row: Row) -> Figures:
    """Return the counts and the date for an article or activity row, computed from the row's link.

    The id of a post contains its time of publication.
    """
    seed = zlib.crc32(row["link"].encode())
    _, is_post, after = row["link"].partition("-activity-")
    return Figures(
        reactions=seed % 9_973 if seed % 11 else 0,
        comments=seed % 709 if seed % 7 else None,
        published=(int(after.partition("-")[0]) >> 22) // 1000 if is_post else FIRST_DAY + seed % (DAYS * DAY_SECONDS),
    )


def is_framed(row: Row) -> bool:
    """Whether a post of the member contains another member's post in a frame, which means a share."""
    return zlib.crc32(row["link"].encode()) % 4 == 0
