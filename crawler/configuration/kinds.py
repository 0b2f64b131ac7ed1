"""The types of settings. ``crawler/settings.py`` declares the type of each setting by an annotation.

The value of a setting may be text (``-s``) or a Python object (JSON in an environment variable, a settings module).
Each type accepts both, and converts text as Scrapy's ``getint()``, ``getlist()`` and so on do.
"""

from __future__ import annotations

import logging
import os
import re
from ipaddress import ip_network
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

import orjson
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticKnownError
from typing_extensions import TypedDict

T = TypeVar("T")

NONE = {"", "None", "null"}
"""The texts that stand for None."""
ORIGIN = re.compile(
    r"(?!http://.*:80$|https://.*:443$)https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.ASCII | re.DOTALL
)
"""Matches the origin of a web page as browsers send it: in lower case, without a path and the default port."""


def host_and_port(text: str) -> tuple[str, int]:
    """Split an address such as ``127.0.0.1:9100`` or ``[::1]:9100``. Without a host, it is the loopback address.

    Raises:
        ValueError: the text is not an address.
    """
    host, colon, number = text.rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,5}", number, re.ASCII) or int(number) >= 2**16:
        raise ValueError(f"expected host:port, not {text!r}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(number)


def rate(text: str) -> str:
    """Return a rate limit such as ``60/minute`` unchanged.

    Raises:
        ValueError: the text is not a rate limit, or allows no call.
    """
    from limits import parse  # noqa: PLC0415  # slow to import, and only needed if a rate is set

    try:
        amount = parse(text).amount
    except ValueError:
        amount = 0
    if amount < 1:
        raise ValueError(f"expected a rate limit such as 60/minute, not {text!r}")
    return text


def quota(text: str) -> int:
    """Return the number of billable calls per month of a quota such as ``100000/month``.

    Raises:
        ValueError: the text is not a quota, or allows no calls.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,14})/month", text, re.ASCII)
    if match is None:
        raise ValueError(f"expected a quota such as 100000/month, not {text!r}")
    return int(match.group(1))


def _refuse_bool(value: object) -> object:
    """Refuse True and False as numbers: ``int`` and ``float`` would accept them as 1 and 0."""
    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return value


def _none(value: object) -> object:
    return None if isinstance(value, str) and value in NONE else value


def _list(value: object) -> object:
    """Convert text to a list: a JSON array, or entries that are separated by commas."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return _json(value)
    return [each.strip() for each in value.split(",")] if value.strip() else []


def _json(value: object) -> object:
    """Decode text that is JSON. Any other text is returned unchanged: the type of the setting accepts or refuses it."""
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def _path(value: object) -> object:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _address(text: str) -> str:
    host_and_port(text)
    return text


def _service_url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in {"http", "https"} or not url.netloc or url.query or url.fragment:
        raise ValueError(f"expected a URL such as https://data.example.com, not {text!r}")
    return text


def _origin(text: str) -> str:
    if text != "*" and not ORIGIN.fullmatch(text):
        raise ValueError(f"expected an origin as browsers send it, such as https://app.example.com, or *, not {text!r}")
    return text


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError:
        raise ValueError(f"expected an IP address, or a network such as 10.0.0.0/8, not {text!r}") from None
    return text


def _database(text: str) -> str:
    scheme, is_url, _ = text.partition("://")
    if is_url and scheme.partition("+")[0] not in {"postgresql", "postgres", "sqlite"}:
        raise ValueError(f"expected the path of an SQLite file, or a postgresql:// URL, not a {scheme}:// URL")
    return text


def _class(value: object) -> object:
    """Check the path of a class. A settings module may contain the class itself."""
    if not isinstance(value, type) and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", str(value)):
        raise ValueError(f"expected the path of a class such as package.module.Class, not {value!r}")
    return value


def _log_level(value: object) -> object:
    """Refuse values that are not log levels. A log level is a name from ``logging``, or a number of at least 0."""
    number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not number and str(value) not in logging.getLevelNamesMapping():
        raise PydanticKnownError("literal_error", {"expected": "a log level"})
    return value


def _described(expectation: str) -> Any:
    """Return the description of a type for error messages and documentation: what a value must be."""
    return Field(description=expectation)


# Numbers and switches

Switch = bool
Automatic = Annotated[bool | Literal["auto"], _described("True, False or auto")]
Number = BeforeValidator(_refuse_bool)
Integer = Annotated[int, Number]
Count = Annotated[int, Field(ge=0), Number]
Positive = Annotated[int, Field(ge=1), Number]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False), Number]
"""A time or another measure that may be 0."""
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False), Number]
Share = Annotated[float, Field(ge=0, le=1), Number]

