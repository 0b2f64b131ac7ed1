"""The base classes of all params and data models, the marks of their fields, and the content envelope (specification
2.4): a profile with a page of its content items.

The video site and the professional network subclass ``ContentItem``, to narrow types and to document what the platform
shows. Each of the two has its own model of a profile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

import orjson
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from crawler.configuration.names import Described, hint
from crawler.errors import Detail
from crawler.platforms.links import LinkError, PlatformLinks, cleaned, is_link, unquoted

PLATFORM_MODULE = re.compile(r"crawler\.platforms\.(?P<platform>\w+)\.")

VALUE_ERROR_PREFIX = "Value error, "
"""The prefix that pydantic adds to the message of a ``ValueError`` that a validator raises."""


EXPECTED = "Input should be "
"""The prefix of pydantic's messages that say what is valid."""


LEVELS = 20
"""Number of levels that may be around a copied value: those of the record, of an envelope and of a job's rows."""


def encodable(value: Any) -> Any:
    """Return a value that is copied from a page unchanged.

    Raises:
        ValueError: the value cannot be written as JSON, because it is nested too deeply or has a huge integer.
    """
    surrounded = value
    for _ in range(LEVELS):
        surrounded = [surrounded]
    try:
        orjson.dumps(surrounded)
    except orjson.JSONEncodeError as error:
        raise ValueError(f"cannot be written as JSON: {error}") from None
    return value


class Mark(Enum):
    """Marks a field of a data model, as in ``item_id: Annotated[str, Mark.KEY]``."""

    KEY = "key"
    """The field belongs to the natural key of its object, which is the same on all pages and in all runs. The value is
    never empty. The key of a record or of a list's entry includes the marked fields of the objects in it."""
    ADVERTISED = "advertised"
    """The field is true if the platform shows the entry as an advertisement."""
    COUNT = "count"
    """A number that moves all the time, and that platforms round: runs are compared with a tolerance."""
    NEVER = "never"
    """Runs are not compared: the value differs although nothing has changed, such as a signed URL, or a position."""
    NULL = "null"
    """Null is a statement of the platform, such as "no price", and not a value that the page does not have."""
    PARTIAL = "partial"
    """Some forms of the page have only a part of the value: the beginning of a text, the first entries of a list, or
    nothing. A part and another value are not compared, because they were read from different forms."""
    WITHHELD = "withheld"
    """A list of the names of the record's fields that the platform withheld. Runs are not compared in these fields."""


@dataclass(frozen=True)
class Rows:
    """Names a list of a data model, for ``-a explode=<name>`` and for its table in a database.

    A list without this mark is named by its path.
    """

    name: str
    """The entries' name in the plural."""


def schema_name(model: type) -> str:
    """Return the name of a model in JSON schemas. The name begins with the model's platform, so that no two names are
    equal.

    ``crawler.platforms.retail.schema.Product`` is ``RetailProduct``; a model that platforms share keeps its name.
    """
    module = PLATFORM_MODULE.match(model.__module__)
    return f"{module['platform'].capitalize()}{model.__name__}" if module else model.__name__


class Model(Described):
    """Base class of all data models. A model accepts exactly the contract's keys, and does not convert values.

    A field that is optional in the contract has a default, and is omitted from the data if the page lacks it. All other
    keys are always present.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        model_title_generator=schema_name,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema without defaults: in these models, a default only marks a key as optional.

        Otherwise generated clients would insert the defaults, such as a price of 0 for a product without this price.
        """
        described = super().__get_pydantic_json_schema__(schema, handler)
        for field in described.get("properties", {}).values():
            field.pop("default", None)
        return described


@dataclass(frozen=True)
class Selects:
    """Marks a param that selects what a response contains, and declares how a response proves the param.

    ``echo``: the response repeats the value, which the page object compares. ``rows``: the values of the rows show it.
    ``request``: the platform's own page has sent the request. ``here``: this project applies the param to the rows that
    it received. None: nothing proves it.
    """

    proof: Literal["echo", "rows", "request", "here"] | None
    reason: str = ""
    """Why nothing proves the param, as the end of a sentence for callers."""


