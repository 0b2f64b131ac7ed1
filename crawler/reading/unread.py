"""Unread parts of payloads: expected values and rows that could not be read. Unread parts become warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from crawler.errors import ExtractionFailed

Cause = Literal["missing", "type", "null", "unknown", "contradiction", "unproven", "limit"]

MAX_NAMES = 5
MAX_NAME_LENGTH = 60


class Unread(NamedTuple):
    """A path of a payload that could not be read, with the number of rows. Each path is reported once per cause.

    A page object collects its unread paths in ``PlatformPage.unread``. The target stays OK: its record lacks only these
    values or rows. If nothing can be read, the page object raises ``ExtractionFailed`` instead.
    """

    path: str
    """The path in the payload, as its contract declares it: ``itemStacks[].items[].averageRating``.

    The path contains no text of the page: unknown names are in ``names``, and their path ends in ``…unknown``.
    """
    cause: Cause
    """Why the path could not be read.

    ``missing``: the key is absent, although every known payload has it. ``null``: the value is null where known
    payloads never contain null, or is null or empty in every row of a page, which never occurs in known payloads.
    ``type``: the value has another type than declared. ``unknown``: the platform sent a name, such as the type of a
    row, that this project does not know. ``contradiction``: the payload contradicts itself, such as a repost without
    the original post. ``unproven``: the payload does not confirm a requested param, whose name is in ``names``.
    ``limit``: the value or row was left out because of a limit.
    """
    rows: int = 1
    """Number of rows (or objects) in which the path could not be read."""
    of: int = 1
    """Number of rows of the same kind in the payload. 1 if the value is not part of a row."""
    loses_rows: bool = False
    """Whether the data lacks these rows. False: the rows are in the data, without this value."""
    names: tuple[str, ...] = ()
    """Unknown names from the platform, at most five, each at most 60 characters long."""

    def __str__(self) -> str:
        """Describe the unread path in one line for people.

        >>> str(Unread("rows[].rating", "missing", 40, 40)), str(Unread("user.name", "type"))
        ('rows[].rating: missing in 40 of 40', 'user.name: type')
        >>> str(Unread("rows[].…unknown", "unknown", 2, 30, loses_rows=True, names=("adRow",)))
        'rows[].…unknown: unknown in 2 of 30 (adRow), not collected'
        """
        where = f" in {self.rows} of {self.of}" if self.of > 1 else ""
        names = f" ({', '.join(self.names)})" if self.names else ""
        return f"{self.path}: {self.cause}{where}{names}{', not collected' if self.loses_rows else ''}"


def invalid_error(
    message: str, place: Sequence[str | int], problem: str, kind: str, *, reason: str
) -> ExtractionFailed:
    """Create the error for a part of a payload that is present but cannot be used.

    ``place``: the path of the part. ``problem`` and ``kind``: the message and the type in the error's details.
    """
    return ExtractionFailed(message, details=[{"loc": list(place), "msg": problem, "type": kind}], reason=reason)
