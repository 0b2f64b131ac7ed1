"""Circuit breakers, which stop the requests to a source that blocks or limits them.

A breaker opens after ``threshold`` consecutive blocks or rate limits, and at once after a block, a rate limit or a
server error with ``Retry-After``. After the cooldown, one request is sent as a trial. An answer to the trial closes the
breaker, and a block starts a longer cooldown. After any other result, such as a failed download, another request is the
trial.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import structlog

from crawler.downloads.facts import Fact, Facts
from crawler.errors import (
    CircuitOpen,
    EgressFailed,
    ExtractionFailed,
    ScrapeError,
    TargetError,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.platforms.page import THROTTLING_STATUSES

logger = structlog.get_logger(__name__)

MAX_COOLDOWN_SECONDS = 900.0
"""Maximum seconds of a cooldown without ``Retry-After``. The cooldown doubles with each further block."""
TRIAL_SECONDS = 120.0
"""If a trial has no result after this many seconds, another request is sent as a trial, because the process with the
first trial may have been killed."""
TRIAL_POLL_SECONDS = 1.0
"""While a trial is in flight, other requests to its source wait this many seconds before they check the breaker again.
"""
KEPT_SECONDS = 86_400.0
"""Seconds for which a breaker is kept in the store after its last use or its cooldown, whichever is later. So the store
shows which sources were requested recently."""


CONNECTION = "(connection)"
"""Takes the place of the source in the key of the breaker for an egress's own failures."""
PLATFORM = "(platform)"
"""Takes the place of the source in the key of the breaker that is open while a whole platform is suspended. This
breaker belongs to no egress."""


class BreakerKey(NamedTuple):
    """Identifies a breaker. Each source of a platform has a breaker for each egress."""

    platform: str
    source: str
    egress: str = ""
    """``Egress.key``: empty for the direct connection."""

    def __str__(self) -> str:
        return f"{self.platform}:{self.source}{self.egress}"

    @classmethod
    def parse(cls, text: str) -> BreakerKey:
        """Return the key whose ``str()`` is ``text``. No platform, source or egress has ``:`` or ``@`` in its name.

        >>> BreakerKey.parse("retail:search@berlin")
        BreakerKey(platform='retail', source='search', egress='@berlin')
        """
        platform, _, rest = text.partition(":")
        source, at, egress = rest.partition("@")
        return cls(platform, source, at + egress)


def suspension_seconds(cooldowns: Mapping[str, float]) -> float:
    """Return the seconds for which an egress is suspended for a platform. 0: at least one source may be requested.

    ``cooldowns``: source -> ``cooldown_left`` of its breaker, for the sources of the platform that have a breaker for
    the egress, and for ``CONNECTION`` and ``PLATFORM``. The egress is suspended during the cooldowns of these two
    breakers, and while the breakers of all listed sources are in their cooldowns.
    """
    sources = [left for source, left in cooldowns.items() if source not in {CONNECTION, PLATFORM}]
    return max(cooldowns.get(CONNECTION, 0.0), cooldowns.get(PLATFORM, 0.0), min(sources, default=0.0))


@dataclass(frozen=True)
class BreakerPolicy:
    """The threshold of breakers, and their cooldowns in seconds. A ``threshold`` of 0 disables these breakers."""

    threshold: int
    cooldown: float
    max_retry_after: float = 3_600.0
    """Maximum seconds for which a ``Retry-After`` is obeyed."""

    def pause(self, blocks: int) -> float:
        """Return the seconds of the cooldown after ``blocks`` consecutive blocks. 0: fewer than the threshold.

        The cooldown doubles with each block beyond the threshold, up to ``MAX_COOLDOWN_SECONDS``.
        """
        if blocks < self.threshold:
            return 0.0
        return min(self.cooldown * 2.0 ** min(blocks - self.threshold, 10), MAX_COOLDOWN_SECONDS)

    @property
    def longest(self) -> float:
        """The longest possible cooldown, in seconds."""
        return max(self.max_retry_after, MAX_COOLDOWN_SECONDS)


def is_block(error: ScrapeError | None) -> bool:
    """Whether an error is a block, a rate limit or a failure of the egress, which count towards the threshold.

    A server error with ``Retry-After`` counts, too: the platform asks for a pause, for example during maintenance.
    """
    asks_for_pause = isinstance(error, UpstreamError) and bool(error.retry_after)
    return asks_for_pause or isinstance(error, (UpstreamBlocked, UpstreamRateLimited, EgressFailed))


def is_response(error: ScrapeError | None) -> bool:
    """Whether the platform responded to a request. ``error``: the request's result, None if the request succeeded."""
    kinds = (TargetError, UpstreamBlocked, UpstreamRateLimited, ExtractionFailed)
    return error is None or isinstance(error, kinds) or error.upstream_status is not None


def refusal_reason(error: ScrapeError) -> str:
    """Return the ``reason`` of a block, a rate limit or an egress's failure, or its error code if it has no reason."""
    return error.reason or error.code