def at_most(limit: int) -> AfterValidator:
    """Return the validator of a number in params that is reduced to a limit.

    The context of the validation is a list, to which the validator adds a sentence for the note of the target.
    """

    def reduced(value: int, info: ValidationInfo) -> int:
        if value > limit and info.context is not None:
            info.context.append(f"{info.field_name}={limit} was used instead of {value}: it is the limit.")
        return min(value, limit)

    return AfterValidator(reduced)


DAMAGED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd\ud800-\udfff]")
"""Matches characters that no param contains: they show that a text was damaged, or decoded with a wrong encoding."""


def damage(character: str) -> str:
    """Return the error message about a character that ``DAMAGED`` matches."""
    if character == "\ufffd":
        return "contains U+FFFD: a program has replaced a character that it could not convert"
    return f"contains the character U+{ord(character):04X}, which no param may contain"


class Params(Described):
    """Base class of all params models. A model refuses unknown keys, and does not convert values.

    A caller must omit keys without a value: ``targets.check_params`` refuses null. Each param is either annotated with
    ``Selects``, or named in ``further``: a model with any other param cannot be defined.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        model_title_generator=schema_name,
    )

    exactly_one_of: ClassVar[tuple[str, ...]] = ()
    """Optional params of which a target needs exactly one."""
    links: ClassVar[PlatformLinks | None] = None
    """The platform's links, by which the param ``url`` is read. None: the model does not have this param."""
    further: ClassVar[frozenset[str]] = frozenset()
    """The params that select nothing, but add to the record what further requests return."""
    phrases: ClassVar[frozenset[str]] = frozenset()
    """The params that are words to search for. Quotation marks around them mean something to a search, and stay."""
    _reduced: list[str] = PrivateAttr(default_factory=list)
    """A sentence for each number that a validator (``at_most``) has reduced."""

    @classmethod
    def clean(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return params whose texts lack what copying adds: white space and quotation marks around them, and invisible
        characters. Other values are unchanged.
        """
        texts = {name: value for name, value in given.items() if isinstance(value, str)}
        return {**given} | {name: (cleaned if name in cls.phrases else unquoted)(text) for name, text in texts.items()}

    @field_validator("*")
    @classmethod
    def _undamaged(cls, value: object) -> object:
        if isinstance(value, str) and (found := DAMAGED.search(value)):
            raise ValueError(damage(found[0]))
        return value

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        undeclared = cls.model_fields.keys() - cls.selects().keys() - cls.further
        if undeclared:
            raise TypeError(f"{cls.__name__}: annotate {', '.join(sorted(undeclared))} with Selects(), see Params")

    @classmethod
    def selects(cls) -> dict[str, Selects]:
        """Return the params that select what a response contains, by name."""
        found = ((name, each) for name, info in cls.model_fields.items() for each in info.metadata)
        return {name: each for name, each in found if isinstance(each, Selects)}

    def model_post_init(self, context: Any, /) -> None:
        """Keep the sentences of validators. ``context``: the list to which ``at_most`` has added them, or None."""
        self._reduced = list(context or ())

    def note(self) -> str:
        """Return a sentence for each param that nothing in a response proves, and for each that was reduced."""
        unproven = [
            f"The platform does not confirm {name}: {each.reason}."
            for name, each in self.selects().items()
            if each.proof is None and name in self.model_fields_set
        ]
        return " ".join(unproven + self._reduced)

    def identity(self) -> dict[str, Any]:
        """Return the params as JSON data, with ``url`` replaced by the params that it stands for."""
        params = self.model_dump(mode="json", exclude_none=True)
        if self.links is None or "url" not in params:
            return params
        meant = self.links.read(params.pop("url")).params
        return {name: value for name, value in meant.items() if name in type(self).model_fields} | params

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema for callers, without null: here, the default None only marks a key as optional."""
        described = super().__get_pydantic_json_schema__(schema, handler)
        for field in described.get("properties", {}).values():
            if "default" in field and field["default"] is None:
                del field["default"]
                (allowed,) = (each for each in field.pop("anyOf") if each != {"type": "null"})
                field.update(allowed)
        return described


class LinkParams(Params):
    """Base class of the params of scrapers whose targets are given by either an id or name, or a link.

    A model has both as optional fields. ``exactly_one_of`` names them: the id or name (the model's *own* param), and
    ``url``.
    """

    links: ClassVar[PlatformLinks]
    kinds: ClassVar[tuple[str, ...]]
    """The kinds of pages that ``url`` may lead to (``Link.kind``)."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema, which also demands exactly one of the own param and ``url``.

        The condition is not stated as ``oneOf``, for which generators of clients omit all other params.
        """
        described = super().__get_pydantic_json_schema__(schema, handler)
        own, url = cls.exactly_one_of
        return {**described, "if": _having(own), "then": {"not": _having(url)}, "else": _having(url)}

    @classmethod
    def with_link(cls, given: Mapping[str, Any], *, text: bool) -> dict[str, Any]:
        """Return params completed by the params that their ``url`` contains, such as the page number of a listing.

        Given params take precedence. ``text``: all values are texts, as in ``model_validate_strings``.
        """
        url = given.get("url")
        try:
            meant = cls._of_link(url) if isinstance(url, str) else None
        except (LinkError, ValidationError):
            meant = None  # the validation of the field reports the error
        if meant is None:
            return dict(given)
        stated = meant.model_dump(include=meant.model_fields_set - {*cls.exactly_one_of})
        return {name: str(value) if text else value for name, value in stated.items()} | {**given}

    @classmethod
    def _of_link(cls, url: str) -> Self:
        """Return the params that a link stands for.

        Raises:
            LinkError: the URL is not a link to a target of this scraper.
            ValidationError: a value in the URL is not valid.
        """
        params = cls.links.read(url, *cls.kinds).params
        return cls.model_validate_strings({name: each for name, each in params.items() if name in cls.model_fields})

    @field_validator("url", check_fields=False)
    @classmethod
    def _is_link(cls, url: str) -> str:
        if cls.exactly_one_of[0] not in cls.links.read(url, *cls.kinds).params:
            return url
        try:
            cls._of_link(url)
        except ValidationError as error:
            raise LinkError(f"the link's {first_problem(error, joint=' is not valid: ')}") from None
        return url

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in self.exactly_one_of if getattr(self, name) is not None]
        if len(given) != 1:
            names = " and ".join(self.exactly_one_of)
            raise ValueError(f"give exactly one of {names}, not {'both' if given else 'neither'}")
        return self

    def own(self) -> str:
        """Return the value of the model's own param, as given or from the link, such as the ``cat_id`` in a URL."""
        name, url = self.exactly_one_of
        given: str | None = getattr(self, name)
        return self.links.read(getattr(self, url), *self.kinds).params[name] if given is None else given


