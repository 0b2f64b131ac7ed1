"""Target sources: the spider's arguments, the endpoint's queue. Targets files are in ``files.py``."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crawler.targets.target import InvalidTarget, Outcome, Target, TargetParser


class TargetsUnavailableError(Exception):
    """Raised when a source cannot provide its targets, or not all of them. It ends the run with the message."""


class TargetSource:
    """The base class of target sources."""

    keeps_followups: ClassVar[bool] = False
    """Whether the source stores the follow-ups of an outcome and returns them later."""

    async def open(self) -> None:
        """Prepare the source, before the first target is taken.

        Raises:
            TargetsUnavailableError: the source cannot be read.
        """

    def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        """Yield targets in order. Sources read ahead little or nothing."""
        raise NotImplementedError

    def owns(self, target: Target | InvalidTarget) -> bool:
        """Whether this run certainly still owns a target, so that its outcome may be reported."""
        return True

    async def confirm(self, target: Target | InvalidTarget) -> bool:
        """Check whether this run still owns a target. Called if ``owns`` is not certain."""
        return True

    def completed(self, outcome: Outcome) -> None:
        """Handle an outcome. Called once for each target, after the receivers of ``target_completed``."""

    @property
    def expected(self) -> int | None:
        """The total number of targets, or None if it is not known."""
        return None

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the source. A resumed run must have the same one."""
        return {}


@dataclass
class ArgumentSource(TargetSource):
    """A source of a single target: the spider's own arguments."""

    parser: TargetParser
    params: Mapping[str, Any]

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        yield self.parser.parse(self.params, text=True, row=0)

    @property
    def expected(self) -> int:
        return 1

    @property
    def identity(self) -> dict[str, Any]:
        return {"params": dict(self.params)}


@dataclass
class QueueSource(TargetSource):
    """The endpoint's source. It ends only when closed, and outlives the crawlers that iterate over it."""

    on_outcome: Callable[[Outcome], None]
    _waiting: OrderedDict[str, Target] = field(default_factory=OrderedDict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    renewing: bool = False
    """Whether the current iteration ends at the next target."""
    iterated: bool = False
    """Whether a spider iterates over it."""
    _closed: bool = False

    def __len__(self) -> int:
        """Return the number of waiting targets."""
        return len(self._waiting)

    def put(self, target: Target) -> None:
        """Add a target at the end of the queue."""
        if self._closed:
            raise RuntimeError("put() after close()")
        self._waiting[target.id] = target
        self._changed.set()

    def discard(self, target_id: str) -> bool:
        """Remove a waiting target, because its client disconnected. Return False if a spider has already taken it."""
        return self._waiting.pop(target_id, None) is not None

    def renew(self) -> None:
        """End the current iteration, and with it its crawler after its targets complete. The queue is kept."""
        self.renewing = True
        self._changed.set()

    def close(self) -> None:
        """End the source after all waiting targets have been taken."""
        self._closed = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        self.renewing = False
        self.iterated = True
        try:
            while not self.renewing:
                if self._waiting:
                    yield self._waiting.popitem(last=False)[1]
                elif self._closed:
                    return
                else:
                    self._changed.clear()
                    await self._changed.wait()
        finally:
            self.iterated = False

    def completed(self, outcome: Outcome) -> None:
        """Pass the outcome to ``on_outcome``."""
        self.on_outcome(outcome)
