"""The query parameter ``fields=``, which selects fields of the record in a response."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from crawler.errors import InvalidRequest
from crawler.outputs.columns import column_type_of_models
from crawler.outputs.selection import Selection
from crawler.registry import find_scraper

if TYPE_CHECKING:
    from twisted.web.server import Request

MAX_LENGTH = 4_000


def fields_of(request: Request, scraper: str) -> Selection | None:
    """Return the fields that a request selects. None: all fields of the scraper's data.

    Raises:
        InvalidRequest: the data has no such field, or the parameter is repeated.
    """
    texts = (request.args or {}).get(b"fields")
    if texts is None:
        return None
    text = texts[0].decode(errors="replace")
    if len(texts) > 1 or len(text) > MAX_LENGTH:
        raise InvalidRequest.of(
            "fields", f"expected one list of names, separated by commas, of at most {MAX_LENGTH} characters"
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