# Text

Text = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True), BeforeValidator(_path)]
File = Annotated[Text, _described("the path of a file")]
Folder = Annotated[Text, _described("the path of a folder")]
Secret = Annotated[Text, _described("text"), Field(json_schema_extra={"format": "password"})]
"""Text that messages and listings do not contain."""
Uri = Annotated[Text, _described("the path or URI of a feed")]
Database = Annotated[
    Text,
    AfterValidator(_database),
    _described("the path of an SQLite file, or a URL that begins with postgresql://"),
]
Rate = Annotated[Text, AfterValidator(rate), _described("a rate limit such as 60/minute")]
Address = Annotated[Text, AfterValidator(_address), _described("an address such as 127.0.0.1:9100")]
ServiceUrl = Annotated[Text, AfterValidator(_service_url), _described("a URL such as https://data.example.com")]
Origin = Annotated[Text, AfterValidator(_origin)]
"""The origin of a web page, or ``*`` for all origins."""
Network = Annotated[Text, AfterValidator(_network)]
LogLevel = Annotated[Any, BeforeValidator(_log_level), _described("DEBUG, INFO, WARNING, ERROR or CRITICAL")]
ClassPath = Annotated[Any, BeforeValidator(_class), _described("the path of a class such as package.module.Class")]
Route = Literal["/docs", "/llms.txt", "/metrics", "/openapi.json"]
"""A route that the setting ``SERVICE_HIDDEN_ROUTES`` may contain."""

# Optional values, lists and objects

Optional = Annotated[T | None, BeforeValidator(_none)]
Items = Annotated[list[T], BeforeValidator(_list)]
Object = Annotated[dict[str, T], BeforeValidator(_json)]


class SourceBudget(TypedDict, total=False):
    """The budget of one source of a platform."""

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012  # read by pydantic

    concurrency: Positive
    delay: Seconds


class Budget(SourceBudget, total=False):
    """The budget of a platform. ``sources`` are the budgets of those of its sources that have their own."""

    sources: dict[str, SourceBudget]


Origins = Annotated[
    Object[Any],
    _described("a JSON object of platform to origin, or of platform to an object of role to origin"),
]
Budgets = Annotated[Object[Budget], _described('a JSON object such as {"retail": {"concurrency": 2, "delay": 2}}')]
IdFiles = Annotated[Object[Any], _described('a JSON object such as {"microblog": "/path/file.json"}')]
Egresses = Annotated[
    list[Any] | str,
    BeforeValidator(_json),
    _described("a JSON list of egresses, or the path of a file with this list"),
    Field(json_schema_extra={"format": "password"}),
]
KeyHashes = Annotated[
    Object[Any],
    _described("a JSON object, as scrapy keys export prints it"),
    Field(json_schema_extra={"format": "password"}),
]
CacheTimes = Annotated[Object[Seconds], _described('a JSON object such as {"retail-search-v4": 300}')]
LaunchOptions = Annotated[
    Object[Any],
    _described('a JSON object such as {"executable_path": "/usr/bin/chromium"}'),
    Field(json_schema_extra={"format": "password"}),
]