def is_answer(error: ScrapeError | None) -> bool:
    """Whether the source returned data, or a page that shows that the target has no public data.

    A failed download and a page that could not be read count neither as blocks nor as answers.
    """
    return error is None or isinstance(error, TargetError)


class Blocks(Fact):
    """The state of a breaker: the number of consecutive blocks, and the end of its cooldown.

    During the cooldown, the results of requests that were sent before are not counted, except for a ``Retry-After``
    that extends the cooldown.
    """

    kind: ClassVar[str] = "breaker"
    number: int = 0
    opened: float | None = None
    """When the breaker opened. None: it is closed."""
    open_until: float = 0.0
    """The end of the cooldown. The breaker stays open until an answer to a trial closes it."""
    trial_until: float = 0.0
    """The time until which no second trial is sent."""
    reason: str | None = None
    """The reason of the last block."""
    changed: float = 0.0

    def ends(self) -> float:
        return max(self.open_until, self.changed) + KEPT_SECONDS

    def use(self, now: float, _processes: int) -> None:
        """Record that the source was requested now."""
        self.changed = now

    def enter(self, now: float, _processes: int, *, policy: BreakerPolicy) -> float:
        """Return 0 if a request may be sent, else the seconds to wait.

        The first request after the cooldown is the trial.
        """
        if self.opened is None:
            return 0.0
        back = max(0.0, self.opened - now)  # the clock was set back by at least this time since the breaker opened
        self.opened, self.open_until = self.opened - back, min(self.open_until - back, now + policy.longest)
        if now < self.open_until:
            return self.open_until - now
        if now < self.trial_until <= now + TRIAL_SECONDS:
            return TRIAL_POLL_SECONDS
        self.trial_until = now + TRIAL_SECONDS
        return 0.0

    def block(self, now: float, _processes: int, *, policy: BreakerPolicy, retry_after: float, reason: str) -> bool:
        """Count a block, and return whether it opens the breaker.

        During the cooldown, only ``retry_after`` has an effect: in seconds, 0 without the header.
        """
        was_open, current = self.opened is not None, self._end_trial(now)
        self.number += current
        self.reason = reason
        if retry_after or (current and self.number >= policy.threshold):
            pause = max(retry_after, policy.pause(self.number) if current else 0.0)
            self.opened = now if self.opened is None else self.opened
            self.open_until = max(self.open_until, now + pause)
        return not was_open and self.opened is not None

    def answer(self, now: float, _processes: int) -> None:
        """Record an answer (see ``is_answer``). It closes the breaker, unless the cooldown still runs."""
        if self._end_trial(now):
            self.number, self.opened, self.open_until, self.reason = 0, None, 0.0, None

    def failure(self, now: float, _processes: int) -> None:
        """Record a request with neither a block nor an answer. If it was the trial, another trial may be sent."""
        self._end_trial(now)

    def _end_trial(self, now: float) -> bool:
        """End the trial if the cooldown is over. Return whether the cooldown is over."""
        self.changed = now
        if now < self.open_until:
            return False
        self.trial_until = 0.0
        return True


