"""Throttles, which limit the number of concurrent downloads, and the rate of their starts.

The rate is that of the generic cell rate algorithm (GCRA): ``next_at`` is the time until which the past starts have
used up the rate. Each start moves it on by the delay, and a start may be early by the delays of the burst. So a window
of any length has at most as many starts as the burst, and one more for each delay in it.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from itertools import count
from typing import ClassVar, NamedTuple

from crawler.downloads.facts import Fact, Facts, Withdraw
from crawler.errors import Overloaded, UpstreamTimeout

ReleaseSlot = Callable[[], None]

NO_SLOT = "no_turn"
"""Reason of an ``UpstreamTimeout``: no slot became free before the deadline of the target."""
JITTER = 0.5
"""Maximum deviation of delays and gaps, as a share of them, so that requests have no fixed rhythm."""
REUSE_SECONDS = 1.0
"""Seconds for which a process may use a slot for several downloads without a transaction in the store. After that, the
process releases the slot, and processes without a slot have priority. If the budget has a delay, and for background
downloads, each start needs a transaction."""
POLL_SECONDS = 0.02, 0.25
"""Shortest and longest seconds between two attempts to get a slot while other processes have taken all slots. Each time
is then varied randomly by up to half."""
CLOCK_SECONDS = 1.0
"""Seconds by which the clock of the facts may be ahead of the process's own clock, because decisions take time."""
WAITING_SECONDS = 1.0
"""Seconds for which a process that found no free slot counts as waiting, unless it gets a slot earlier."""


