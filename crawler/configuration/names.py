"""Finds misspelled names of settings, which would have no effect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache

from scrapy.settings import BaseSettings, default_settings

from crawler.configuration.declaration import declarations

PREFIX = "CRAWLER_"
"""The prefix of environment variables that set a setting."""
SERVICE_LINK = re.compile(
    r".+_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)
"""Variables that Kubernetes sets in each pod for each service: ``CRAWLER_ENDPOINT_PORT`` for ``crawler-endpoint``."""
SIMILARITY = 0.87
"""The least similarity of a misspelled variable to a setting, from 0 to 1. No setting of the packages that this project
uses is as similar to another package's: ``ZYTE_API_ETH_KEY`` and ``ZYTE_API_KEY`` have 0.86."""


def misspelled_name(settings: BaseSettings, environment: Mapping[str, str]) -> str | None:
    """Return a sentence about the first setting whose name is misspelled, or None.

    An environment variable with the prefix ``CRAWLER_`` is misspelled if it is similar to a setting of this project or
    of Scrapy. A setting from another place (such as ``-s``) may be a setting of the user's project: it is misspelled
    only if its name differs by one letter from that of a declared setting.
    """
    known = {*declarations(), *_names_of_scrapy()}
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX)
        if name == variable or name in known or SERVICE_LINK.fullmatch(variable):
            continue
        if near := get_close_matches(name.upper(), known, n=1, cutoff=SIMILARITY):
            return f"{variable}: no setting is called {name}; did you mean {PREFIX}{near[0]}?"
    for name in sorted(settings.keys() - known):
        if near := _one_letter_off(name, declarations()):
            return f"{name}: no setting is called {name}; did you mean {near[0]}?"
    return None


@cache
def _names_of_scrapy() -> frozenset[str]:
    return frozenset(name for name in vars(default_settings) if name.isupper())


def _one_letter_off(name: str, others: Iterable[str]) -> list[str]:
    """Return the names that differ from ``name`` by one letter: added, left out, replaced, or swapped with the next."""
    return [other for other in others if _differ_in_one_letter(name, other)]


def _differ_in_one_letter(one: str, other: str) -> bool:
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[same:], other[same:]
    swapped = one[:2] == other[1::-1] and one[2:] == other[2:]
    return swapped or one[1:] == other[1:] or one[1:] == other or one == other[1:]
