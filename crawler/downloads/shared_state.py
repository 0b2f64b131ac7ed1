"""State that the crawlers of a process share, such as the throttle and circuit breakers of each platform.

Without shared state, a second crawler for a platform would double the load on the platform, and a restarted crawler
would not know that the platform has just blocked requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from crawler import platforms
from crawler.downloads.breaker import (
    CONNECTION,
    MAX_COOLDOWN_SECONDS,
    PLATFORM,
    BreakerKey,
    BreakerPolicy,
    Breakers,
    CircuitBreaker,
)
from crawler.downloads.egress_setting import egresses_of, platform_capacity
from crawler.downloads.facts import Facts
from crawler.downloads.lane import Lane
from crawler.downloads.lanes import Lanes, Refusals
from crawler.downloads.throttle import Throttle
from crawler.jobs import prepare, store_location

T = TypeVar("T")


class SharedState:
    """Objects that the crawlers of a process share: throttles, circuit breakers, guest tokens, the browser and others.

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

    async def close(self) -> None:
        """If facts are shared, store the last decisions for other processes, and disconnect from the store."""
        facts: Facts | None = self._parts.get((Facts, ""))
        if facts is not None:
            await facts.close()


def platform_lanes(shared: SharedState, name: str, settings: BaseSettings) -> Lanes:
    """Return the lanes of a platform, one for each egress. The first call makes them from the settings.

    Raises:
        ValueError: the setting ``EGRESSES`` is wrong, or ``PLATFORM_BUDGETS`` names an unknown platform.
        UsageError: as for ``platform_facts``.
    """
    return shared.get(Lanes, name, lambda: _make_lanes(name, settings, platform_facts(shared, settings)))


def _make_lanes(name: str, settings: BaseSettings, facts: Facts) -> Lanes:
    keep = max(settings.getfloat("RETRY_AFTER_MAX"), MAX_COOLDOWN_SECONDS)
    return Lanes(tuple(_lanes(name, settings, facts)), Refusals(keep, name, facts))


def platform_facts(shared: SharedState, settings: BaseSettings) -> Facts:
    """Return the facts that limit the requests and calls of this process: with ``SHARED_LIMITS``, those in the store.

    Raises:
        UsageError: ``SHARED_LIMITS`` is set, and ``STORE`` cannot be used.
    """
    return shared.get(Facts, "", lambda: _facts(settings))


def _facts(settings: BaseSettings) -> Facts:
    processes = settings.getint("PROCESSES")
    if settings.getbool("SANDBOX"):
        return Facts(processes)
    if not settings.getbool("SHARED_LIMITS"):
        return Facts(processes, _budgets_folder(settings))
    from crawler.jobs.shared_facts import SharedFacts  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    location = store_location(settings)
    prepare(location)
    return SharedFacts(location, processes)


def _budgets_folder(settings: BaseSettings) -> Path | None:
    """Return the folder beside the store's file in which the next starts of budgets are kept, or None without a file.

    There is no such file on Scrapy Cloud and outside of a project.
    """
    with suppress(UsageError):
        location = store_location(settings)
        return None if "://" in location else Path(location).with_name("budgets")
    return None


def _lanes(name: str, settings: BaseSettings, facts: Facts) -> Iterator[Lane]:
    policy = BreakerPolicy(
        settings.getint("BREAKER_THRESHOLD"),
        settings.getfloat("BREAKER_COOLDOWN"),
        settings.getfloat("RETRY_AFTER_MAX"),
    )
    at_once = replace(policy, threshold=1)
    egresses = egresses_of(name, settings)
    platform = CircuitBreaker(at_once, BreakerKey(name, PLATFORM), facts) if len(egresses) > 1 else None
    lease = 2 * settings.getfloat("DOWNLOAD_TIMEOUT")
    for egress in egresses:
        breakers = Breakers(name, policy, facts, egress.key)
        failures = CircuitBreaker(at_once, BreakerKey(name, CONNECTION, egress.key), facts)
        if settings.getbool("SANDBOX"):  # simulated platforms need no delay
            yield Lane(egress, Throttle(16), {}, breakers, failures, platform)
            continue
        limits = egress.budget(name, settings)
        capacity = platform_capacity(name, limits) if name in platforms.platforms() else 0.0
        sources = {
            source: Throttle(**each, facts=facts, name=f"{name}:{source}{egress.key}", lease=lease)
            for source, each in limits["sources"].items()
        }
        budget = {key: value for key, value in limits.items() if key != "sources"}
        throttle = Throttle(**budget, facts=facts, name=f"{name}:{egress.key}", lease=lease)
        yield Lane(egress, throttle, sources, breakers, failures, platform, targets_per_hour=capacity)
