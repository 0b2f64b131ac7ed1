"""The types of the settings in ``crawler/settings.py``.

The value of a setting may be text (``-s``) or a Python object (JSON in an environment variable, a settings module).
Each type accepts both, and converts text as Scrapy's ``getint()``, ``getlist()`` and so on do.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypeVar

import orjson
from pydantic import BeforeValidator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema
from typing_extensions import TypedDict

T = TypeVar("T")

NONE = {"", "None", "null"}
"""The texts that mean None."""
DATABASE = re.compile(r"(postgres(ql)?|sqlite)(\+\w+)?://.*|(?!.*://).*", re.DOTALL)


def host_and_port(text: str) -> tuple[str, int]:
    """Split an address such as ``127.0.0.1:9100`` or ``[::1]:9100``. The host of ``:9100`` is ``127.0.0.1``.

    Raises:
        ValueError: the text is not an address.
    """
    host, colon, number = text.rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,5}", number, re.ASCII) or int(number) >= 2**16:
        raise ValueError(f"expected host:port, not {text!r}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(number)


@dataclass(frozen=True)
class Expected:
    """Describes the values that a setting accepts, and checks what its Python type cannot express."""

    words: str
    check: Callable[[Any], object]
    """Raises ValueError or returns a false value if the setting's value is wrong."""

    def validate(self, value: T) -> T:
        """Return the value unchanged if it passes the check.

        Raises:
            ValueError: the value does not pass the check. The message does not contain it: it may have a password.
        """
        try:
            passed = self.check(value)
        except ValueError:
            passed = False
        if not passed:
            raise ValueError(f"expected {self.words}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.validate, handler(source))


def _allows_calls(text: str) -> bool:
    from limits import parse  # noqa: PLC0415  # a slow import, needed only if a rate is set

    return parse(text).amount > 0


RATE = Expected("a rate limit such as 60/minute", _allows_calls)


def rate(text: str) -> str:
    """Return a rate limit such as ``60/minute`` unchanged.

    Raises:
        ValueError: the text is not a rate limit, or allows no call.
    """
    return RATE.validate(text)


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
    """Decode text as JSON. Other text is returned unchanged, and the setting's type then accepts or refuses it."""
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def _path(value: object) -> object:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _is_log_level(value: object) -> bool:
    number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return number or str(value) in logging.getLevelNamesMapping()


# Numbers and switches

Switch = bool
Automatic = bool | Literal["auto"]
Number = BeforeValidator(_refuse_bool)
Integer = Annotated[int, Number]
Count = Annotated[int, Field(ge=0), Number]
Positive = Annotated[int, Field(ge=1), Number]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False), Number]
"""A finite number of at least 0: seconds, in most settings."""
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False), Number]

# Text

Text = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True), BeforeValidator(_path)]
Database = Annotated[
    Text, Expected("the path of an SQLite file, or a URL that begins with postgresql://", DATABASE.fullmatch)
]
Rate = Annotated[Text, RATE]
Address = Annotated[Text, Expected("an address such as 127.0.0.1:9100", host_and_port)]
ServiceUrl = Annotated[
    Text, Expected("a URL such as https://data.example.com", re.compile("https?://[^/?#]+[^?#]*").fullmatch)
]
LogLevel = Annotated[Any, Expected("DEBUG, INFO, WARNING, ERROR or CRITICAL", _is_log_level)]
Route = Literal["/docs", "/llms.txt", "/metrics", "/openapi.json"]
"""A route that the setting ``SERVICE_HIDDEN_ROUTES`` may contain."""

# Optional values, lists and objects

Optional = Annotated[T | None, BeforeValidator(_none)]
Items = Annotated[list[T], BeforeValidator(_list)]
Object = Annotated[dict[str, T], BeforeValidator(_json)]


class SourceBudget(TypedDict):
    """The budget of one source of a platform."""

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012  # read by pydantic

    concurrency: Positive
    delay: NotRequired[Seconds]
    burst: NotRequired[Positive]
    gap: NotRequired[Seconds]


class Budget(TypedDict, total=False):
    """The budget of a platform. ``sources``: the budgets of single sources, within the platform's budget."""

    __pydantic_config__ = {"extra": "forbid"}  # type: ignore[misc]  # noqa: RUF012  # read by pydantic

    concurrency: Positive
    delay: Seconds
    burst: Positive
    gap: Seconds
    sources: dict[str, SourceBudget]


Egresses = Annotated[list[Any] | str, BeforeValidator(_json)]
"""A list of egresses, or the path of a file with this list."""
