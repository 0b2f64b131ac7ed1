"""Checks the settings when a command starts, before it opens files or sends requests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from pydantic import ValidationError
from scrapy.settings import BaseSettings, default_settings
from scrapy.spiderloader import get_spider_loader

from crawler.configuration.suggestions import nearest
from crawler.downloads.egress_setting import check_egresses
from crawler.platforms import platforms
from crawler.platforms.model import first_problem
from crawler.platforms.requests import check_platform_ids
from crawler.registry import spider
from crawler.settings import Settings

ORIGIN = re.compile(r"https?://[^/?#\s]+")
PREFIX = "CRAWLER_"
"""The prefix of the environment variables that override settings."""
SERVICE_LINK = re.compile(
    r".+_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)
"""Matches the variables that Kubernetes sets in each pod for each service, such as ``CRAWLER_ENDPOINT_PORT`` for
``crawler-endpoint``."""
SIMILARITY = 0.87
"""An environment variable counts as misspelled if its similarity (0 to 1) to the name of a setting is at least this.
Settings of this project's dependencies are less similar: ``ZYTE_API_ETH_KEY`` and ``ZYTE_API_KEY`` have 0.86."""


def check_settings(settings: BaseSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Check the names of all settings. Check the values of those in ``Settings``, and convert them to their types.

    Raises:
        ValueError: a setting is wrong. The message names the setting and what is wrong with it, and ends with ``.`` or
            ``?``.
    """
    if problem := misspelled_name(settings, environment):
        raise ValueError(problem)
    given = {name: settings[name] for name in Settings.model_fields if name in settings}
    try:
        checked = Settings.model_validate(given)
    except ValidationError as error:
        raise ValueError(f"{first_problem(error)}.") from None
    for name in given:
        settings.set(name, getattr(checked, name), priority=settings.getpriority(name) or 0)
    for check in CHECKS:
        check(settings)


def misspelled_name(settings: BaseSettings, environment: Mapping[str, str]) -> str | None:
    """Return a sentence about the first setting whose name is misspelled. None: no name is misspelled.

    An environment variable with the prefix ``CRAWLER_`` counts as misspelled if its name is similar to a setting of
    this project or of Scrapy. A setting from another place (such as ``-s``) may belong to the user's project, so it
    counts as misspelled only if its name differs from a field of ``Settings`` by one letter, or by two swapped ones.
    """
    known = {*Settings.model_fields, *filter(str.isupper, vars(default_settings))}
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX)
        if name == variable or name in known or SERVICE_LINK.fullmatch(variable):
            continue
        if near := nearest(name, known, SIMILARITY):
            return f"{variable}: no setting is called {name}; did you mean {PREFIX}{near}?"
    for name in sorted(settings.keys() - known):
        if similar := [each for each in Settings.model_fields if _differ_in_one_letter(name, each)]:
            return f"{name}: no setting is called {name}; did you mean {similar[0]}?"
    return None


def _differ_in_one_letter(one: str, other: str) -> bool:
    """Whether two names differ by one added letter, one replaced letter, or two swapped neighbouring letters."""
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[same:], other[same:]
    swapped = one[:2] == other[1::-1] and one[2:] == other[2:]
    return swapped or one[1:] == other[1:] or one[1:] == other or one == other[1:]


def _check_launch_options(settings: BaseSettings) -> None:
    """Refuse a proxy of the browser alone, which would bypass the egress of the target."""
    if "proxy" in settings["PLAYWRIGHT_LAUNCH_OPTIONS"]:
        raise ValueError("PLAYWRIGHT_LAUNCH_OPTIONS: remove proxy. The browser uses the proxies in EGRESSES.")


def _check_names(settings: BaseSettings) -> None:
    """Check the names of platforms in settings, and that platforms in ``BROWSER_FALLBACK`` allow it."""
    if settings["PLATFORM_BUDGETS"].keys() - platforms().keys():
        known = [*platforms(), *get_spider_loader(settings).list()]
        _check_known("PLATFORM_BUDGETS", "platform", settings["PLATFORM_BUDGETS"], known)
    named = [key for key in settings["PLATFORM_ORIGINS"] if not ORIGIN.fullmatch(key)]
    _check_known("PLATFORM_ORIGINS", "platform", named, platforms())
    _check_known("BROWSER_FALLBACK", "platform", settings["BROWSER_FALLBACK"], platforms())
    for name in settings["BROWSER_FALLBACK"]:
        if not spider(name).can_use_browser:
            raise ValueError(f"BROWSER_FALLBACK: blocked pages of {name} cannot be loaded in the browser.")


def _check_known(setting: str, kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = list(dict.fromkeys(known))
    if unknown := sorted({*names} - {*known}):
        raise ValueError(f"{setting}: no {kind} is called {unknown[0]}; use {', '.join(known)}.")


def _check_origins(settings: BaseSettings) -> None:
    for name, value in settings["PLATFORM_ORIGINS"].items():
        if not (isinstance(value, str) and ORIGIN.fullmatch(value)):
            raise ValueError(
                f'PLATFORM_ORIGINS: {name}: expected an origin such as "http://127.0.0.1:8000", not {value!r}.'
            )


CHECKS = (_check_launch_options, _check_names, _check_origins, check_platform_ids, check_egresses)
"""The checks of values that depend on other settings, on platforms or on files."""