class Limit(NamedTuple):
    """The limits of a throttle, for all processes together."""

    concurrency: int
    delay: float = 0.0
    """Seconds per start of a download, in the long run."""
    lease: float = math.inf
    """Seconds from the start of a download after which its slot is free again, because the process may have crashed."""
    burst: int = 1
    """Number of downloads that may start at once after a rest. A rest of ``burst * delay`` seconds restores it."""
    gap: float = 0.0
    """Seconds between two starts, also within a burst."""

    def share(self, processes: int) -> Limit:
        """Return the equal share of one of the ``processes``."""
        if processes == 1:
            return self
        concurrency, burst = max(1, self.concurrency // processes), max(1, self.burst // processes)
        return self._replace(
            concurrency=concurrency, burst=burst, delay=self.delay * processes, gap=self.gap * processes
        )

    @property
    def allowance(self) -> float:
        """The seconds by which a start may be early: the delays of a full burst, except for the start itself."""
        return (self.burst - 1) * self.delay


def longest_wait(limit: Limit, share: Limit) -> float:
    """Return the maximum number of seconds until a reserved start. It is limited, because each one holds a slot.

    If a fact has a later time, the clock was set back after it was written. ``share``: the limits of one process.
    """
    return 2 * (limit.concurrency + 1) * max(share.delay, share.gap)


class Start(NamedTuple):
    """The result of an attempt to start a download."""

    seconds: float
    """Seconds until the start."""
    token: str | None = None
    """The slot that is reserved with the start. None: nothing is reserved, because the start would be too late."""


class Starts(Fact):
    """The state of a throttle: the times of the next start, the taken slots, and the processes that wait for a slot."""

    kind: ClassVar[str] = "throttle"
    next_at: float = 0.0
    """The time until which the starts so far have used up the rate. Without a burst, it is that of the next start."""
    slots: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Token of the slot -> the time at which its lease ends."""
    waiting: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Process that found no free slot -> until when it is assumed to wait for one."""
    background: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Process that found no free slot for a background download -> until when it is assumed to wait for one."""
    gap_until: float = 0.0
    """The end of the gap after the last start."""

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
        debt: float = -math.inf,
        vary: float = 0.0,
        background: bool = False,
    ) -> Start | None:
        """Take a slot and the next start. If the start is more than ``patience`` seconds from now, take neither.

        Return None if no slot is free, or if other processes have precedence: processes without a slot that have waited
        for longer, and for a ``background`` download all processes in which a download waits that is not in the
        background. A background download leaves the burst to the others.

        ``spacing``: seconds of the rate that the start uses up, if one process uses the throttle. ``debt``: seconds
        until ``next_at``, as the process itself knows; the fact may state less, because the clock was set ahead or the
        store was unavailable. ``vary``: the share of a delay by which a start that must wait is later than necessary,
        and the share of the gap by which the gap is longer.
        """
        if self.slots and min(self.slots.values()) <= now:
            self.slots = {name: until for name, until in self.slots.items() if until > now}
        owner, share = token.rpartition(":")[0], limit if processes == 1 else limit.share(processes)
        allowance = share.allowance
        last = now + longest_wait(limit, share)
        # Stored even if nothing is taken: otherwise, after the clock was set back, each attempt would wait as long.
        self.next_at = min(max(self.next_at, now + debt), last + allowance)
        self.gap_until = min(self.gap_until, last)
        next_at = max(now, self.next_at)
        late = min(vary * share.delay, allowance)
        start = next_at - (late if background else allowance)
        if start > now and not background:
            start += late
        start = max(now, start, self.gap_until)
        if start - now > patience:
            return Start(start - now)
        ahead = self._ahead(now, owner, background=background) if self.waiting or self.background else 0
        waiting = self.background if background else self.waiting
        if len(self.slots) + ahead >= share.concurrency:
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
            self.next_at = max(start, next_at) + spacing * processes
        if limit.gap:
            self.gap_until = start + share.gap * (1 + vary)
        return Start(start - now, token)

    def drain(self, now: float, processes: int, *, limit: Limit) -> None:
        """Use up the burst, because the platform has refused a request."""
        self.next_at = max(self.next_at, now + limit.share(processes).allowance)

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
    """Limits downloads: at most ``concurrency`` at once, one for each ``delay`` seconds, and ``burst`` after a rest.

    The downloads of a process start in the order in which they began to wait, except that background downloads let the
    others start first, and downloads that are ``first`` start before the others. Only the first waiting download
    reserves a start. So a later download that is cancelled has taken no start from other processes.
    """

    def __init__(  # noqa: PLR0913  # the limits, and the location of their facts
        self,
        concurrency: int,
        delay: float = 0.0,
        jitter: float = JITTER,
        *,
        burst: int = 1,
        gap: float = 0.0,
        facts: Facts | None = None,
        name: str = "",
        lease: float = math.inf,
    ) -> None:
        """``jitter``: see ``JITTER``. The other limits: see ``Limit``.

        ``facts``: the facts that contain the limits. None: the throttle creates its own.
        """
        self.limit = Limit(concurrency, delay, lease, burst, gap)
        self.is_paced = delay > 0 or gap > 0
        """Whether a start may have to wait although a slot is free."""
        self.jitter = jitter
        self.facts = facts or Facts()
        self.name = name
        self._starts = self.facts.known(Starts, name)
        if burst > 1:
            self._starts.next_at = max(self._starts.next_at, self.facts.kept(name))
        self._next = -math.inf
        """The time (``time.monotonic()``) of ``next_at``, as it was at the last decision of this process."""
        self._held: dict[str, float] = {}
        """Token of each slot of this process -> the time (``time.monotonic()``) at which it was taken."""
        self._released: dict[str, tuple[float, Withdraw]] = {}
        """Token of each slot whose release may not be stored yet -> the time when it was taken, and the function that
        withdraws the release."""
        self._tokens = count()
        self._waiting: set[str] = set()
        """Tokens of the downloads of this process that wait for their turn or a slot, without background downloads."""
        self._queue = asyncio.Lock()
        """The lock of the next download to wait for its turn, unless it is ``first``."""
        self._turn = asyncio.Lock()
        """The lock of the next download to start."""
        self._background = asyncio.Lock()
        """The lock of the next background download to start."""
        self._freed = asyncio.Event()

    @property
    def _share(self) -> Limit:
        return self.limit.share(self.facts.processes)

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent downloads, divided among the processes that do not share their slots."""
        return self._share.concurrency

    @property
    def shortest_delay(self) -> float:
        """The shortest time in seconds between two starts of this process, when the burst is used up."""
        share = self._share
        return share.delay * (1 - self.jitter) if share.burst == 1 else share.delay

    @property
    def burst_left(self) -> int:
        """The number of downloads that this process may start from now on without a delay between them, at least 1."""
        share = self._share
        return max(1, math.floor(share.burst - max(0.0, self._left[0]) / share.delay if share.delay else 1))

    @property
    def _left(self) -> tuple[float, float]:
        """The seconds until ``next_at`` and until the end of the gap, as far as this process knows.

        0 in place of more than ``longest_wait``, because the clock was then set back: ``Starts.take`` decides.
        """
        share, now = self._share, self.facts.now()
        longest = longest_wait(self.limit, share)
        rate, gap = self._starts.next_at - now, self._starts.gap_until - now
        return rate if rate <= longest + share.allowance else 0.0, gap if gap <= longest else 0.0

    def start_in(self, ahead: int = 0, *, background: bool = False) -> float:
        """Return the minimum seconds until a download can start after the waiting downloads and ``ahead`` others.

        Downloads that other processes start may delay it further. ``background``: whether it leaves the burst to
        others.
        """
        if not self.is_paced:
            return 0.0
        (rate, gap), share, others = self._left, self._share, ahead + len(self._waiting)
        early = min(self.jitter * share.delay, share.allowance) if background else share.allowance
        by_rate = max(0.0, rate) + others * self.shortest_delay - early
        return max(0.0, by_rate, gap + others * share.gap)

    def starts_within(self, seconds: float) -> float:
        """Return the number of downloads that the budget lets start in this time, without those that wait already."""
        (rate, gap), share = self._left, self._share
        left = math.inf
        if share.delay:
            left = math.floor((seconds + share.allowance - max(0.0, rate)) / share.delay) + 1
        if share.gap:
            left = min(left, math.floor((seconds - max(0.0, gap)) / share.gap) + 1)
        return max(0, left)

    def free_in(self, *, background: bool = False) -> float:
        """Return the seconds until ``acquire`` need not wait, as far as this process knows.

        ``inf``: this process must release a slot first.
        """
        return math.inf if len(self._held) >= self.concurrency else self.start_in(background=background)

    async def acquire(
        self, deadline: float | None = None, *, background: bool = False, first: bool = False
    ) -> ReleaseSlot:
        """Wait for a slot, and return the function that releases it. ``deadline`` is a time of the event loop.

        ``background``: let all other downloads start first. The start of a background download is not reserved ahead.
        ``first``: start before the downloads that wait for their turn.

        Raises:
            Overloaded: the download cannot start before the deadline. The error is raised as soon as this is certain,
                but for a background download at the deadline.
            UpstreamTimeout: the deadline passed while no slot was free.
        """
        if deadline is not None and self._waiting and not background:  # else ``Starts.take`` refuses it
            wait = self.start_in()
            if asyncio.get_running_loop().time() + wait >= deadline:
                raise no_slot_in_time(wait)
        token, attempts = f"{self.facts.owner}:{next(self._tokens)}", count()
        try:
            async with asyncio.timeout_at(deadline):
                if background:
                    start = await self._after_others(token)
                else:
                    self._waiting.add(token)
                    async with nullcontext() if first else self._queue, self._turn:
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
            raise no_slot_in_time(self.start_in()) from None
        if start.token is None:
            raise no_slot_in_time(start.seconds)
        return partial(self._release, start.token)

    async def _after_others(self, token: str) -> Start:
        """Wait until a background download can start without delay after all other downloads. Then take its slot."""
        attempts = count()
        async with self._background:
            while True:
                while seconds := self.start_in(background=True):  # noqa: ASYNC110  # other downloads delay the next start
                    await asyncio.sleep(seconds)
                async with self._turn:
                    start = await self._take(token, background=True)
                if start is None:  # while this download waits for a slot, other downloads may start
                    await self._slot_is_free(next(attempts))
                elif start.token:
                    return start
                else:
                    await asyncio.sleep(start.seconds)

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
        limit = self.limit
        take = partial(
            Starts.take,
            limit=limit,
            token=token,
            patience=patience,
            spacing=limit.delay and limit.delay * (jittered(self.jitter) if limit.burst == 1 else 1),
            debt=self._next - time.monotonic() - CLOCK_SECONDS,
            vary=self.jitter * random.random(),  # noqa: S311  # no secret
            background=background,
        )
        start = await self.facts.change(Starts, self.name, take)
        if limit.delay:
            self._next = time.monotonic() + self._starts.next_at - self.facts.now()
        if start is not None and start.token:
            self._held[token] = time.monotonic()
            if limit.burst > 1:
                self.facts.keep(self.name, self._starts.next_at)
        return start

    async def drain(self) -> None:
        """Use up the burst, because the platform has refused a request."""
        if self.limit.burst > 1:
            await self.facts.change(Starts, self.name, partial(Starts.drain, limit=self.limit))
            self.facts.keep(self.name, self._starts.next_at)

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
        if self.facts.shared and not self.is_paced and time.monotonic() < taken_at + REUSE_SECONDS:
            self._released[token] = taken_at, withdraw
        self._freed.set()


def jittered(jitter: float) -> float:
    """Return a random factor between 1 - ``jitter`` and 1 + ``jitter``."""
    return random.uniform(1 - jitter, 1 + jitter)  # noqa: S311  # no secret


def no_slot_in_time(seconds: float = 0) -> Overloaded | UpstreamTimeout:
    """Return the error for a request that gets no slot before its deadline.

    ``seconds``: until a slot is free, which is after the deadline. 0: the request waited until its deadline.
    """
    if not seconds:
        return UpstreamTimeout("The deadline passed while waiting for a download slot.", reason=NO_SLOT)
    wait = math.ceil(seconds)
    return Overloaded(f"The platform's next download slot is free in {wait} s, after the deadline.", retry_after=wait)
