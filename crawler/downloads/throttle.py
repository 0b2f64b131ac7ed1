"""Throttles, which limit the number of concurrent downloads, and space their starts by a delay."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import ClassVar, NamedTuple

from crawler.downloads.facts import Fact, Facts, Withdraw
from crawler.errors import Overloaded, UpstreamTimeout

ReleaseSlot = Callable[[], None]

NO_SLOT = "no_turn"
"""Reason of an ``UpstreamTimeout``: no slot became free before the deadline of the target."""
JITTER = 0.5
REUSE_SECONDS = 1.0
"""Seconds for which a process may use a slot for several downloads without a transaction in the store. After that, the
process releases the slot, and processes without a slot have priority. If the budget has a delay, and for background
downloads, each start needs a transaction."""
POLL_SECONDS = 0.02, 0.25
"""Shortest and longest seconds between two attempts to get a slot while other processes have taken all slots. Each time
is then varied randomly by up to half."""
WAITING_SECONDS = 1.0
"""Seconds for which a process that found no free slot counts as waiting, unless it gets a slot earlier."""


class Limit(NamedTuple):
    """The limits of a throttle, for all processes together. ``delay``: seconds between the starts of downloads."""

    concurrency: int
    delay: float = 0.0
    lease: float = math.inf
    """Seconds from the start of a download after which its slot is free again, because the process may have crashed."""


class Start(NamedTuple):
    """The result of an attempt to start a download."""

    seconds: float
    """Seconds until the start."""
    token: str | None = None
    """The slot that is reserved with the start. None: nothing is reserved, because the start would be too late."""


class Starts(Fact):
    """The state of a throttle: the time of the next start, the taken slots, and the processes that wait for a slot."""

    kind: ClassVar[str] = "throttle"
    next_at: float = 0.0
    slots: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Token of the slot -> the time at which its lease ends."""
    waiting: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Process that found no free slot -> until when it is assumed to wait for one."""
    background: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Process that found no free slot for a background download -> until when it is assumed to wait for one."""

    def ends(self) -> float:
        return max([self.next_at, *self.slots.values()])

    def leave_others(self, owner: str) -> None:
        self.slots = {token: until for token, until in self.slots.items() if token.startswith(owner)}
        self.waiting, self.background = {}, {}

    def take(  # noqa: PLR0913  # the limits, and the longest wait of the download
        self,
        now: float,
        processes: int,
        *,
        limit: Limit,
        token: str,
        patience: float = math.inf,
        spacing: float = 0.0,
        background: bool = False,
    ) -> Start | None:
        """Take a slot and the next start. If the start is more than ``patience`` seconds from now, take neither.

        Return None if no slot is free, or if other processes have precedence: processes without a slot that have waited
        for longer, and for a ``background`` download all processes in which a download waits that is not in the
        background. ``spacing``: seconds from this start to the next one, if one process uses the throttle.
        """
        if self.slots and min(self.slots.values()) <= now:
            self.slots = {name: until for name, until in self.slots.items() if until > now}
        # Every reserved start holds a slot, so no start is later than ``last``, unless the clock was set back.
        owner = token.rpartition(":")[0]
        last = now + 2 * (limit.concurrency + 1) * limit.delay * processes
        start = min(max(now, self.next_at), last)
        if start - now > patience:
            return Start(start - now)
        ahead = self._ahead(now, owner, background=background) if self.waiting or self.background else 0
        waiting = self.background if background else self.waiting
        if len(self.slots) + ahead >= max(1, limit.concurrency // processes):
            latest = last + limit.lease
            self.slots = {name: min(until, latest) for name, until in self.slots.items()}
            if not now + WAITING_SECONDS / 2 < waiting.get(owner, 0.0) <= now + WAITING_SECONDS:
                for name in [name for name, until in waiting.items() if until <= now]:
                    del waiting[name]
                waiting[owner] = now + WAITING_SECONDS
            return None
        waiting.pop(owner, None)
        self.slots[token] = start + limit.lease
        if limit.delay:
            self.next_at = start + spacing * processes
        return Start(start - now, token)

    def _ahead(self, now: float, owner: str, *, background: bool) -> int:
        """Return the number of other processes whose downloads have precedence."""
        holders = {token.rpartition(":")[0] for token in self.slots}
        waiting = _still(self.background if background else self.waiting, now)
        slotless = [each for each in waiting if each not in holders]
        ahead = slotless.index(owner) if owner in slotless else len(slotless)
        return ahead + sum(each != owner for each in _still(self.waiting, now)) if background else ahead

    def release(self, _now: float, _processes: int, *, token: str) -> None:
        """Release a slot."""
        self.slots.pop(token, None)


def _still(waiting: dict[str, float], now: float) -> list[str]:
    """Return the processes that are assumed to wait at the time ``now``."""
    return [each for each, until in waiting.items() if now < until <= now + WAITING_SECONDS]


class Throttle:
    """Limits downloads: at most ``concurrency`` at once, whose starts are about ``delay`` seconds apart.

    The downloads of a process start in the order in which they began to wait, except that background downloads let the
    others start first. Only the first waiting download reserves a start. So a later download that is cancelled has
    taken no start from other processes.
    """

    def __init__(  # noqa: PLR0913  # the limits, and the location of their facts
        self,
        concurrency: int,
        delay: float = 0.0,
        jitter: float = JITTER,
        *,
        facts: Facts | None = None,
        name: str = "",
        lease: float = math.inf,
    ) -> None:
        """``jitter``: maximum deviation from the delay, as a share of it, so that requests have no fixed rhythm.

        ``facts``: the facts that contain the limits. None: the throttle creates its own. ``lease``: see ``Limit``.
        """
        self.limit = Limit(concurrency, delay, lease)
        self.jitter = jitter
        self.facts = facts or Facts()
        self.name = name
        self._starts = self.facts.known(Starts, name)
        self._held: dict[str, float] = {}
        """Token of each slot of this process -> the time (``time.monotonic()``) at which it was taken."""
        self._released: dict[str, tuple[float, Withdraw]] = {}
        """Token of each slot whose release may not be stored yet -> the time when it was taken, and the function that
        withdraws the release."""
        self._tokens = count()
        self._waiting: set[str] = set()
        """Tokens of the downloads of this process that wait for their turn or a slot, without background downloads."""
        self._turn = asyncio.Lock()
        """The lock of the next download to start."""
        self._background = asyncio.Lock()
        """The lock of the next background download to start."""
        self._freed = asyncio.Event()

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent downloads, divided among the processes that do not share their slots."""
        return max(1, self.limit.concurrency // self.facts.processes)

    @property
    def shortest_delay(self) -> float:
        """The shortest time in seconds between the starts of two downloads of this process."""
        return self.limit.delay * self.facts.processes * (1 - self.jitter)

    def _start_in(self, ahead: int = 0) -> float:
        """Return the minimum seconds until a download can start after the waiting downloads and ``ahead`` others.

        Downloads that other processes start may delay it further.
        """
        if not self.limit.delay:
            return 0.0
        return max(0.0, self._starts.next_at - self.facts.now()) + (ahead + len(self._waiting)) * self.shortest_delay

    def earliest(self, ahead: int = 0) -> float:
        """Return the earliest time (of the event loop) at which a download can start after ``ahead`` others."""
        return asyncio.get_running_loop().time() + self._start_in(ahead)

    def free_in(self) -> float:
        """Return the seconds until ``acquire`` need not wait, as far as this process knows.

        ``inf``: this process must release a slot first.
        """
        return math.inf if len(self._held) >= self.concurrency else self._start_in()

    async def acquire(self, deadline: float | None = None, *, background: bool = False) -> ReleaseSlot:
        """Wait for a slot, and return the function that releases it. ``deadline`` is a time of the event loop.

        ``background``: let all other downloads start first. The start of a background download is not reserved ahead.

        Raises:
            Overloaded: the download cannot start before the deadline. The error is raised as soon as this is certain,
                but for a background download at the deadline.
            UpstreamTimeout: the deadline passed while no slot was free.
        """
        wait = self._start_in()
        if deadline is not None and not background and asyncio.get_running_loop().time() + wait >= deadline:
            raise no_slot_before_deadline(wait)
        token, attempts = f"{self.facts.owner}:{next(self._tokens)}", count()
        try:
            async with asyncio.timeout_at(deadline):
                if background:
                    start = await self._after_others(token)
                else:
                    self._waiting.add(token)
                    async with self._turn:
                        while (taken := await self._take(token, deadline)) is None:
                            await self._slot_is_free(next(attempts))
                        start = taken
                        self._waiting.remove(token)
                        if start.token and start.seconds > 0:
                            await asyncio.sleep(start.seconds)
        except BaseException as error:
            self._waiting.discard(token)
            self._release(token)
            if not isinstance(error, TimeoutError):
                raise
            seconds = self._start_in()
            raise (no_slot_before_deadline(seconds) if seconds else no_slot_in_time()) from None
        if start.token is None:
            raise no_slot_before_deadline(start.seconds)
        return partial(self._release, start.token)

    async def _after_others(self, token: str) -> Start:
        """Wait until a background download can start without delay after all other downloads. Then take its slot."""
        attempts = count()
        async with self._background:
            while True:
                while seconds := self._start_in():  # noqa: ASYNC110  # other downloads delay the next start
                    await asyncio.sleep(seconds)
                async with self._turn:
                    start = await self._take(token, background=True)
                if start is None:  # while this download waits for a slot, other downloads may start
                    await self._slot_is_free(next(attempts))
                elif start.token:
                    return start

    async def _take(self, token: str, deadline: float | None = None, *, background: bool = False) -> Start | None:
        """Take a slot that this process has just released, or else a slot shared by all processes (``Starts.take``).

        A background download takes no slot that was just released: downloads of other processes may wait for it.
        """
        patience = 0.0 if background else math.inf
        if background:
            self._released.clear()
        elif deadline is not None:
            patience = deadline - asyncio.get_running_loop().time()
        while self._released:
            former, (taken_at, withdraw) = self._released.popitem()
            if withdraw():
                self._held[former] = taken_at
                return Start(0.0, former)
        spacing = self.limit.delay * jittered(self.jitter) if self.limit.delay else 0.0
        take = partial(
            Starts.take, limit=self.limit, token=token, patience=patience, spacing=spacing, background=background
        )
        start = await self.facts.change(Starts, self.name, take)
        if start is not None and start.token:
            self._held[token] = time.monotonic()
        return start

    async def _slot_is_free(self, attempt: int) -> None:
        """Wait until this process releases a slot, or another process may have released one (``POLL_SECONDS``)."""
        self._freed.clear()
        shortest, longest = POLL_SECONDS
        seconds = min(shortest * 1.2**attempt, longest) * jittered(0.5) if self.facts.shared else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._freed.wait()

    def _release(self, token: str) -> None:
        taken_at = self._held.pop(token, -math.inf)
        withdraw = self.facts.change_soon(Starts, self.name, partial(Starts.release, token=token))
        if self.facts.shared and not self.limit.delay and time.monotonic() < taken_at + REUSE_SECONDS:
            self._released[token] = taken_at, withdraw
        self._freed.set()


def jittered(jitter: float) -> float:
    """Return a random factor between 1 - ``jitter`` and 1 + ``jitter``."""
    return random.uniform(1 - jitter, 1 + jitter)  # noqa: S311  # no secret


def no_slot_before_deadline(seconds: float) -> Overloaded:
    """Return the error for a request that cannot get a slot before its deadline."""
    wait = math.ceil(seconds)
    return Overloaded(f"The platform's next download slot is free in {wait} s, after the deadline.", retry_after=wait)


def no_slot_in_time() -> UpstreamTimeout:
    """Return the error for a request that waited for a slot until its deadline."""
    return UpstreamTimeout("The deadline passed while waiting for a download slot.", reason=NO_SLOT)
