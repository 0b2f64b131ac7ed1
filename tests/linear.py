"""Measures whether a function of a text takes linear time, by the ratio of its times for texts of doubled lengths.

Times are those of the thread's processor, and the shortest of several runs, so that other processes do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

SHORTEST, LENGTH = 16, 60_000
FLOOR = 0.004
"""Seconds: shorter times say nothing about their ratio."""
MAX_RATIO = 2.6
"""Maximum ratio of the times for a text and for one of half the length."""
EXPONENTIAL = 50.0
ATTEMPTS = 5
"""Measurements of which one must be linear: others use the caches of the processor, which a time cannot leave out."""
LONGEST = 0.3
"""Seconds: the search for a length at which the ratio settles ends here."""


class Timed(Protocol):
    """A function of a text."""

    def seconds(self, text: str, /) -> float:
        """Return the seconds of processor time for a text."""


class OfAnyLength(Protocol):
    """A text of any length."""

    def of(self, length: int, /) -> str:
        """Return the text with about so many characters."""


Text = TypeVar("Text", bound=OfAnyLength)


def settled_ratio(timed: Timed, text: OfAnyLength, longest: int = LENGTH) -> float:
    """Return the ratio of the times for a text and for one of half the length, 0 if the times are too short.

    The length is doubled until the ratio is at most ``MAX_RATIO`` for two lengths in a row, such as when the limit of a
    bounded repetition is reached, up to ``longest``.
    """
    length, former, ratio, settled = SHORTEST, 0.0, 0.0, 0
    while length < 2 * longest and former < LONGEST:
        given = text.of(length)
        seconds = min(timed.seconds(given) for _ in range(1 if former > FLOOR * 10 else 3))
        ratio = seconds / former if former and seconds > FLOOR else 0.0
        settled = settled + 1 if 0 < ratio <= MAX_RATIO else 0
        if settled == 2 or ratio > EXPONENTIAL:
            return ratio
        length, former = 2 * length, seconds
    return ratio


def superlinear(timed: Timed, texts: Iterable[Text], longest: int = LENGTH) -> tuple[float, Text] | None:
    """Return a text for which a function takes more than linear time, with the ratio. None: there is none."""
    for text in texts:
        for _ in range(ATTEMPTS):
            ratio = settled_ratio(timed, text, longest)
            if ratio <= MAX_RATIO:
                break
        else:
            return ratio, text
    return None
