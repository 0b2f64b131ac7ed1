"""The sources that targets come from: the spider's arguments, the endpoint's queue. Files are in ``files.py``."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crawler.targets.target import InvalidTarget, Outcome, Target, TargetParser


class TargetsUnavailableError(Exception):
    """Raised when a source cannot give its targets, or no more of them: the message says why. It ends the run."""


class TargetSource:
    """Where targets come from."""

    keeps_followups: ClassVar[bool] = False
    """Whether what a target led to comes back through the source, which learns of it with the target's outcome."""

    async def open(self) -> None:
        """Makes ready, before the first target is asked for.

        Raises:
            TargetsUnavailableError: there is nothing to read from.
        """

    def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        """Targets in order. Nothing is read ahead of what is asked for, or little."""
        raise NotImplementedError

    def holds(self, target: Target | InvalidTarget) -> bool:
        """Whether a target is certainly still this run's, so that its outcome may be reported."""
        return True

    async def confirm(self, target: Target | InvalidTarget) -> bool:
        """Find out whether a target is still this run's, where ``holds`` is not certain."""
        return True

    def completed(self, outcome: Outcome) -> None:
        """Handle an outcome. Called once for each target, after the receivers of ``target_completed``."""

    @property
    def expected(self) -> int | None:
        """How many targets there will have been, as far as it can be told."""
        return None

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this source from others: a resumed run must be of the same one."""
        return {}


@dataclass
class ArgumentSource(TargetSource):
    """A source of one: the spider's own arguments."""

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
    """The endpoint's source: it never ends by itself, and outlives the crawlers that it feeds."""

    on_outcome: Callable[[Outcome], None]
    _waiting: OrderedDict[str, Target] = field(default_factory=OrderedDict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    renewing: bool = False
    """Whether the present iteration has been asked to end."""
    iterated: bool = False
    """Whether a spider takes from it."""
    _closed: bool = False

    def __len__(self) -> int:
        """How many targets wait for a spider to take them."""
        return len(self._waiting)

    def put(self, target: Target) -> None:
        """Adds a target at the end of the line."""
        if self._closed:
            raise RuntimeError("put() after close()")
        self._waiting[target.id] = target
        self._changed.set()

    def discard(self, target_id: str) -> bool:
        """Takes a target out of the line again: whoever asked for it is gone. False where a spider already has it."""
        return self._waiting.pop(target_id, None) is not None

    def renew(self) -> None:
        """Ends the present iteration, and so its crawler once its targets are settled. The line waits for the next."""
        self.renewing = True
        self._changed.set()

    def close(self) -> None:
        """Ends for good when all that waits has been taken."""
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
        """Hands the outcome to whoever put the target."""
        self.on_outcome(outcome)
