"""A route is a model. Its fields are path, query and headers of a request, its class variables body and answers.

The dispatcher (``app.py``) validates requests with the model, and the OpenAPI document (``openapi.py``) is made from
it. To add a route, add its class with its function ``answer`` to ``ROUTES`` at the end of its module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self
from urllib.parse import parse_qs

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema

from crawler.configuration.names import Described, description, hint
from crawler.errors import (
    InvalidApiKey,
    InvalidJson,
    InvalidRequest,
    MissingApiKey,
    ScrapeError,
    ServiceError,
    StoreUnavailable,
    UnsupportedMediaType,
)
from crawler.platforms.model import validation_details
from crawler.reading.documents import strict_decoder

if TYPE_CHECKING:
    from twisted.web.server import Request

    from crawler.service.envelope import Answer, Call
    from crawler.service.parts import Parts

JSON = "application/json"
SCRAPERS = "/v1/scrapers"
"""The path of the catalogue. The path of a scraper is this path, ``/`` and the scraper's name."""
MAX_BODY_BYTES = 64 * 1024
"""Maximum bytes of a request body, except for uploads of jobs. The longest valid param is a URL of 2,000 characters."""
MAX_WAIT_SECONDS = 120
"""The maximum timeout of a call, in seconds."""
WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,9})")

KEYED_ERRORS = (InvalidRequest, MissingApiKey, InvalidApiKey, ServiceError, StoreUnavailable)
"""The errors of all routes that need an API key."""


@dataclass(frozen=True)
class In:
    """Marks a field that is not the query parameter with the field's name. ``place``: ``query`` or ``header``."""

    place: str
    name: str


@dataclass(frozen=True)
class Reply:
    """A successful response of a route, or another one without an error's envelope."""

    description: str
    model: Any = None
    """The type of a JSON body. None: there is none."""
    headers: tuple[str, ...] = ()
    """The headers that not all responses have. ``openapi.HEADERS`` describes them."""
    media: Mapping[str, Any] = field(default_factory=dict)
    """Media type -> the type of the body, for a body that is not only JSON."""


def wait_of(prefer: str) -> int | None:
    """Return the timeout in a value of ``Prefer``, in seconds, limited to the valid range. None: it has no timeout.

    >>> wait_of("wait=10"), wait_of("respond-async, wait=9999"), wait_of("respond-async")
    (10, 120, None)
    """
    found = WAIT.search(prefer)
    return found and min(max(int(found.group(1)), 1), MAX_WAIT_SECONDS)


Wait = Annotated[
    int | None,
    In("header", "Prefer"),
    BeforeValidator(wait_of),
    WithJsonSchema({"type": "string", "example": "wait=30"}),
]
"""The seconds of ``Prefer: wait=N``. Other preferences are ignored (RFC 7240)."""


