"""Remembers refusals: the egress through which a platform refused a target, and the egresses that have met a wall.

A *wall* is a reason for which a source refuses requests, such as its login wall. An egress has met a wall when refusals
for this reason have opened the source's circuit breaker. As long as a refusal is remembered, the target is
not sent through another egress.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from crawler.downloads.facts import Fact, Facts
from crawler.targets.target import Target

WALL_SECONDS = 600.0
"""If more than half of a platform's egresses meet the same wall within this many seconds, all are suspended."""


def target_key(target: Target) -> str:
    """Return the target's ``key`` as text, for the name of a fact."""
    return target.key.hex()


class Refused(Fact):
    """A target that the platform has refused through an egress."""

    kind: ClassVar[str] = "refused"
    egress: str = ""
    """The name of the egress."""
    until: float = 0.0
    """The time until which the refusal is remembered."""

    def ends(self) -> float:
        return self.until

    def remember(self, now: float, _processes: int, *, egress: str, seconds: float) -> None:
        """Remember the egress of a refusal for ``seconds``."""
        self.egress, self.until = egress, now + seconds


class Wall(Fact):
    """A reason for which a source refuses requests (a wall), and the egresses that have met it."""

    kind: ClassVar[str] = "wall"
    met: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Name of an egress -> the time at which the egress met the wall last."""

    def ends(self) -> float:
        return max(self.met.values(), default=0.0) + WALL_SECONDS

    def meet(self, now: float, _processes: int, *, egress: str) -> int:
        """Record that an egress has met the wall.

        Return the number of egresses that met it in the last ``WALL_SECONDS``.
        """
        self.met = {name: at for name, at in self.met.items() if abs(now - at) <= WALL_SECONDS} | {egress: now}
        return len(self.met)

    def forget(self, _now: float, _processes: int) -> None:
        """Forget all egresses that have met the wall."""
        self.met = {}


@dataclass
class Refusals:
    """Remembers the refusals of one platform. ``keep_seconds``: seconds for which a refused target is remembered."""

    keep_seconds: float
    platform: str = ""
    facts: Facts = field(default_factory=Facts)

    async def remember(self, key: str, egress: str) -> None:
        """Remember that a target was refused through an egress."""
        remember = partial(Refused.remember, egress=egress, seconds=self.keep_seconds)
        await self.facts.change(Refused, self._name(key), remember)

    def known(self, key: str) -> str | None:
        """Return the name of the egress through which a target was refused, as far as this process knows, or None."""
        return self._valid(self.facts.find(Refused, self._name(key)))

    async def egress_of(self, key: str) -> str | None:
        """Return the name of the egress through which a target was refused in any process, or None."""
        return self._valid(await self.facts.look_up(Refused, self._name(key)))

    async def meet(self, wall: str, egress: str) -> int:
        """Record that an egress has met a wall. Return the number of egresses that met it in the last ``WALL_SECONDS``.

        ``wall``: the source and the reason of the refusals.
        """
        return await self.facts.change(Wall, self._name(wall), partial(Wall.meet, egress=egress))

    async def forget(self, wall: str) -> None:
        """Forget which egresses have met a wall."""
        await self.facts.change(Wall, self._name(wall), Wall.forget)

    def _name(self, key: str) -> str:
        return f"{self.platform}:{key}"

    def _valid(self, found: Refused | None) -> str | None:
        return found.egress if found is not None and self.facts.now() < found.until else None
