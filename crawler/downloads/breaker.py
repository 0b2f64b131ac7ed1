"""Circuit breakers: what stops the requests to a source that blocks or limits them. ``redis_breaker.py`` shares them.

A breaker opens after ``threshold`` consecutive blocks or rate limits, or at once for one with ``Retry-After``. After
the cooldown one request is let through, the trial: its response closes the breaker, or opens it for longer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from crawler.errors import (
    CircuitOpen,
    EgressFailed,
    ExtractionFailed,
    ScrapeError,
    TargetError,
    UpstreamBlocked,
    UpstreamRateLimited,
)
from crawler.platforms.page import THROTTLING_STATUSES

MAX_COOLDOWN_SECONDS = 900.0
"""Upper limit of the doubled cooldowns."""
TRIAL_SECONDS = 120.0
"""If a trial has no result after this many seconds, the next trial is let through. Its process may have been killed."""
TRIAL_POLL_SECONDS = 1.0
"""While a trial is in flight, the other requests wait this many seconds before they check the breaker again."""


CONNECTION = "(connection)"
"""In place of a source: the breaker for failures of an egress itself."""
PLATFORM = "(platform)"
"""In place of a source: the breaker that is open while the platform rests as a whole. It belongs to no egress."""


class BreakerKey(NamedTuple):
    """Identifies a breaker: each source of a platform has one for each egress."""

    platform: str
    source: str
    egress: str = ""
    """``Egress.key``: empty for the direct connection."""

    def __str__(self) -> str:
        return f"{self.platform}:{self.source}{self.egress}"

    @classmethod
    def parse(cls, text: str) -> BreakerKey:
        """Return the key whose ``str()`` is ``text``. No part of a key contains ``:`` or ``@``.

        >>> BreakerKey.parse("retail:search@berlin")
        BreakerKey(platform='retail', source='search', egress='@berlin')
        """
        platform, _, rest = text.partition(":")
        source, at, egress = rest.partition("@")
        return cls(platform, source, at + egress)


def resting_seconds(cooldowns: Mapping[str, float]) -> float:
    """Return the seconds for which an egress rests for a platform. 0: requests to at least one source may be sent.

    ``cooldowns``: source -> ``cooldown_left`` of its breaker, for each source that was requested through the egress,
    and for ``CONNECTION`` and ``PLATFORM``. The egress rests during the cooldowns of these two breakers, and while the
    breakers of all sources are in their cooldowns.
    """
    sources = [left for source, left in cooldowns.items() if source not in {CONNECTION, PLATFORM}]
    return max(cooldowns.get(CONNECTION, 0.0), cooldowns.get(PLATFORM, 0.0), min(sources, default=0.0))


@dataclass(frozen=True)
class BreakerPolicy:
    """When breakers open, and for how long. A ``threshold`` of 0 disables them."""

    threshold: int
    cooldown: float
    max_retry_after: float = 3_600.0

    def pause(self, blocks: int) -> float:
        """Return the cooldown after this many consecutive blocks: doubled for each block beyond the threshold."""
        if blocks < self.threshold:
            return 0.0
        return min(self.cooldown * 2.0 ** min(blocks - self.threshold, 10), MAX_COOLDOWN_SECONDS)

    def retry_after(self, error: ScrapeError) -> float:
        """Return the seconds of the error's ``Retry-After``, at most ``max_retry_after``; 0 without the header."""
        return min(error.retry_after or 0, self.max_retry_after)


class CircuitBreaker(Protocol):
    """Interface of the breaker of one source. One process uses it alone, or several processes share it."""

    @property
    def cooldown_left(self) -> float:
        """Seconds until a trial may be let through, as far as this process knows; 0 if the breaker is not open."""

    @property
    def open_seconds(self) -> float | None:
        """Seconds since the breaker opened; a failed trial does not restart the count. None while it is closed."""

    @property
    def reason(self) -> str | None:
        """The last ``refusal_reason()``, as far as this process knows. None if the source has answered since."""

    async def enter(self) -> float:
        """Return 0 if a request may be sent, else the seconds to wait."""

    async def record(self, error: ScrapeError | None) -> None:
        """Count the result of a request. ``error``: None if the response contained data."""


def is_block(error: ScrapeError | None) -> bool:
    """Whether an error counts towards the threshold: a block, a rate limit, or a failure of the egress itself."""
    return isinstance(error, (UpstreamBlocked, UpstreamRateLimited, EgressFailed))


