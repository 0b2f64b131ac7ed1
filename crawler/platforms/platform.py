"""The platforms' real origins, the one place where they are spelt, and how much each bears."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PUBLIC_ORIGINS: dict[str, str] = {
    "photoapp": "https://www.instagram.com",
    "shortvideo": "https://www.tiktok.com",
    "videosite": "https://www.youtube.com",
    "microblog": "https://x.com",
    "professional": "https://www.linkedin.com",
    "retail": "https://www.walmart.com",
}

FURTHER_ORIGINS: dict[str, dict[str, str]] = {
    # By role, where a platform is asked at other origins than that of its pages, too.
    "microblog": {"embed": "https://syndication.twitter.com", "api": "https://api.x.com"},
}

BUDGETS: dict[str, dict[str, float]] = {
    # Downloads at once and seconds between their starts, for one address without a proxy; from each platform's notes.
    "photoapp": {"concurrency": 1, "delay": 30.0},
    "shortvideo": {"concurrency": 2, "delay": 0.0},
    "videosite": {"concurrency": 2, "delay": 1.5},
    "microblog": {"concurrency": 1, "delay": 3.0},
    "professional": {"concurrency": 1, "delay": 60.0},
    "retail": {"concurrency": 2, "delay": 2.0},
}


def origins(name: str, settings: BaseSettings) -> str | dict[str, str]:
    """A platform's origins: those of ``PLATFORM_ORIGINS``, else the public ones."""
    found: str | dict[str, str] | None = _given("PLATFORM_ORIGINS", name, settings)
    return found or {"page": PUBLIC_ORIGINS[name], **FURTHER_ORIGINS.get(name, {})}


def budget(name: str, settings: BaseSettings) -> dict[str, Any]:
    """A platform's budget, with what ``PLATFORM_BUDGETS`` says otherwise."""
    return BUDGETS.get(name, {}) | (_given("PLATFORM_BUDGETS", name, settings) or {})


def _given(setting: str, name: str, settings: BaseSettings) -> Any:
    """What a setting says of a platform, None where it says nothing.

    Raises:
        ValueError: it names a platform that there is not: the real one would be asked, and at full speed.
    """
    given = settings.getdict(setting)
    unknown = given.keys() - PUBLIC_ORIGINS.keys() - {name}
    if unknown:
        known = ", ".join(PUBLIC_ORIGINS)
        raise ValueError(f"{setting}: no platform is called {', '.join(unknown)}; there are {known}")
    return given.get(name)