class Route(Described):
    """The input of a route. The first line of a route's docstring is its summary, the other lines describe it.

    A field is a path parameter if ``path`` names it, else a query parameter, unless it is marked with ``In``. A name
    that no field has, or a repeated one, is refused. Headers that no field has are ignored.
    """

    model_config = ConfigDict(frozen=True)

    method: ClassVar[str] = "GET"
    """The method. A route of ``GET`` also accepts ``HEAD``."""
    path: ClassVar[str] = ""
    """The path, with the names of path parameters in braces."""
    operation: ClassVar[str] = ""
    """The name of the route in the OpenAPI document. "": the document does not have the route."""
    tag: ClassVar[str] = "service"
    calls: ClassVar[str] = ""
    """The primary name of the scraper that the route calls, "" if it calls none."""
    is_public: ClassVar[bool] = False
    """Whether the route needs no API key."""
    is_counted: ClassVar[bool] = True
    """Whether usage and metrics count the requests."""
    takes: ClassVar[Mapping[str, Any]] = {}
    """Media type of the body -> its type in the OpenAPI document. Empty: the route has no body."""
    example: ClassVar[Any] = None
    """An example of the JSON body."""
    replies: ClassVar[Mapping[int, Reply]] = {}
    """Status -> the response."""
    errors: ClassVar[tuple[type[ScrapeError], ...]] = KEYED_ERRORS
    """The errors with which the route can fail."""

    inputs: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Place (``path``, ``query`` or ``header``) -> the public name of each input -> the field."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        found: dict[str, dict[str, str]] = {"path": {}, "query": {}, "header": {}}
        for name, info in cls.model_fields.items():
            is_in_path = f"{{{name}}}" in cls.path
            place = next(
                (each for each in info.metadata if isinstance(each, In)), In("path" if is_in_path else "query", name)
            )
            found[place.place][place.name] = name
        cls.inputs = found

    async def answer(self, call: Call, parts: Parts) -> Answer:
        """Answer a valid request.

        Raises:
            ScrapeError: the request failed.
        """
        raise NotImplementedError

    async def admit(self, call: Call, parts: Parts) -> Callable[[], None] | None:
        """Check a request whose body may be large, before the body is received.

        Return a function that is called when the body has arrived, or when the client has disconnected.

        Raises:
            ScrapeError: the request is refused. Its body is not received.
        """

    @classmethod
    def read(cls, call: Call, query: str, path: Mapping[str, str]) -> Self:
        """Validate a request without its body. ``query``: the query string. ``path``: the path parameters.

        Raises:
            InvalidRequest: a value is not valid, or a query parameter is unknown or repeated.
            UnsupportedMediaType: the route does not take a body of this media type.
        """
        sent = call.request_headers
        values: dict[str, Any] = {**path}
        for public, name in cls.inputs["header"].items():
            if (text := sent.get(public.lower())) is not None:
                values[name] = text
        if query:
            values |= cls._queried(query)
        try:
            found = cls.model_validate(values)
        except ValidationError as error:
            raise cls._invalid(error) from None
        media_type = sent.get("content-type", "").partition(";")[0].strip().lower()
        if cls.takes and media_type not in cls.takes:
            problem = f"not {media_type}" if media_type else "there is none"
            raise UnsupportedMediaType(f"Send the body with Content-Type: {' or '.join(cls.takes)}, {problem}.")
        return found

    @classmethod
    def _queried(cls, query: str) -> dict[str, str]:
        """Return the query parameters by their fields.

        Raises:
            InvalidRequest: a parameter is unknown or repeated.
        """
        known = cls.inputs["query"]
        values = {}
        for name, texts in parse_qs(query, keep_blank_values=True, errors="replace").items():
            if name not in known:
                others = (
                    f"the query parameters of this route are {', '.join(known)}" if known else "this route has none"
                )
                raise InvalidRequest.of(name, f"unknown query parameter; {hint(name, known, others)}")
            if len(texts) > 1:
                raise InvalidRequest.of(name, "expected at most once")
            values[known[name]] = texts[0]
        return values

    @classmethod
    def _invalid(cls, error: ValidationError) -> InvalidRequest:
        """Return the error of a request, with the names that its client knows."""
        names = {name: public for place in cls.inputs.values() for public, name in place.items()}
        details = validation_details(error)
        for each in details:
            name = str(each["loc"][0]) if each["loc"] else ""
            each["loc"] = [names[name]] if name else []
            if each["type"] == "string_pattern_mismatch":
                each["msg"] = f"expected: {' '.join(description(cls, name).replace('``', '').split())}"
        first = details[0]
        return InvalidRequest(": ".join([*map(str, first["loc"]), first["msg"]]), details=details)


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request by their lower-case names.

    Repeated headers are joined as in RFC 9110, and equal values count as one.

    Values are decoded as Latin-1, which never fails. Non-ASCII characters are invalid in all headers that are read.
    """
    raw = request.requestHeaders.getAllRawHeaders()
    return {name.lower().decode("latin-1"): b", ".join(dict.fromkeys(values)).decode("latin-1") for name, values in raw}


def refuse_compressed(call: Call) -> None:
    """Refuse a compressed body.

    Raises:
        UnsupportedMediaType: the header ``Content-Encoding`` names a coding.
    """
    if call.request_headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise UnsupportedMediaType("Send the body without Content-Encoding: compressed bodies are not accepted.")


def read_object(call: Call) -> dict[str, Any]:
    """Decode the body as a JSON object.

    Raises:
        UnsupportedMediaType: the body is compressed.
        InvalidJson: the body is not JSON, is not an object, contains repeated keys, NaN or half of a surrogate pair, or
            is nested too deeply.
    """
    refuse_compressed(call)
    try:
        text = call.content.read().decode()
        value = _DECODER.decode(text)
        if "\\u" in text:
            # Raises if a string contains half of a surrogate pair, which responses could not encode.
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise InvalidJson("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidJson(f"The body is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object with the scraper's params.")
    return value


def _number(text: str) -> float:
    """Decode a number with a decimal point or an exponent. 2.0 becomes the integer 2, as in JSON Schema."""
    value = float(text)
    return int(value) if value.is_integer() else value


_DECODER = strict_decoder(parse_float=_number)


Json = dict[str, Any]


def params_schema(model: type[BaseModel]) -> Json:
    """Return the schema of a model of params, with all schemas that it needs."""
    schema: Json = for_callers(model.model_json_schema(), {})
    return schema


def markdown(text: str) -> str:
    """Convert a docstring to Markdown: the literals of reStructuredText become code spans.

    >>> markdown("Same as ``cat_id``.")
    'Same as `cat_id`.'
    """
    return re.sub(r"``(.+?)``", r"`\1`", text)


def for_callers(part: Any, titles: Mapping[str, str]) -> Any:
    """Return a schema with Markdown descriptions, with references by title, and without titles of fields."""
    if isinstance(part, list):
        return [for_callers(each, titles) for each in part]
    if not isinstance(part, dict):
        return part
    converted = {key: for_callers(value, titles) for key, value in part.items()}
    for each in converted.get("properties", {}).values():
        each.pop("title", None)  # pydantic makes it from the key: "Cat Id"
        each.pop("group", None)  # the place of an argument in Scrapy Cloud's form
    if isinstance(part.get("description"), str):
        converted["description"] = markdown(part["description"])
    if isinstance(part.get("$ref"), str):
        converted["$ref"] = titles.get(part["$ref"], part["$ref"])
    return converted