class CircuitBreaker:
    """The breaker of one source, of an egress's own failures, or of a whole platform."""

    def __init__(self, policy: BreakerPolicy, key: BreakerKey, facts: Facts) -> None:
        self.policy = policy
        self.name = str(key)
        self.facts = facts
        self._blocks = facts.known(Blocks, self.name)
        self.awaited: dict[Hashable, list[float]] = {}
        """Attempt at a target -> the times (``time.monotonic()``) at which this process has sent those of its requests
        whose results are not counted yet. Attempts without such requests are left out."""
        self._is_limited = False
        """Whether a rate limit was received that is not counted yet."""
        self._blocked_at = -math.inf
        """The time (``time.monotonic()``) at which this process counted its last block."""

    @property
    def cooldown_left(self) -> float:
        """Seconds until the end of the cooldown, as far as this process knows. 0 without a cooldown.

        0 also if the clock was set back since the breaker opened: ``enter`` then decides.
        """
        if self._blocks.opened is None:
            return 0.0
        now = self.facts.now()
        left = self._blocks.open_until - now
        return max(0.0, left) if self._blocks.opened <= now and left <= self.policy.longest else 0.0

    @property
    def open_seconds(self) -> float | None:
        """Seconds since the breaker opened. None: it is closed."""
        return None if self._blocks.opened is None else max(0.0, self.facts.now() - self._blocks.opened)

    @property
    def reason(self) -> str | None:
        """The reason of the last block. None if the source has answered since."""
        return self._blocks.reason

    @property
    def is_refusing(self) -> bool:
        """Whether the breaker is closed, but the source has not answered since the last block.

        This is what this process knows.
        """
        return self._blocks.opened is None and (self._blocks.number > 0 or self._is_limited)

    @property
    def must_wait(self) -> bool:
        """Whether a request that can wait must not be sent now: the last one was refused, and others are in flight.

        So few requests are refused before the breaker opens. Breakers that are disabled make none wait.
        """
        return bool(self.awaited and self.policy.threshold) and self.is_refusing

    def sent(self, release: Hashable) -> None:
        """Note that a request is sent. Its result is awaited until it is counted, or until ``Lane.leave``."""
        self.awaited.setdefault(release, []).append(time.monotonic())

    def limited(self) -> None:
        """Note that a rate limit was received. It is counted when its page is read."""
        self._is_limited = True

    async def enter(self) -> float:
        """Return 0 if a request may be sent, else the seconds to wait. Only one process may send the trial."""
        if self.facts.shared and not await self.facts.refresh(Blocks, self.name):
            self.facts.change_soon(Blocks, self.name, Blocks.use)
        if not self._blocks.number and self._blocks.opened is None:
            return 0.0
        # After a block, the breaker may be open in the store although it is closed in this process.
        try:
            return await self.facts.change(Blocks, self.name, partial(Blocks.enter, policy=self.policy))
        except asyncio.CancelledError:
            # The decision is made anyway, so this request may be the trial.
            self.facts.change_soon(Blocks, self.name, Blocks.failure)
            raise

    def release_trial(self) -> None:
        """Let another request be the trial: the one that passed ``enter`` was not sent, or shows nothing about this."""
        if self._blocks.opened is not None:
            self.facts.change_soon(Blocks, self.name, Blocks.failure)

    def _received(self, release: Hashable | None) -> float:
        """Return when the request whose result is counted was sent, the first of the attempt. ``inf``: unknown."""
        if release is None or release not in self.awaited:
            return math.inf
        first, *others = self.awaited.pop(release)
        if others:
            self.awaited[release] = others
        return first

    async def record(
        self, error: ScrapeError | None, status: int | None = None, release: Hashable | None = None
    ) -> bool:
        """Count the result of a request. ``error``: None if it succeeded. ``status``: the response's HTTP status.

        ``release``: the attempt with which ``sent`` was called, if it was.

        Return whether the result is a block or rate limit, or the breaker was open.

        An ``ExtractionFailed`` with a status in ``THROTTLING_STATUSES`` counts as a block. The ``retry_after`` of a
        block or rate limit is limited to ``RETRY_AFTER_MAX``, also in the target's outcome.

        While the breaker is closed, an answer to a request that was sent before the last block does not end the count
        of blocks: the source may have accepted it before it refused others.
        """
        if isinstance(error, CircuitOpen):
            return False  # no request was sent
        sent_at = self._received(release)
        if sent_at < self._blocked_at and self._blocks.opened is None and is_answer(error):
            return False
        self._is_limited = False
        if error is not None and error.retry_after and is_block(error):
            error.retry_after = min(error.retry_after, math.ceil(self.policy.max_retry_after))
        if status in THROTTLING_STATUSES and isinstance(error, ExtractionFailed):
            error = UpstreamBlocked(error.message)
        is_careful = (error is not None and is_block(error)) or self._blocks.opened is not None
        if not self.policy.threshold:
            return is_careful
        if error is not None and is_block(error):
            self._blocked_at = time.monotonic()
            retry_after, reason = error.retry_after or 0, refusal_reason(error)
            block = partial(Blocks.block, policy=self.policy, retry_after=retry_after, reason=reason)
            if await self.facts.change(Blocks, self.name, block):
                seconds = math.ceil(self.cooldown_left)
                logger.warning("breaker_opened", breaker=self.name, code=error.code, reason=reason, seconds=seconds)
        elif self._blocks.number or self._blocks.opened is not None:
            await self.facts.change(Blocks, self.name, Blocks.answer if is_answer(error) else Blocks.failure)
        return is_careful


class Breakers(dict[str, CircuitBreaker]):
    """The circuit breakers of a platform for one egress, by source. Each breaker is created on its first use."""

    def __init__(self, platform: str, policy: BreakerPolicy, facts: Facts, egress: str = "") -> None:
        """``egress``: ``Egress.key``, empty for the direct connection."""
        super().__init__()
        self.platform = platform
        self.policy = policy
        self.facts = facts
        self.egress = egress

    def __missing__(self, source: str) -> CircuitBreaker:
        key = BreakerKey(self.platform, source, self.egress)
        breaker = self[source] = CircuitBreaker(self.policy, key, self.facts)
        return breaker

    def closed(self, sources: Iterable[str]) -> bool:
        """Whether the breakers of all these sources are closed."""
        return all(self[source].open_seconds is None for source in sources)

    @property
    def any_open(self) -> bool:
        """Whether at least one of the breakers is open."""
        return not self.closed(list(self))

    @property
    def cooldowns(self) -> dict[str, float]:
        """Source -> seconds until the end of its breaker's cooldown, for each source whose breaker was created."""
        return {source: each.cooldown_left for source, each in self.items()}
