"""Reads requests: their methods, headers, query parameters and JSON objects."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from crawler.errors import (
    InvalidJson,
    InvalidRequest,
    MethodNotAllowed,
    UnsupportedMediaType,
)
from crawler.outputs.columns import column_type_of_models
from crawler.outputs.formats import DEFAULT
from crawler.outputs.selection import Selection
from crawler.reading.json import refuse_constant, unique_keys
from crawler.registry import find_scraper

if TYPE_CHECKING:
    from twisted.web.server import Request

    from crawler.outputs.formats import Format
    from crawler.service.calls.envelope import Call

SCRAPERS = "/v1/scrapers"
"""The path of the catalogue. The path of a scraper is this path, ``/`` and the scraper's name."""

MAX_BODY_BYTES = 64 * 1024
"""Maximum bytes of a request body, except for uploads of jobs. The longest valid param is a URL of 2,000 characters."""

MAX_PAGE = 100
"""The default and the maximum number of entries on a page of a list."""
PAGE_LIMIT = ("[1-9][0-9]?|100", f"1 to {MAX_PAGE}")
"""The valid values of the query parameter ``limit`` of a list, and their description."""

MAX_FIELDS_LENGTH = 4_000
"""Maximum characters of the query parameter ``fields``."""
MAX_WAIT_SECONDS = 120
"""The maximum timeout of a call, in seconds."""
WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,9})")

DAY = ("[0-9]{4}-[0-9]{2}-[0-9]{2}", "a day as YYYY-MM-DD")


def require_method(request: Request, *methods: str) -> None:
    """Check the method of a request.

    Raises:
        MethodNotAllowed: the method is not one of ``methods``. If ``GET`` is one of them, ``HEAD`` is allowed, too.
    """
    allowed = ("GET", "HEAD", *methods[1:]) if methods[0] == "GET" else methods  # Twisted sends no body after HEAD
    if request.method.decode("latin-1") not in allowed:
        raise MethodNotAllowed(
            f"Method not allowed: this route accepts {', '.join(allowed)}.", allowed=", ".join(allowed)
        )


def wait_of(prefer: str) -> int | None:
    """Return the timeout in a value of ``Prefer``, in seconds, limited to the valid range. None: it has no timeout.

    >>> wait_of("wait=10"), wait_of("respond-async, wait=9999"), wait_of("respond-async")
    (10, 120, None)
    """
    found = WAIT.search(prefer)
    return found and min(max(int(found.group(1)), 1), MAX_WAIT_SECONDS)


def read_query(request: Request, parameters: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the query parameters of a request.

    ``parameters``: name -> a regular expression for the valid values, and their description.

    Raises:
        InvalidRequest: a value is not valid, or a parameter is repeated or unknown.
    """
    values: dict[str, str] = {}
    for raw, texts in (request.args or {}).items():
        name = raw.decode("latin-1")
        expected = parameters.get(name)
        if expected is None or len(texts) > 1:
            known = f"expected {', '.join(parameters)}, each at most once" if parameters else "this route has none"
            raise InvalidRequest.of(name, known)
        pattern, description = expected
        values[name] = texts[0].decode(errors="replace")
        if not re.fullmatch(pattern, values[name]):
            raise InvalidRequest.of(name, f"expected {description}")
    return values


def accepted(accept: str, known: Mapping[str, Format]) -> str:
    """Return the name of the format that a value of ``Accept`` prefers, or else the default format.

    >>> from crawler.outputs.formats import SERVED
    >>> [accepted(value, SERVED) for value in ("text/csv", "application/json, */*", "text/*, application/json;q=0.5")]
    ['csv', 'jsonl', 'csv']
    >>> accepted("text/html", SERVED)
    'jsonl'
    """
    qualities: dict[str, float] = {}
    for each in accept.split(","):
        media_type, _, parameters = each.partition(";")
        found = re.search(r"\bq\s*=\s*([01](?:\.[0-9]*)?)", parameters)
        qualities[media_type.strip().lower()] = float(found[1]) if found else 1.0

    def quality(each: Format) -> float:
        media_type = each.media_type.partition(";")[0]
        ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        return next((qualities[name] for name in ranges if name in qualities), 0.0)

    return max((DEFAULT, *known.values()), key=quality).name


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request by their lower-case names. Repeated headers are joined as in RFC 9110.

    Values are decoded as Latin-1, which never fails. Non-ASCII characters are invalid in all headers that are read.
    """
    raw = request.requestHeaders.getAllRawHeaders()
    return {name.lower().decode("latin-1"): b", ".join(values).decode("latin-1") for name, values in raw}


def read_object(request: Request, call: Call) -> dict[str, Any]:
    """Decode the body as a JSON object.

    The standard library is used, because orjson accepts repeated keys and rounds huge integers.

    Raises:
        UnsupportedMediaType: the Content-Type header is not ``application/json``, or the body is compressed.
        InvalidJson: the body is not JSON, is not an object, contains repeated keys, NaN or half of a surrogate pair, or
            is nested too deeply.
    """
    headers = call.request_headers
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("Send the params as a JSON object with Content-Type: application/json.")
    if headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise UnsupportedMediaType("Send the body without Content-Encoding: compressed bodies are not accepted.")
    assert request.content is not None
    try:
        text = request.content.read().decode()
        value = json.loads(text, object_pairs_hook=unique_keys, parse_constant=refuse_constant, parse_float=_number)
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


def fields_of(request: Request, scraper: str) -> Selection | None:
    """Return the fields that a request selects. None: all fields of the scraper's data.

    Raises:
        InvalidRequest: the data has no such field, or the parameter is repeated or too long.
    """
    texts = (request.args or {}).get(b"fields")
    if texts is None:
        return None
    text = texts[0].decode(errors="replace")
    if len(texts) > 1 or len(text) > MAX_FIELDS_LENGTH:
        raise InvalidRequest.of(
            "fields", f"expected one list of names, separated by commas, of at most {MAX_FIELDS_LENGTH} characters"
        )
    try:
        return _selection(scraper, text)
    except ValueError as error:
        raise InvalidRequest.of("fields", str(error)) from None


@lru_cache(256)
def _selection(name: str, text: str) -> Selection:
    scraper = find_scraper(name)
    found = Selection.parse(text, [scraper], None, sliced=False)
    fields = column_type_of_models([scraper.data]).of
    if other := found.tree.keys() - fields.keys():
        raise ValueError(f"the data has no field {min(other)!r}; its fields are {', '.join(fields)}")
    return found


def days(request: Request) -> tuple[date | None, date | None]:
    """Parse the query parameters ``from`` and ``to``. A missing parameter is None.

    Raises:
        InvalidRequest: a value is not a day, a parameter is repeated or unknown, or ``to`` is before ``from``.
    """
    query = read_query(request, {"from": DAY, "to": DAY})
    since, until = _day(query, "from"), _day(query, "to")
    if since and until and since > until:
        raise InvalidRequest.of("from", "must not be after to")
    return since, until


def _day(query: Mapping[str, str], name: str) -> date | None:
    try:
        return date.fromisoformat(query[name]) if name in query else None
    except ValueError:
        raise InvalidRequest.of(name, f"expected {DAY[1]}") from None
