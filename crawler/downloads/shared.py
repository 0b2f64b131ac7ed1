"""State that the crawlers of a process share, such as the throttle and circuit breakers of each platform.

Without it, a second crawler for the same platform would double the load on the platform, and a crawler that replaces
another one would ignore that the platform has just blocked requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from crawler import platforms
from crawler.downloads.breaker import BreakerKey, BreakerPolicy, Breakers, CircuitBreaker, LocalBreaker
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


@dataclass(frozen=True)
class PlatformState:
    """The throttles and the circuit breakers that all crawlers of one platform share."""

    budget: Throttle
    sources: Mapping[str, Throttle]
    """Source -> its throttle, for sources with their own budget. Their requests use the platform's budget, too."""
    breakers: Breakers

    def throttles(self, source: str | None) -> Iterator[Throttle]:
        """Yield the throttles for a request to a source: the source's own, if it has one, then the platform's."""
        if source is not None and source in self.sources:
            yield self.sources[source]
        yield self.budget


def platform_state(shared: SharedState, name: str, settings: BaseSettings) -> PlatformState:
    """Return the throttles and the circuit breakers of a platform, made from the settings on first use."""

    def make() -> PlatformState:
        policy = BreakerPolicy(
            settings.getint("BREAKER_THRESHOLD"),
            settings.getfloat("BREAKER_COOLDOWN"),
            settings.getfloat("RETRY_AFTER_MAX"),
        )
        breakers = Breakers(name, policy, _breaker_factory(policy, settings))
        if settings.getbool("SANDBOX"):  # simulated platforms need no delay
            return PlatformState(LocalThrottle(concurrency=16), {}, breakers)
        budget = platforms.budget(name, settings)
        sources = {
            source: _throttle(f"{name}:{source}", each, settings) for source, each in budget.pop("sources").items()
        }
        return PlatformState(_throttle(name, budget, settings), sources, breakers)

    return shared.get(PlatformState, name, make)


def _breaker_factory(policy: BreakerPolicy, settings: BaseSettings) -> Callable[[BreakerKey], CircuitBreaker]:
    url = settings.get("REDIS_URL")
    if not url or settings.getbool("SANDBOX"):
        return lambda _: LocalBreaker(policy)
    from crawler.downloads.redis_breaker import RedisBreaker  # noqa: PLC0415  # needs the extra "redis"
    from crawler.storage.redis_client import connect  # noqa: PLC0415  # likewise

    redis = connect(url)
    return lambda key: RedisBreaker(redis, key, policy)


def _throttle(name: str, budget: dict[str, Any], settings: BaseSettings) -> Throttle:
    whole = LocalThrottle(**budget)
    local = whole.share(settings.getint("PROCESSES"))
    url = settings.get("REDIS_URL")
    if not url:
        return local
    from crawler.downloads.redis_throttle import RedisThrottle  # noqa: PLC0415  # needs the extra "redis"

    timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
    return RedisThrottle(url, f"turns:{name}", whole.concurrency, whole.delay, download_timeout=timeout, local=local)