def is_response(error: ScrapeError | None) -> bool:
    """Whether a request with this result got a response of the platform, of any kind."""
    kinds = (TargetError, UpstreamBlocked, UpstreamRateLimited, ExtractionFailed)
    return error is None or isinstance(error, kinds) or error.upstream_status is not None


def refusal_reason(error: ScrapeError) -> str:
    """Return the reason of a block, a rate limit or a failure of the egress, or else its error code."""
    return error.reason or error.code


def is_answer(error: ScrapeError | None) -> bool:
    """Whether the source answered: with data, or with a page that shows that the target has no public data.

    A failed download and a page that could not be read are neither blocks nor answers.
    """
    return error is None or isinstance(error, TargetError)


@dataclass
class LocalBreaker:
    """The breaker of one source within this process.

    While the breaker is open, results of requests that were sent earlier are ignored, except for a longer
    ``Retry-After``.
    """

    policy: BreakerPolicy
    _blocks: int = 0
    _opened: float | None = None
    _open_until: float = 0.0
    _trial_until: float = 0.0
    reason: str | None = None
    """See ``CircuitBreaker``."""

    @property
    def cooldown_left(self) -> float:
        return max(0.0, self._open_until - time.monotonic())

    @property
    def open_seconds(self) -> float | None:
        return None if self._opened is None else time.monotonic() - self._opened

    async def enter(self) -> float:
        """See ``CircuitBreaker``. The first request after the cooldown is the trial."""
        now = time.monotonic()
        if self._opened is None:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        if now < self._trial_until:
            return TRIAL_POLL_SECONDS
        self._trial_until = now + TRIAL_SECONDS
        return 0.0

    async def record(self, error: ScrapeError | None) -> None:
        """See ``CircuitBreaker``."""
        if not self.policy.threshold:
            return
        now = time.monotonic()
        current = now >= self._open_until
        if current:
            self._trial_until = 0.0
        if error is not None and is_block(error):
            self._blocks += current
            self.reason = refusal_reason(error)
            retry_after = self.policy.retry_after(error)
            if retry_after or (current and self._blocks >= self.policy.threshold):
                pause = max(retry_after, self.policy.pause(self._blocks) if current else 0.0)
                self._opened = now if self._opened is None else self._opened
                self._open_until = max(self._open_until, now + pause)
        elif current and is_answer(error):
            self._blocks, self._opened, self._open_until, self.reason = 0, None, 0.0, None


@dataclass
class Breakers:
    """The circuit breakers of a platform for one egress: one per source. Each is created when it is first used."""

    platform: str
    policy: BreakerPolicy
    make: Callable[[BreakerKey], CircuitBreaker]
    egress: str = ""
    """``Egress.key``: empty for the direct connection."""
    _by_source: dict[str, CircuitBreaker] = field(default_factory=dict)

    def __getitem__(self, source: str) -> CircuitBreaker:
        if source not in self._by_source:
            self._by_source[source] = self.make(BreakerKey(self.platform, source, self.egress))
        return self._by_source[source]

    def __iter__(self) -> Iterator[tuple[str, CircuitBreaker]]:
        """Yield each source that has been requested, and its breaker, sorted by source."""
        return iter(sorted(self._by_source.items()))

    def closed(self, sources: Iterable[str]) -> bool:
        """Whether the breakers of all these sources are closed."""
        return all(self[source].open_seconds is None for source in sources)

    @property
    def any_open(self) -> bool:
        """Whether at least one breaker of the platform is open."""
        return not self.closed(list(self._by_source))

    @property
    def cooldowns(self) -> dict[str, float]:
        """Source -> seconds until the end of its breaker's cooldown, for each source that was requested."""
        return {source: each.cooldown_left for source, each in self._by_source.items()}

    async def count(self, source: str, error: ScrapeError | None, status: int | None = None) -> None:
        """Count the result of a request. ``error``: None if it succeeded. ``status``: the response's HTTP status.

        The ``retry_after`` of a block or rate limit is limited to ``RETRY_AFTER_MAX``, also in the target's outcome.
        """
        if isinstance(error, CircuitOpen):
            return  # nothing was sent
        if error is not None and error.retry_after and is_block(error):
            error.retry_after = min(error.retry_after, math.ceil(self.policy.max_retry_after))
        if status in THROTTLING_STATUSES and isinstance(error, ExtractionFailed):
            error = UpstreamBlocked(error.message)
        await self[source].record(error)
