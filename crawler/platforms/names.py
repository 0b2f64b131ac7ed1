"""Reads the file of the setting ``PAYLOAD_NAMES``: further paths of values, so that a renamed key needs no release.

::

    {"retail.Row": {"averageRating": "rating.value", "imageInfo": ["media.image", "media.picture"]}}
    {"professional.sections": {"skills": "member-skills", "skills[].name": ".skill__title"}}

The file contains one object for each contract, under the contract's platform and class. The keys of this object are
declared paths, or their beginnings. Its values are the further paths, which are tried before the declared ones
(``crawler/reading/names.py``). For a table of selectors, the keys are sections, rows and values in rows, and the values
are section names and CSS selectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from crawler.logs import one_line
from crawler.platforms import platforms
from crawler.reading.contract import Contract, values
from crawler.reading.names import NO_NAMES, Line, Names, SelectorTable, WrongLineError, beginnings, check_line, label
from crawler.reading.paths import joined, steps

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = structlog.get_logger(__name__)

SETTING = "PAYLOAD_NAMES"
MAX_BYTES = 1_000_000
MAX_PATH = 300
"""Maximum number of characters of a path. The longest declared path has 130."""
MAX_STEPS = 30
MAX_FURTHER = 10
"""Maximum number of further paths for one declared path. Each path that is absent from a row costs time."""


class WrongNamesError(ValueError):
    """The file of names cannot be read, or contains an invalid line. The message is one sentence."""


def names_in(settings: BaseSettings) -> Names:
    """Return the names in the file of the setting ``PAYLOAD_NAMES``, or no names if the setting is empty.

    Raises:
        WrongNamesError: the file cannot be read, or is not valid.
    """
    location = settings[SETTING]
    return load_names(location) if location else NO_NAMES


def load_names(location: str) -> Names:
    """Return the names in a file. ``location``: its path or URI.

    Raises:
        WrongNamesError: the file cannot be read, or is not valid.
    """
    import fsspec  # noqa: PLC0415  # most crawls need no file system

    try:
        with fsspec.open(location, "rb") as file:
            body = file.read(MAX_BYTES + 1)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise WrongNamesError(f"{SETTING}: cannot read {location}: {_cause(error)}.") from None
    if len(body) > MAX_BYTES:
        raise WrongNamesError(f"{SETTING}: {location} has more than {MAX_BYTES:,} bytes.")
    try:
        return parse_names(body)
    except WrongNamesError as error:
        raise WrongNamesError(f"{SETTING}: {location}: {error}") from None


def _cause(error: Exception) -> str:
    return one_line(getattr(error, "strerror", None) or str(error) or type(error).__name__, 200)


def parse_names(body: bytes) -> Names:
    """Return the names in a JSON document.

    Raises:
        WrongNamesError: the document is not valid JSON, or contains an invalid line.
    """
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WrongNamesError(f"it is not valid JSON: {error.msg} at character {error.pos}.") from None
    if not isinstance(data, dict):
        raise WrongNamesError('expected an object of contracts, such as {"retail.Row": {"name": "title"}}.')
    return Names(tuple(line for label, lines in data.items() for line in _lines(label, lines)))


def _lines(label: str, lines: Any) -> Iterator[Line]:
    kind = _contract(label)
    if not isinstance(lines, dict):
        raise WrongNamesError(f'{label}: expected an object of paths, such as {{"name": "title"}}.')
    known = {steps(path): path for path in beginnings(kind)}
    sections = ", ".join(path for path in known.values() if "[]" not in path)
    others = f"; the sections are {sections}." if isinstance(kind, SelectorTable) else "."
    for declared, further in lines.items():
        where = f"{label}: {one_line(declared, 100)}"
        if _steps(declared, where) not in known:
            raise WrongNamesError(f"{where} is not a path of {label}{_did_you_mean(declared, known.values(), others)}")
        paths = further if isinstance(further, list) else [further]
        if not paths or len(paths) > MAX_FURTHER:
            raise WrongNamesError(f"{where}: expected a path, or a list of at most {MAX_FURTHER}.")
        for path in paths:
            line = Line(kind, known[_steps(declared, where)], _further(kind, path, where))
            try:
                check_line(line)
            except WrongLineError as error:
                raise WrongNamesError(f"{where}: {error}.") from None
            yield line


def _further(kind: type[Contract] | SelectorTable, path: object, where: str) -> str:
    if not isinstance(kind, SelectorTable):
        return joined(_steps(path, where))
    if not isinstance(path, str):
        raise WrongNamesError(f"{where}: expected the name of a section or a CSS selector.")
    return path


def _steps(path: object, where: str) -> tuple[str | int, ...]:
    if not isinstance(path, str) or len(path) > MAX_PATH:
        raise WrongNamesError(f"{where}: expected a path such as rows[].title, of at most {MAX_PATH} characters.")
    try:
        found = steps(path)
    except ValueError:
        raise WrongNamesError(f"{where}: {one_line(path, 100)!r} is not a path such as rows[].title.") from None
    if len(found) > MAX_STEPS:
        raise WrongNamesError(f"{where}: a path has at most {MAX_STEPS} keys.")
    return found


def _contract(label: str) -> type[Contract] | SelectorTable:
    shown, platform = one_line(label, 100), label.partition(".")[0]
    if platform not in platforms():
        hint = _did_you_mean(platform, platforms(), others=f"; use a platform and a class: {', '.join(platforms())}.")
        raise WrongNamesError(f"{shown}: no platform is called {one_line(platform, 60)}{hint}")
    known = contracts_of(platform) | tables_of(platform)
    if label not in known:
        raise WrongNamesError(f"{shown} is not a contract{_did_you_mean(label, known)}")
    return known[label]


def _did_you_mean(name: str, known: Any, others: str = ".") -> str:
    near = get_close_matches(name[:MAX_PATH], list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else others


@cache
def contracts_of(platform: str) -> dict[str, type[Contract]]:
    """Return the contracts of a platform that declare values, by their labels, such as ``retail.Row``."""
    kinds = (each for each in _declared(platform) if isinstance(each, type) and issubclass(each, Contract))
    return {label(each): each for each in kinds if each is not Contract and values(each)}


@cache
def tables_of(platform: str) -> dict[str, SelectorTable]:
    """Return the tables of selectors of a platform, by their labels, such as ``professional.sections``."""
    return {label(each): each for each in _declared(platform) if isinstance(each, SelectorTable)}


def _declared(platform: str) -> Iterator[object]:
    """Yield the objects in the modules of a platform."""
    package = import_module(f"crawler.platforms.{platform}")
    for module in iter_modules(package.__path__):
        yield from vars(import_module(f"{package.__name__}.{module.name}")).values()


class PayloadNames:
    """The names in force in a process. A target in flight keeps the names that were in force when it started."""

    def __init__(self, settings: BaseSettings) -> None:
        """Read the file. Raise ``WrongNamesError`` if the file cannot be read, or is not valid."""
        self._settings = settings
        self.current = names_in(settings)

    def reload(self) -> None:
        """Read the file again and log the result. If the file is invalid, the previous names stay in force."""
        try:
            self.current = names_in(self._settings)
        except WrongNamesError as error:
            logger.error("payload_names_refused", reason=str(error), lines_in_force=len(self.current.lines))  # noqa: TRY400
        else:
            logger.info("payload_names_loaded", lines=len(self.current.lines))


def check_payload_names(settings: BaseSettings) -> None:
    """Check the file that ``PAYLOAD_NAMES`` names. The check runs when a command starts.

    Raises:
        WrongNamesError: the file cannot be read, or is not valid.
    """
    names_in(settings)
