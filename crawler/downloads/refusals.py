"""The memory of refusals: through which egress a platform refused a target, and which egresses have met a wall.

A wall is one source's refusals for one reason, such as its login wall. An egress has met it when the refusals have
opened the source's circuit breaker. A refused target is not sent through another egress. ``redis_refusals.py`` shares
the memory among processes.
"""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

import orjson

from crawler.targets.target import Target

WALL_SECONDS = 600.0
"""If more than half of a platform's egresses meet the same wall within this many seconds, all egresses rest."""
MAX_TARGETS = 100_000
"""Maximum number of refused targets that a process remembers."""


class Refusals(Protocol):
    """Interface of the memory of one platform's refusals."""

    async def remember(self, key: str, egress: str) -> None:
        """Remember that a target was refused through an egress."""

    def known(self, key: str) -> str | None:
        """Return the name of the egress through which a target was refused in this process, or None."""

    async def egress_of(self, key: str) -> str | None:
        """Return the name of the egress through which a target was refused in any process, or None."""

    async def meet(self, wall: str, egress: str) -> int:
        """Note that an egress has met a wall. Return how many egresses have met it in the last ``WALL_SECONDS``.

        ``wall``: the source and the reason of the refusals.
        """

    async def forget(self, wall: str) -> None:
        """Forget which egresses have met a wall."""


def target_key(target: Target) -> str:
    """Return the key of a target: the same for equal params of the same scraper, also if one has a link instead."""
    text = orjson.dumps([target.scraper.name, target.identity], option=orjson.OPT_SORT_KEYS)
    return sha256(text).hexdigest()[:32]


@dataclass
class LocalRefusals:
    """One platform's refusals in one process. ``keep_seconds``: how long a refused target is remembered."""

    keep_seconds: float
    _targets: OrderedDict[str, tuple[str, float]] = field(default_factory=OrderedDict)
    _walls: defaultdict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    async def remember(self, key: str, egress: str) -> None:
        """See ``Refusals``."""
        self._targets[key] = egress, time.monotonic() + self.keep_seconds
        self._targets.move_to_end(key)
        if len(self._targets) > MAX_TARGETS:
            self._targets.popitem(last=False)

    def known(self, key: str) -> str | None:
        """See ``Refusals``."""
        egress, until = self._targets.get(key, (None, 0.0))
        return egress if time.monotonic() < until else None

    async def egress_of(self, key: str) -> str | None:
        """See ``Refusals``."""
        return self.known(key)

    async def meet(self, wall: str, egress: str) -> int:
        """See ``Refusals``."""
        now = time.monotonic()
        self._walls[wall][egress] = now
        return sum(now - met <= WALL_SECONDS for met in self._walls[wall].values())

    async def forget(self, wall: str) -> None:
        """See ``Refusals``."""
        self._walls.pop(wall, None)
