"""What requests of several platforms share: headers of a browser, opaque cursors, and ids that a platform changes at
will, such as the ids of API queries and client versions.

A caller of a scraper passes the cursor of one page as a param to get the next page. A cursor is a checksum and the JSON
array ``[kind, payload]``, encoded as URL-safe base64. A cursor contains no secrets and is not signed. The checksum
detects cursors that were not copied correctly. Each platform's code checks whether the payload matches the params.

A platform with such ids has a file ``ids.json`` and a model of it, ``Ids``. The setting ``PLATFORM_IDS`` can name
another file to use instead, so that a changed id needs no release.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, urlsafe_b64encode
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import orjson
from pydantic import ConfigDict, ValidationError

from crawler.configuration.names import Described
from crawler.platforms import platforms, value_for
from crawler.platforms.model import first_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scrapy.settings import BaseSettings


NAVIGATION_HEADERS = {
    "Accept-Language": "en-US,en;q=0.9",  # platforms send texts and dates in this language
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-User": "?1",
    "Upgrade-Insecure-Requests": "1",
}


FILE = "ids.json"
SETTING = "PLATFORM_IDS"


class IdsModel(Described):
    """Base class of the models of the platforms' files ``ids.json``.

    A model rejects unknown and missing keys, and does not convert values.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Ids = TypeVar("Ids", bound=IdsModel)


def platform_ids(kind: type[Ids], name: str, settings: BaseSettings) -> Ids:
    """Return a platform's ids from the file that ``PLATFORM_IDS`` names for it, or else from the platform's own file.

    ``kind``: the model of the platform's file. ``name``: the name of the platform.

    Raises: ValueError: the setting is invalid, or the file cannot be read or does not match the model. The message is
    one sentence.
    """
    path = value_for(SETTING, name, settings)
    return shipped_ids(kind) if path is None else _load(kind, name, path)


@cache
def shipped_ids(kind: type[Ids]) -> Ids:
    """Return the ids from the file ``ids.json`` next to the model's module."""
    package = kind.__module__.rpartition(".")[0]
    return kind.model_validate_json(files(package).joinpath(FILE).read_bytes())


def check_platform_ids(settings: BaseSettings) -> None:
    """Check all files that the setting ``PLATFORM_IDS`` names. The check runs when a command starts.

    Raises:
        ValueError: the setting names a platform that is unknown or has no ids, or a file cannot be read or does not
            match its model.
    """
    for name, path in settings.getdict(SETTING).items():
        _load(_model(name), name, path)


def _model(name: str) -> type[IdsModel]:
    """Return the model of a platform's file ``ids.json``.

    Raises:
        ValueError: the platform has no such file.
    """
    having = [each for each in platforms() if files(f"crawler.platforms.{each}").joinpath(FILE).is_file()]
    if name not in having:
        raise ValueError(f"{SETTING}: {name} has no ids that a file can replace; use {', '.join(having)}.")
    model: type[IdsModel] = import_module(f"crawler.platforms.{name}.urls").Ids
    return model


def _load(kind: type[Ids], name: str, path: object) -> Ids:
    if isinstance(path, str):
        return cast("Ids", _read(kind, name, path))
    raise ValueError(f"{SETTING}: the value for {name} must be the path of a JSON file, not {path!r}.")


@cache
def _read(kind: type[Ids], name: str, path: str) -> Ids:
    try:
        return kind.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"{SETTING}: cannot read {path} for {name}: {error.strerror}.") from None
    except ValidationError as error:
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        problem = first_problem(error, "the file")
        raise ValueError(f"{SETTING}: {path} is not valid for {name}: {problem}{more}.") from None


MAX_USED = 48
"""Maximum number of checksums in a cursor, two for each page. A few suffice to detect that tokens or pages repeat,
because such loops are short."""
MAX_REPEATS = 3
"""Number of earlier pages with the same rows after which a listing is not followed, although its token is new."""


def is_used(token: str, used: Sequence[int]) -> bool:
    """Whether a token for the next page of a listing was used before, so that following it would never end.

    ``used``: the result of ``with_used``.
    """
    return zlib.crc32(token.encode()) in used


def page_mark(ids: Iterable[str]) -> str:
    """Return a text that identifies a page by the ids of its rows, for ``with_used`` and ``is_repeated``."""
    return " ".join(ids)


def is_repeated(mark: str, used: Sequence[int]) -> bool:
    """Whether ``MAX_REPEATS`` earlier pages had the same rows, so that following new tokens may never end."""
    return used.count(zlib.crc32(mark.encode())) >= MAX_REPEATS


def with_used(used: Sequence[int], *tokens: str) -> list[int]:
    """Return the checksums of a cursor: those of earlier pages, and those of ``tokens``.

    ``tokens``: the token for the next page, and the mark of this page (``page_mark``).
    """
    return [*used, *(zlib.crc32(token.encode()) for token in tokens)][-MAX_USED:]


MAX_CURSOR = 16_384
"""Maximum number of characters of a cursor. Valid cursors are shorter."""


_CHANGED = "not a cursor: expected the value of a previous answer, unchanged"


def encode_cursor(kind: str, payload: dict[str, Any]) -> str:
    """Return the cursor for a payload. ``kind``: the listing and the version of the payload's format, such as
    "videos-1".

    >>> decode_cursor("videos-1", encode_cursor("videos-1", {"tab": "live"}))
    {'tab': 'live'}
    """
    body = orjson.dumps([kind, payload])
    return urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).decode().rstrip("=")


def decode_cursor(kind: str, text: str) -> dict[str, Any]:
    """Return the payload of a cursor.

    Raises:
        ValueError: the text is not a cursor, was changed, or is a cursor of another kind.
    """
    if len(text) > MAX_CURSOR:
        raise ValueError("not a cursor: too long")
    try:
        raw = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found, payload = orjson.loads(raw[4:])
    except (ValueError, TypeError) as error:
        raise ValueError(_CHANGED) from error
    if zlib.crc32(raw[4:]).to_bytes(4, "big") != raw[:4]:
        raise ValueError(_CHANGED)
    if found != kind or not isinstance(payload, dict):
        raise ValueError("a cursor of another kind: expected the value of a previous answer of the same scraper")
    return payload
