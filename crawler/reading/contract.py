"""Contracts of payloads, which declare the values in a platform's JSON, one line per value.

::

    class Product(Contract, tag=("__typename", "Product")):
        id: str = identity("usItemId")
        name: str | None = always("name")
        rating: float | None = always("averageRating", often=True)
        image: str | None = sometimes("imageInfo.allImages[0].url")

    class Listing(Contract):
        products: list[Product] = always("searchResult.itemStacks[].items[]")

    listing, unread = read(Listing, body, what="__NEXT_DATA__")  # page objects: self.payload(Listing, body, what=...)

A value has a name, a type, a kind and a path. There are four kinds:

- ``identity``: a row without this value is left out. It is never null.
- ``always``: the key is in every row. Its value may be null.
- ``often``: the value is neither null nor empty in at least one row of a page with ten rows or more.
  ``always(..., often=True)`` is both.
- ``sometimes``: everything else.

The kinds are counted over whole recorded payloads, never guessed (``docs/contracts.md``).

``read`` decodes the payload in one strict pass, in which a missing key is an error that costs nothing to find. Only if
this pass fails, the careful pass reads the plain data, and reports each path that could not be read as ``Unread``.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

from crawler.reading import careful, strict
from crawler.reading.declaration import (
    C,
    Contract,
    Count,
    NonEmpty,
    Number,
    Seconds,
    Value,
    always,
    contracts,
    identity,
    often,
    sometimes,
    values,
)
from crawler.reading.unread import Unread

__all__ = [
    "C",
    "Contract",
    "Count",
    "NonEmpty",
    "Number",
    "Reading",
    "Seconds",
    "Value",
    "always",
    "contracts",
    "identity",
    "often",
    "read",
    "read_plain",
    "sometimes",
    "values",
]


class Reading(NamedTuple, Generic[C]):
    """What was read: the contract's instance, or None if its identity is missing; and the unread parts."""

    value: C | None
    unread: list[Unread]


def read(kind: type[C], body: bytes, *, what: str, code_after: bool = False, old: type[C] | None = None) -> Reading[C]:
    """Read a JSON document.

    Args: kind: the contract of the document. body: the document. what: the name of the document in error messages.
    code_after: whether program code may follow the JSON, because the document was cut out of a script. old: the
    contract without the additional paths of ``PAYLOAD_NAMES``, if the document contains none of these paths.

    Raises:
        ExtractionFailed: the document is not JSON, is nested too deeply, or has more rows than any real page.
    """
    value = strict.decoded(kind, body)
    if value is None and old is not None:
        value = strict.decoded(old, body)
    if value is not None:
        return Reading(value, [])
    return Reading(*careful.read_changed(kind, body, what=what, code_after=code_after))


def read_plain(kind: type[C], data: object) -> Reading[C]:
    """Read plain data, such as the literals of a script: dicts, lists, texts, numbers, booleans and None."""
    return Reading(*careful.read_plain(kind, data))
