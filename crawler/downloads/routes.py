"""A platform's routes: for each egress its throttles and circuit breakers, and which targets use it.

A target is bound to one route for all of its requests, so that the platform sees one visitor from start to end.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import structlog

from crawler.downloads.breaker import (
    CONNECTION,
    PLATFORM,
    Breakers,
    CircuitBreaker,
    is_response,
    refusal_reason,
    resting_seconds,
)
from crawler.downloads.egress import Egress
from crawler.downloads.refusals import Refusals, target_key
from crawler.downloads.throttle import Throttle
from crawler.errors import (
    CircuitOpen,
    EgressFailed,
    ScrapeError,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.targets.target import InvalidTarget, Outcome, Target

logger = structlog.get_logger(__name__)

REFUSED = (UpstreamBlocked, UpstreamRateLimited)
"""The platform's refusals. A target that has one of these errors is not sent through another egress."""
NOT_SENT = UpstreamError("not sent", reason="not_sent")
"""What a breaker counts for a request that it let through, but that was not sent: neither a block nor an answer."""
LOST_TARGETS = 2
"""An egress rests after this many targets have lost their connections. A response through it resets their number."""


@dataclass(eq=False)
class Route:
    """A platform's way through one egress: its throttles and its circuit breakers."""

    egress: Egress
    budget: Throttle
    sources: Mapping[str, Throttle]
    """Source -> its throttle, for sources with their own budget. Their requests use the platform's budget, too."""
    breakers: Breakers
    connection: CircuitBreaker
    """Open while the egress rests because of its own failures."""
    platform: CircuitBreaker | None = None
    """Open while the platform rests as a whole. None: the platform has only this egress."""
    targets: int = 0
    """Number of targets in flight that are bound to the route."""
    last_bound: int = 0
    """Number of the last binding of a target to the route. The bindings of all routes of a platform are numbered."""
    failures: int = 0
    """Failures of the egress that ``take_failures`` has not returned yet."""
    targets_per_hour: float = 0.0
    """How many targets per hour the budget allows."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The budget as configured, for all processes together: ``concurrency``, ``delay`` and ``sources``."""
    _lost: set[str] = field(default_factory=set)
    """Ids of the targets that have lost their connections since the platform's last response."""

    def __post_init__(self) -> None:
        own = self.connection if self.egress.can_fail else None
        self.route_breakers = {
            name: each for name, each in ((CONNECTION, own), (PLATFORM, self.platform)) if each is not None
        }
        """The breakers that stop the requests to all sources."""

    def throttles(self, source: str | None) -> Iterator[Throttle]:
        """Yield the throttles for a request to a source: the source's own, if it has one, then the platform's."""
        if source is not None and source in self.sources:
            yield self.sources[source]
        yield self.budget

    async def enter(self, source: str) -> float:
        """Return 0 if a request to a source may be sent, else the seconds to wait."""
        passed: list[CircuitBreaker] = []
        for breaker in (*self.route_breakers.values(), self.breakers[source]):
            if wait := await breaker.enter():
                for each in passed:  # so that another request can be their trial
                    await each.record(NOT_SENT)
                return wait
            passed.append(breaker)
        return 0.0

    def rest(self, source: str) -> float:
        """Return the seconds for which the route rests for a source, as far as this process knows."""
        left = self.breakers[source].cooldown_left
        return max(left, self.route_rest) if self.route_breakers else left

    @property
    def route_rest(self) -> float:
        """Seconds for which no source may be requested, because the egress has failed or the whole platform rests."""
        return max((breaker.cooldown_left for breaker in self.route_breakers.values()), default=0.0)

    def open_seconds(self, source: str) -> float:
        """Return the seconds since the route began to rest for a source. 0 if it does not rest."""
        return max(each.open_seconds or 0.0 for each in (*self.route_breakers.values(), self.breakers[source]))

    async def count(self, source: str, error: ScrapeError | None, status: int | None = None) -> None:
        """Count the result of a request: a failure of the egress, or else a result of the platform's source.

        ``error``: None if the request succeeded. ``status``: the response's HTTP status.
        """
        if isinstance(error, EgressFailed):
            self.failures += not self.connection.cooldown_left  # else a consequence of a failure that was counted
            await self.connection.record(error)
            return
        await self.breakers.count(source, error, status)
        if not self.egress.can_fail:
            return
        if is_response(error):
            self._lost.clear()
            await self.connection.record(None)
        elif self.connection.open_seconds is not None:
            await self.connection.record(NOT_SENT)

    async def count_lost(self, target: Target) -> None:
        """Count a target whose connections were lost in every try. After ``LOST_TARGETS`` of them, the egress rests."""
        self._lost.add(target.id)
        if len(self._lost) >= LOST_TARGETS:
            self._lost.clear()
            self.failures += 1
            await self.connection.record(egress_failed(self.egress.name, "connections were lost"))

    def take_failures(self) -> int:
        """Return the number of failures of the egress since the last call of this method."""
        number, self.failures = self.failures, 0
        return number

    @property
    def resting(self) -> float:
        """Seconds until a source may be requested, as far as this process knows. 0 if one may be requested now."""
        route_cooldowns = {name: breaker.cooldown_left for name, breaker in self.route_breakers.items()}
        return resting_seconds(self.breakers.cooldowns | route_cooldowns)

    def next_slot(self, seconds: float) -> tuple[bool, float, float, int]:
        """Return the sort key of the route. A target that is not bound gets the route with the lowest one.

        It consists of whether no request may be sent, the seconds until the next slot, the targets per slot, and the
        number of the last binding. ``seconds``: the seconds until the next slot, negative if the slot is free already.
        """
        return self.route_rest > 0, round(max(seconds, 0.0), 2), self.targets / self.budget.concurrency, self.last_bound


