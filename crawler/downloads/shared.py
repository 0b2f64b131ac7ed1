"""State that the crawlers of a process share, such as the throttle and circuit breakers of each platform.

Without it, a second crawler for the same platform would double the load on the platform, and a crawler that replaces
another one would ignore that the platform has just blocked requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from crawler import platforms
from crawler.downloads.breaker import (
    CONNECTION,
    MAX_COOLDOWN_SECONDS,
    PLATFORM,
    BreakerKey,
    BreakerPolicy,
    Breakers,
    CircuitBreaker,
    LocalBreaker,
)
from crawler.downloads.capacity import platform_capacity
from crawler.downloads.egress import egresses_of
from crawler.downloads.lane import Lane
from crawler.downloads.lanes import Lanes
from crawler.downloads.refusals import LocalRefusals, Refusals
from crawler.downloads.throttle import LocalThrottle, Throttle

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

T = TypeVar("T")


class SharedState:
    """Throttles, circuit breakers, guest tokens and the browser of a process.

    A command that runs several crawlers passes the same object to all spiders (argument ``shared``). A spider without
    this argument creates its own object.
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[type, str], Any] = {}

    def get(self, kind: type[T], name: str, make: Callable[[], T]) -> T:
        """Return the shared object of this class and name. ``make`` creates it on first use."""
        key = (kind, name)
        if key not in self._parts:
            self._parts[key] = make()
        return cast("T", self._parts[key])


def platform_lanes(shared: SharedState, name: str, settings: BaseSettings) -> Lanes:
    """Return the throttles and circuit breakers of a platform, for each egress, made from the settings on first use.

    Raises:
        ValueError: the setting ``EGRESSES`` is wrong.
    """
    return shared.get(Lanes, name, lambda: Lanes(tuple(_lanes(name, settings)), _refusals(name, settings)))


def _lanes(name: str, settings: BaseSettings) -> Iterator[Lane]:
    policy = BreakerPolicy(
        settings.getint("BREAKER_THRESHOLD"),
        settings.getfloat("BREAKER_COOLDOWN"),
        settings.getfloat("RETRY_AFTER_MAX"),
    )
    make = _breaker_factory(settings)
    at_once = replace(policy, threshold=1)
    egresses = egresses_of(name, settings)
    platform = make(at_once, BreakerKey(name, PLATFORM)) if len(egresses) > 1 else None
    for egress in egresses:
        breakers = Breakers(name, policy, partial(make, policy), egress.key)
        failures = make(at_once, BreakerKey(name, CONNECTION, egress.key))
        if settings.getbool("SANDBOX"):  # simulated platforms need no delay
            limits: dict[str, Any] = {"concurrency": 16, "delay": 0.0, "sources": {}}
            yield Lane(egress, LocalThrottle(concurrency=16), {}, breakers, failures, platform, limits=limits)
            continue
        limits = egress.budget(name, settings)
        capacity = platform_capacity(name, limits) if name in platforms.platforms() else 0.0
        sources = {
            source: _throttle(f"{name}:{source}{egress.key}", each, settings)
            for source, each in limits["sources"].items()
        }
        budget = {key: value for key, value in limits.items() if key != "sources"}
        throttle = _throttle(f"{name}{egress.key}", budget, settings)
        yield Lane(egress, throttle, sources, breakers, failures, platform, targets_per_hour=capacity, limits=limits)


def _refusals(name: str, settings: BaseSettings) -> Refusals:
    keep = max(settings.getfloat("RETRY_AFTER_MAX"), MAX_COOLDOWN_SECONDS)
    url = settings.get("REDIS_URL")
    if not url or settings.getbool("SANDBOX"):
        return LocalRefusals(keep)
    from crawler.downloads.redis_refusals import RedisRefusals  # noqa: PLC0415  # needs the extra "redis"
    from crawler.storage.redis_client import connect  # noqa: PLC0415  # likewise

    return RedisRefusals(connect(url), name, keep)


def _breaker_factory(settings: BaseSettings) -> Callable[[BreakerPolicy, BreakerKey], CircuitBreaker]:
    url = settings.get("REDIS_URL")
    if not url or settings.getbool("SANDBOX"):
        return lambda policy, _: LocalBreaker(policy)
    from crawler.downloads.redis_breaker import RedisBreaker  # noqa: PLC0415  # needs the extra "redis"
    from crawler.storage.redis_client import connect  # noqa: PLC0415  # likewise

    redis = connect(url)
    return lambda policy, key: RedisBreaker(redis, key, policy)


def _throttle(name: str, budget: dict[str, Any], settings: BaseSettings) -> Throttle:
    whole = LocalThrottle(**budget)
    local = whole.share(settings.getint("PROCESSES"))
    url = settings.get("REDIS_URL")
    if not url:
        return local
    from crawler.downloads.redis_throttle import RedisThrottle  # noqa: PLC0415  # needs the extra "redis"

    timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
    return RedisThrottle(url, f"turns:{name}", whole.concurrency, whole.delay, download_timeout=timeout, local=local)
