"""Checks the settings when a command starts, before it opens files or sends requests."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pydantic import ValidationError
from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from crawler.configuration.declaration import Declaration, declarations
from crawler.configuration.names import misspelled_name
from crawler.downloads.egress import check_egresses
from crawler.platforms import platforms
from crawler.platforms.ids import check_platform_ids
from crawler.platforms.names import check_payload_names
from crawler.registry import scraper_names, spider

ORIGIN = re.compile(r"https?://[^/?#\s]+")
PAGE = "page"
"""The role (``page``, ``api``, ...) whose origin all roles have that ``PLATFORM_ORIGINS`` does not name."""


def check_settings(settings: BaseSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Check the names of all settings and the values of all declared settings, and convert these to their types.

    Raises:
        ValueError: a setting is wrong. The message is a sentence with the setting, its value and what is expected.
    """
    if problem := misspelled_name(settings, environment):
        raise ValueError(problem)
    for name, declaration in declarations().items():
        if name in settings:
            value = converted(declaration, settings[name])
            settings.set(name, value, priority=settings.getpriority(name) or 0)
    for check in CHECKS:
        check(settings)


def converted(declaration: Declaration, value: object) -> object:
    """Return the value of a setting, converted to the setting's type.

    Raises:
        ValueError: as for ``check_settings``.
    """
    try:
        return declaration.adapter.validate_python(value)
    except ValidationError as error:
        raise ValueError(_sentence(declaration, value, error)) from None


def _sentence(declaration: Declaration, value: object, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(each) for each in first["loc"] if isinstance(each, str))
    if first["type"] == "value_error":  # raised by the type's own validator, whose message has the value
        text = str(first["ctx"]["error"])
    elif place or first["loc"]:
        text = f"{_expected(first['msg'])}, not {declaration.shown(first['input'])}"
    else:
        text = f"expected {declaration.expectation}, not {declaration.shown(value)}"
    return f"{declaration.name}: {f'{place}: ' if place else ''}{text}."


def _expected(message: str) -> str:
    """Return a message of pydantic in the words of this project's messages: "expected ..."."""
    return message.replace("Input should be", "expected").replace(
        "Extra inputs are not permitted", "expected no such key"
    )


def _check_redis(settings: BaseSettings) -> None:
    """Refuse the setting of version 0.2 with which processes shared limits and queues: they would share nothing."""
    if settings["REDIS_URL"]:
        raise ValueError(
            "REDIS_URL: Redis is no longer used. Set STORE to a postgresql:// URL: jobs and endpoints share their "
            "limits through it, and other crawls with SHARED_LIMITS=1."
        )


def _check_platforms(settings: BaseSettings) -> None:
    """Check that the keys of ``PLATFORM_ORIGINS`` and ``PLATFORM_BUDGETS`` are names of platforms or spiders."""
    for name in ("PLATFORM_ORIGINS", "PLATFORM_BUDGETS"):
        unknown = settings.getdict(name).keys() - platforms().keys()
        if unknown and (unknown := unknown - set(get_spider_loader(settings).list())):
            raise ValueError(
                f"{name}: no platform is called {', '.join(sorted(unknown))}; use {', '.join(platforms())}."
            )


def _check_origins(settings: BaseSettings) -> None:
    for platform, value in settings.getdict("PLATFORM_ORIGINS").items():
        roles = value if isinstance(value, Mapping) else {PAGE: value}
        wrong = [each for each in roles.values() if not (isinstance(each, str) and ORIGIN.fullmatch(each))]
        if wrong or PAGE not in roles:
            raise ValueError(
                f'PLATFORM_ORIGINS: {platform}: expected an origin such as "http://127.0.0.1:8000", or an object of '
                f'role to origin with "{PAGE}", not {wrong[0] if wrong else value!r}.'
            )


def _check_browser_fallback(settings: BaseSettings) -> None:
    for name in settings.getlist("BROWSER_FALLBACK"):
        if name not in platforms():
            raise ValueError(f"BROWSER_FALLBACK: no platform is called {name}; use {', '.join(platforms())}.")
        if not spider(name).can_use_browser:
            raise ValueError(f"BROWSER_FALLBACK: blocked pages of {name} cannot be loaded in the browser.")


def _check_response_cache(settings: BaseSettings) -> None:
    unknown = sorted(settings.getdict("RESPONSE_CACHE").keys() - set(scraper_names()))
    if unknown:
        raise ValueError(f"RESPONSE_CACHE: no scraper is called {unknown[0]}; use {', '.join(scraper_names())}.")


CHECKS = (
    _check_redis,
    _check_platforms,
    _check_origins,
    _check_browser_fallback,
    _check_response_cache,
    check_platform_ids,
    check_payload_names,
    check_egresses,
)
"""The checks of values that depend on other settings, on platforms or on files."""