def empty(model: type[Model]) -> dict[str, Any]:
    """Return the data of a model without values: each field is None, "", [] or the data of a model without values.

    Optional fields are omitted, and so are fields that always have a value, such as numbers that are never null.
    """
    data, makers = _empty_data(model)
    return data | {name: make() for name, make in makers.items()}


@cache
def _empty_data(model: type[Model]) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """Return a model's data without values, and for each field with a list or an object, a function that makes it.

    These values are made anew for each record, because the code that builds the record may change them in place.
    """
    data: dict[str, Any] = {}
    makers: dict[str, Callable[[], Any]] = {}
    for name, info in model.model_fields.items():
        options = get_args(info.annotation) if get_origin(info.annotation) is UnionType else (info.annotation,)
        kind = NoneType if NoneType in options else get_origin(options[0]) or options[0]
        if info.is_required() and kind in {NoneType, str, list}:
            data[name] = {NoneType: None, str: ""}.get(kind)
            makers |= {name: list} if kind is list else {}
        elif info.is_required() and isinstance(kind, type) and issubclass(kind, Model):
            data[name] = None
            makers[name] = partial(empty, kind)
    return data, makers


def refuse_link(text: object) -> object:
    """Return a search text or name unchanged. Raise ``ValueError`` for a link, which a search would not find."""
    if isinstance(text, str) and is_link(text):
        raise ValueError("this is a link: give it as url")
    return text


def _having(key: str) -> JsonDict:
    """Return the JSON schema of objects with a key. Linters require that a schema with ``required`` defines the key."""
    return {"properties": {key: {}}, "required": [key]}


