"""Finds misspelled names of settings, which would have no effect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from scrapy.settings import BaseSettings, default_settings

from crawler.configuration.declaration import declarations

PREFIX = "CRAWLER_"
"""The prefix of environment variables that set a setting."""
SERVICE_LINK = re.compile(
    r".+_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)
"""Variables that Kubernetes sets in each pod for each service: ``CRAWLER_ENDPOINT_PORT`` for ``crawler-endpoint``."""
OWN_PACKAGE = "social-retail-crawler"
"""The name of this project's package. Its code is not searched for settings, because all of them are declared."""
NEEDS_SCRAPY = re.compile(r"scrapy\b", re.IGNORECASE)


def misspelled_name(settings: BaseSettings, environment: Mapping[str, str]) -> str | None:
    """Return a sentence about the first setting whose name is misspelled, or None.

    Each environment variable with the prefix ``CRAWLER_`` must name a setting, except those that Kubernetes sets. A
    setting from another place (such as ``-s``) is misspelled if no installed package names it, and if its name differs
    by one letter from that of a declared setting.
    """
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX)
        if name and name != variable and not SERVICE_LINK.fullmatch(variable) and not _exists(name):
            near = get_close_matches(name, [*declarations(), *_names_of_scrapy()], n=1)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else "'scrapy settings --ours' lists the settings."
            return f"{variable}: no setting is called {name}; {hint}"
    for name in sorted(settings.keys() - declarations().keys() - _names_of_scrapy()):
        if (near := _one_letter_off(name, declarations())) and not _exists(name):
            return f"{name}: no setting is called {name}; did you mean {near[0]}?"
    return None


def _exists(name: str) -> bool:
    known = name in declarations() or name in _names_of_scrapy()
    return known or (name.isupper() and _defined_by_a_package(name))


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


def _defined_by_a_package(name: str) -> bool:
    """Whether Scrapy or an installed package that requires it names the setting in its code."""
    defined = rf"[\"']{re.escape(name)}[\"']|^\s*{re.escape(name)}\s*[:=]"
    code = _code_of_packages()
    return name.encode() in code and re.search(defined.encode(), code, re.MULTILINE) is not None


@cache
def _code_of_packages() -> bytes:
    """Return the Python code of Scrapy and of the installed packages that require it. Called only for unknown names."""
    files = (
        Path(str(file.locate()))
        for package in distributions()
        if package.name != OWN_PACKAGE
        and any(NEEDS_SCRAPY.match(each) for each in [package.name, *(package.requires or ())])
        for file in package.files or ()
        if file.suffix == ".py"
    )
    return b"\n".join(file.read_bytes() for file in files if file.is_file())
