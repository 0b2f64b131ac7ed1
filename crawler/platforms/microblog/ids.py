"""Microblog: the ids of the guest API's queries, from the platform's data file or from a profile page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from crawler.errors import ExtractionFailed
from crawler.platforms.ids import IdsModel
from crawler.reading.json import decode
from crawler.reading.values import text

HANDLE, USER_ID, CURSOR = "$handle", "$user_id", "$cursor"
"""Placeholders in a query's variables. A variable is omitted if its placeholder has no value, such as the cursor for
the first page."""
QUERY_ID = r"[A-Za-z0-9_-]{10,40}"
_STREAM_KEY = re.compile(rf"({QUERY_ID})(\{{.*\}})", re.DOTALL)

QueryId = Annotated[str, StringConstraints(pattern=f"^{QUERY_ID}$")]


@dataclass(frozen=True)
class QueryForm:
    """One way to send a query: an id, and the arguments that the platform accepts with this id."""

    name: str
    """The platform's name of the query, which is part of the URL."""
    query_id: str
    variables: Mapping[str, Any]
    """The query's variables. Values may be placeholders."""
    features: Mapping[str, bool] = field(default_factory=dict)
    field_toggles: Mapping[str, bool] = field(default_factory=dict)

    @property
    def is_usable(self) -> bool:
        """Whether a variable contains the profile's handle or id, so that the query can be sent for other profiles."""
        return any(isinstance(each, str) and each in {HANDLE, USER_ID} for each in self.variables.values())

    def filled(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the variables with the placeholders replaced by values."""
        placed = {
            key: values.get(each, each) if isinstance(each, str) else each for key, each in self.variables.items()
        }
        return {key: each for key, each in placed.items() if each != "" or self.variables[key] == ""}


class Query(IdsModel):
    """A query of the guest API."""

    name: str = Field(pattern=r"^\w{1,60}$")
    """The platform's name of the query."""
    ids: list[QueryId] = Field(min_length=1)
    """The query's ids, in the order in which they are tried."""
    variables: dict[str, Any]
    """The query's variables, with placeholders: ``$handle``, ``$user_id`` and ``$cursor``."""
    field_toggles: dict[str, bool] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _placeholders(self) -> Query:
        used = {each for each in self.variables.values() if isinstance(each, str) and each.startswith("$")}
        unknown = used - {HANDLE, USER_ID, CURSOR}
        if unknown:
            raise ValueError(f"unknown placeholder {', '.join(sorted(unknown))}; use {HANDLE}, {USER_ID} or {CURSOR}")
        if not used & {HANDLE, USER_ID}:
            raise ValueError(f"one variable must be {HANDLE} or {USER_ID}")
        return self


class Ids(IdsModel):
    """The platform's data file."""

    note: str = ""
    """Where and when the values were copied."""
    bearer: str = Field(pattern=r"^[\x21-\x7e]+$")
    """The key of the platform's web client, which is the same for all visitors."""
    user: Query
    """The query for a user by handle."""
    timeline: Query
    """The query for a user's posts. This query must have a variable for the cursor."""
    features: dict[str, bool]
    """The feature flags that are sent with both queries."""

    @model_validator(mode="after")
    def _has_cursor(self) -> Ids:
        if CURSOR not in self.timeline.variables.values():
            raise ValueError(f"one variable of the timeline must be {CURSOR}")
        return self

    def forms(self, query: Query) -> list[QueryForm]:
        """Return the forms of one of the two queries, in the order in which they are tried."""
        return [
            QueryForm(query.name, query_id, query.variables, self.features, query.field_toggles)
            for query_id in query.ids
        ]

    def form_on_page(self, query: Query, named: QueryForm) -> QueryForm:
        """Return a query's form with the id that a profile page contains.

        If the query on the page has variables with the same names as in the data file, or has no variable with the
        profile's handle or id, the file's variables and flags are used. Otherwise the page's variables are used without
        flags, because the newer web client sends no flags.
        """
        usual = {key for key, value in query.variables.items() if value != CURSOR}
        if named.variables.keys() - {"cursor"} == usual or not named.is_usable:
            return replace(self.forms(query)[0], query_id=named.query_id)
        cursor = {"cursor": CURSOR} if query is self.timeline else {}
        return replace(named, variables={**named.variables, **cursor})


def named_queries(streams: list[dict[str, Any]], handle: str, user_id: str) -> list[QueryForm]:
    """Return the queries in a profile page's streams, without flags: the page's own script sends no flags.

    The key of a stream consists of a query's id and its variables. In the variables, the profile's handle and id are
    replaced by placeholders.
    """
    found = []
    for stream in streams:
        key = _STREAM_KEY.fullmatch(text(stream.get("key")))
        if key is None or not text(stream.get("name")):
            continue
        variables = _decoded(key[2])
        placed = {name: _placeholder(value, handle, user_id) for name, value in variables.items()}
        found.append(QueryForm(text(stream["name"]), key[1], placed))
    return found


def _decoded(variables: str) -> dict[str, Any]:
    try:
        found = decode(variables, what="variables")
    except ExtractionFailed:
        return {}
    return found if isinstance(found, dict) else {}


def _placeholder(value: Any, handle: str, user_id: str) -> Any:
    if isinstance(value, str) and value:
        if value.casefold() == handle.casefold():
            return HANDLE
        if value == user_id:
            return USER_ID
    return value
