"""State that the crawlers in a process share, such as the throttle and circuit breaker of each platform.

Without it, a second crawler for the same platform would double the load on the platform, and a crawler that replaces
another one would ignore that the platform has just blocked requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from crawler import platforms
from crawler.downloads.throttle import CircuitBreaker, LocalThrottle, Throttle

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


@dataclass(frozen=True)
class PlatformState:
    """The throttle and the circuit breaker that all crawlers of one platform share."""

    budget: Throttle
    breaker: CircuitBreaker


def platform_state(shared: SharedState, name: str, settings: BaseSettings) -> PlatformState:
    """Return the throttle and the circuit breaker of a platform. They are created from the settings on first use."""

    def make() -> PlatformState:
        breaker = CircuitBreaker(settings.getint("BREAKER_THRESHOLD"), settings.getfloat("BREAKER_COOLDOWN"))
        return PlatformState(_throttle(name, settings), breaker)

    return shared.get(PlatformState, name, make)


def _throttle(name: str, settings: BaseSettings) -> Throttle:
    if settings.getbool("SANDBOX"):
        return LocalThrottle(concurrency=16)  # simulated platforms need no delay
    whole = LocalThrottle(**platforms.budget(name, settings))
    local = whole.share(settings.getint("PROCESSES"))
    url = settings.get("REDIS_URL")
    if not url:
        return local
    from crawler.downloads.redis_throttle import RedisThrottle  # noqa: PLC0415  # needs the extra "redis"

    timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
    return RedisThrottle(url, f"turns:{name}", whole.concurrency, whole.delay, download_timeout=timeout, local=local)