def validation_details(error: ValidationError, known: Collection[str] = ()) -> list[Detail]:
    """Return a validation's errors, without the rejected values and without pydantic's prefix of messages.

    ``known``: the fields of a flat model. One of them is suggested for an unknown key, and a value that fits no member
    of a union has one error, which says what all members expect.
    """
    found: dict[Any, Detail] = {}
    for number, each in enumerate(error.errors(include_url=False, include_context=False, include_input=False)):
        place = each["loc"][:1] if known else each["loc"]  # the rest of the location names a member of a union
        message = _message(each, known)
        if (field := place if known else number) in found:
            found[field]["msg"] += f", or {message.removeprefix(EXPECTED)}"
        else:
            found[field] = {"loc": list(place), "msg": message, "type": each["type"]}
    return list(found.values())


def _message(problem: ErrorDetails, known: Collection[str]) -> str:
    if problem["type"] == "extra_forbidden" and known and len(problem["loc"]) == 1:
        others = f"expected {', '.join(known)}"
        return f"unknown param; {hint(str(problem['loc'][0]), known, others)}"
    return problem["msg"].removeprefix(VALUE_ERROR_PREFIX)


def first_problem(error: ValidationError, whole: str = "", joint: str = ": ", known: Collection[str] = ()) -> str:
    """Return the first of a validation's errors as text: its location and its message.

    ``whole``: the name of the validated value, used if the error has no location. ``joint``: the text after the
    location. ``known``: as for ``validation_details()``.
    """
    first = validation_details(error, known)[0]
    place = ".".join(map(str, first["loc"])) or whole
    return f"{place}{joint}{first['msg']}" if place else first["msg"]


AUTO_SECONDS = 10.0
"""Seconds in which the requests for details start, if the param ``details`` is ``auto``."""


def number(value: Any) -> Any:
    """Convert a text of one to nine digits to an integer. Other values are returned unchanged."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value


Details = Annotated[Literal["auto", "all", "none"] | Annotated[int, Field(ge=0)], BeforeValidator(number)]
"""``auto``: the details whose requests the budget lets start within ``AUTO_SECONDS``. A number: the details of as many
parts of the record, from the top."""


def max_details(details: Details) -> float:
    """Return the param ``details`` as a number."""
    if isinstance(details, int):
        return details
    return 0 if details == "none" else math.inf


class Pagination(Model):
    """Whether there is a next page, and the cursor that leads to it."""

    cursor: Annotated[str, Mark.NEVER]
    """Opaque value for the param ``cursor``, to get the next page. "" on the last page."""
    has_more: Annotated[bool, Mark.NEVER]
    """Whether there is a next page."""


class MediaLinks(Model):
    """URLs of the item's video files. Always null: no public page has URLs that work outside the platform's player."""

    high: str | None
    """Always null."""
    low: str | None
    """Always null."""
    medium: str | None
    """Always null."""
    watermarked: str | None
    """Always null."""


class ContentItem(Model):
    """An item of a profile's content, such as a video or a post."""

    age_restriction_status: None
    """Always null: not exposed."""
    author_id: str | None
    """Id of the author, null if not exposed."""
    author_name: str
    """Name of the author, "" if unknown."""
    author_username: str
    """The author's name in URLs, "" if unknown."""
    caption: str
    """The item's text or title, "" if it has none."""
    comment_count: int | None
    """Number of comments, null if unknown."""
    content_code: str
    """The item's id in URLs."""
    content_id: str
    """The item's id. Never empty."""
    content_language: str | None
    """Always null: not exposed."""
    content_link: str
    """URL of the item's page. Never empty."""
    content_type: str
    """Kind of item. Never empty."""
    first_comment: None
    """Always null."""
    hashtags: list[str]
    """Hashtags without "#", in order; empty if the platform's items are read without hashtags."""
    images: list[str]
    """URLs of the item's images."""
    like_count: int | None
    """Number of likes, null if unknown."""
    media_links: MediaLinks
    """URLs of the item's video files."""
    mentions: list[str]
    """Mentioned names without "@", in order; empty if the platform's items are read without mentions."""
    published_date: int | None
    """Time of publication in Unix seconds, null if unknown."""
    slideshow_status: bool | None
    """Whether the item is a slideshow, null if unknown."""
    subtitles: None
    """Always null."""
    thumbnail_image: str
    """URL of the preview image, "" if unknown."""
    transcript: None
    """Always null."""
    video_duration_seconds: int | None
    """Length of the video in seconds, null if unknown."""
    video_link: str | None
    """Always null: see ``media_links``."""
    view_count: int | None
    """Number of views, null if unknown."""