def egress_failed(name: str, why: str) -> EgressFailed:
    """Return the error for a failure of an egress."""
    return EgressFailed(f"The egress {name} failed: {why}.", reason="egress_failed")


@dataclass
class _Binding:
    """The route of a target in flight."""

    route: Route
    fixed: bool = False
    """Whether all further requests of the target must use this route."""
    sent: bool = False
    """Whether a request of the target was sent through this route."""
    failed: Route | None = None
    """The route that the target has left because its egress failed. The target does not use it again."""


@dataclass
class Routes:
    """The routes of one platform, one for each egress."""

    routes: tuple[Route, ...]
    refusals: Refusals
    on_completed: Callable[[Outcome, str], None] = lambda _, __: None
    """Called with each outcome, and the name of its target's egress: "" if the target was not bound to one."""
    _bound: dict[str, _Binding] = field(default_factory=dict)
    _storing: set[asyncio.Task[None]] = field(default_factory=set)
    _bindings: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.single = len(self.routes) == 1
        """Whether the platform has only one egress. Then no target needs to be bound."""

    def __iter__(self) -> Iterator[Route]:
        return iter(self.routes)

    def of(self, target: Target | None) -> Route:
        """Return the route of a target. If the target is not bound, return the route whose next slot comes first."""
        if self.single:
            return self.routes[0]
        binding = self._bound.get(target.id) if target else None
        return binding.route if binding else self._by_next_slot(self.routes)[0]

    def candidates(self, target: Target | None) -> Sequence[Route]:
        """Return the routes that a target's next request may use: the fixed one, or several by their next slots."""
        if self.single:
            return self.routes
        binding = self._bound.get(target.id) if target else None
        if binding is None:
            return self._by_next_slot(self.routes)
        if binding.fixed:
            return (binding.route,)
        return self._by_next_slot([route for route in self.routes if route is not binding.failed])

    def is_fixed(self, target: Target | None) -> bool:
        """Whether the target must keep its route: a request was sent, or will contain the egress's guest token."""
        binding = self._bound.get(target.id) if target else None
        return binding is not None and binding.fixed

    async def refused_by(self, target: Target | None) -> Route | None:
        """Return the route through which the platform has refused a target before. None: the target may use any route.

        Also None once a request of the target was sent, because it is then bound to a route.
        """
        if self.single or target is None:
            return None
        binding = self._bound.get(target.id)
        if binding is not None and binding.sent:
            return None
        return self._named(await self.refusals.egress_of(target_key(target)))

    def use(self, target: Target | None, route: Route) -> None:
        """Bind a target to a route for all of its requests, because one of them is about to be sent."""
        self.bind(target, route, fixed=True)
        if target is not None and target.id in self._bound:
            self._bound[target.id].sent = True

    def bind(self, target: Target | None, route: Route, *, fixed: bool = False) -> None:
        """Bind a target to a route. ``fixed``: for all of its requests. Otherwise a later call may change the route."""
        if self.single or target is None:
            return
        binding = self._bound.get(target.id)
        if binding is None:
            binding = self._bound[target.id] = _Binding(route)
            route.targets += 1
            route.last_bound = next(self._bindings)
        elif binding.route is not route:
            binding.route.targets -= 1
            route.targets += 1
            route.last_bound = next(self._bindings)
            binding.route = route
        binding.fixed = binding.fixed or fixed

    def assign(self, target: Target, source: str) -> Route:
        """Return the route of a target, for all of its requests.

        If none is fixed, it is the route through which the platform has refused the target before. Otherwise it is the
        route with the earliest slot, of the routes that do not rest for the source. Used for targets whose first
        request contains the egress's guest token. ``source``: the source of this request.
        """
        if self.single or self.is_fixed(target):
            return self.of(target)
        candidates = self.candidates(target)
        refused = self._named(self.refusals.known(target_key(target)))
        free = (route for route in candidates if not route.open_seconds(source))
        route = refused if refused and refused in candidates else next(free, candidates[0])
        self.bind(target, route, fixed=True)
        return route

    def _named(self, egress: str | None) -> Route | None:
        return next((route for route in self.routes if route.egress.name == egress), None)

    def leave(self, target: Target) -> None:
        """Let a target that starts anew use any other route, because the egress of its route has failed."""
        binding = self._bound[target.id]
        binding.fixed = binding.sent = False
        binding.failed = binding.route

    def is_bound(self, target: Target) -> bool:
        """Whether a target in flight is bound to a route."""
        return target.id in self._bound

    def is_outdated(self, meta: Mapping[str, Any]) -> bool:
        """Whether a request must not be sent any more: its target has started anew or was completed since it was made.

        ``meta``: the request's meta. It has the key ``bound`` if the target was bound to a route when the request was
        made, and the key ``restarted`` if the target had already started anew.
        """
        if self.single or (target := meta.get("target")) is None:
            return False
        binding = self._bound.get(target.id)
        if binding is None:
            return "bound" in meta
        return binding.failed is not None and "restarted" not in meta

    @property
    def in_use(self) -> tuple[Route, ...]:
        """The routes that do not rest. If all rest, the routes that rest only for the sources requested so far.

        Through such a route, a fallback may still work: a source that was not requested yet, and so has no breaker.
        """
        if self.single and not self.routes[0].egress.can_fail:
            return self.routes
        working = tuple(route for route in self.routes if not route.route_rest)
        return tuple(route for route in working if not route.resting) or working

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent downloads through the routes that do not rest."""
        return sum(route.budget.concurrency for route in self.in_use)

    def earliest(self, ahead: int = 0) -> float:
        """Return the earliest time (of the event loop) at which a download can start after ``ahead`` others.

        It may be too early, but never too late: through several routes, it assumes the sum of their rates.

        Raises:
            CircuitOpen: all egresses rest.
        """
        routes = self.in_use
        if not routes:
            rest = math.ceil(min(route.resting for route in self.routes))
            raise CircuitOpen("All egresses of the platform rest.", retry_after=rest, reason="circuit_open")
        if len(routes) == 1:
            return routes[0].budget.earliest(ahead)
        rate = sum(1 / shortest if (shortest := route.budget.shortest_delay) else math.inf for route in routes)
        first = min(route.budget.earliest() for route in routes)
        return first + max(0, ahead + 1 - len(routes)) / rate

    def idle_at(self) -> float:
        """Return the earliest time (of the event loop) at which no download waits for a slot of one of the routes.

        Raises:
            CircuitOpen: all egresses rest.
        """
        self.earliest()
        return min(
            max(throttle.earliest() for throttle in (route.budget, *route.sources.values())) for route in self.in_use
        )

    @property
    def spacing(self) -> float:
        """The shortest time in seconds between the starts of two downloads through any route."""
        return min(route.budget.shortest_delay for route in self.routes) / len(self.routes)

    @property
    def targets_per_second(self) -> float:
        """How many targets per second the budgets of all egresses allow; 0 if it is not known."""
        return sum(route.targets_per_hour for route in self.in_use or self.routes) / 3_600

    @property
    def resting(self) -> float:
        """Seconds for which all egresses rest, as far as this process knows. 0: at least one can be used."""
        return min(route.resting for route in self.routes)

    async def count(self, target: Target, source: str, error: ScrapeError | None, status: int | None = None) -> None:
        """Count the result of a target's request. If most egresses have met the same wall, the platform rests."""
        if isinstance(error, CircuitOpen):
            return  # nothing was sent
        route = self.of(target)
        await route.count(source, error, status)
        platform = route.platform
        if platform is None:
            return
        if platform.open_seconds is not None:  # the request may have been the trial
            await platform.record(NOT_SENT if isinstance(error, EgressFailed) else error)
        elif isinstance(error, REFUSED) and route.breakers[source].cooldown_left:
            await self._meet_wall(platform, route, source, error)

    async def _meet_wall(self, platform: CircuitBreaker, met_by: Route, source: str, error: ScrapeError) -> None:
        """Note that an egress has met a wall (``refusals.py``). If more than half have, let the platform rest."""
        reason = refusal_reason(error)
        wall = f"{source}:{reason}"
        number = await self.refusals.meet(wall, met_by.egress.name)
        if 2 * number <= len(self.routes):
            return
        await self.refusals.forget(wall)
        seconds = math.ceil(max(route.breakers[source].cooldown_left for route in self.routes))
        logger.warning("platform_rests", source=source, reason=reason, egresses=number, seconds=seconds)
        await platform.record(UpstreamRateLimited(error.message, retry_after=seconds, reason=reason))

    def completed(self, outcome: Outcome) -> None:
        """Unbind a completed target. If the platform has refused it, remember the target and its egress."""
        target = outcome.target
        if isinstance(target, InvalidTarget):
            return
        binding = self._bound.pop(target.id, None)
        route = self.routes[0] if self.single else binding.route if binding else None
        self.on_completed(outcome, route.egress.name if route else "")
        if binding is None:
            return
        binding.route.targets -= 1
        if isinstance(outcome.error, REFUSED):
            storing = asyncio.ensure_future(self.refusals.remember(target_key(target), binding.route.egress.name))
            self._storing.add(storing)
            storing.add_done_callback(self._storing.discard)

    async def stored(self) -> None:
        """Wait until all refused targets are remembered, so that a later process knows them."""
        await asyncio.gather(*self._storing)

    def _by_next_slot(self, routes: Sequence[Route]) -> Sequence[Route]:
        earliest = {route: route.budget.earliest() for route in routes}
        now = asyncio.get_running_loop().time()  # read last: a free slot is then not later than now, even after a pause
        return sorted(routes, key=lambda route: route.next_slot(earliest[route] - now))
