"""Microblog: the ids of the guest API's queries, from the platform's data file or from a profile page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field, StringConstraints, model_validator

from crawler.errors import ExtractionFailed
from crawler.platforms.requests import IdsModel
from crawler.reading.json import decode
from crawler.reading.values import text

HANDLE, USER_ID, CURSOR = "$handle", "$user_id", "$cursor"
"""Placeholders in a query's variables. A variable is omitted if its placeholder has no value, such as the cursor for
the first page."""
QUERY_ID = r"[A-Za-z0-9_-]{10,40}"
_STREAM_KEY = re.compile(rf"({QUERY_ID})(\{{.*\}})", re.DOTALL)

QueryId = Annotated[str, StringConstraints(pattern=f"^{QUERY_ID}$")]


class NamedQuery(NamedTuple):
    """A query that the script of a profile's page sends."""

    name: str
    query_id: str
    variables: dict[str, Any]
    """The query's variables, with placeholders for the profile's handle and id."""


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

    def filled(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the variables with the placeholders replaced by values."""
        placed = {
            key: values.get(each, each) if isinstance(each, str) else each for key, each in self.variables.items()
        }
        return {key: each for key, each in placed.items() if each != "" or self.variables[key] == ""}

    def as_on_page(self, named: NamedQuery) -> Query:
        """Return this query with the id that a page names, and with the page's variables if these have other names.

        The variables of this query are also kept if no variable on the page has the profile's handle or id.
        """
        cursor = {key: value for key, value in self.variables.items() if value == CURSOR}
        is_usual = named.variables.keys() - cursor.keys() == self.variables.keys() - cursor.keys()
        is_usable = any(each in (HANDLE, USER_ID) for each in named.variables.values())
        variables = self.variables if is_usual or not is_usable else {**named.variables, **cursor}
        return self.model_copy(update={"ids": [named.query_id], "variables": variables})


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
    """The feature flags that are sent with both queries, also with an id from a page: without them, the texts of long
    posts are cut."""

    @model_validator(mode="after")
    def _has_cursor(self) -> Ids:
        if CURSOR not in self.timeline.variables.values():
            raise ValueError(f"one variable of the timeline must be {CURSOR}")
        return self


def named_queries(streams: list[dict[str, Any]], handle: str, user_id: str) -> list[NamedQuery]:
    """Return the queries in a profile page's streams. The key of a stream consists of a query's id and its variables.

    >>> named_queries([{"name": "UserTweets", "key": 'Q-1234567890{"userId":"7"}'}], "harbor", "7")
    [NamedQuery(name='UserTweets', query_id='Q-1234567890', variables={'userId': '$user_id'})]
    """
    placed = {handle.casefold(): HANDLE, user_id: USER_ID}
    keys = ((text(each.get("name")), _STREAM_KEY.fullmatch(text(each.get("key")))) for each in streams)
    found = ((name, key[1], _decoded(key[2])) for name, key in keys if name and key)
    return [
        NamedQuery(
            name,
            query_id,
            {
                key: placed.get(each.casefold(), each) if isinstance(each, str) and each else each
                for key, each in variables.items()
            },
        )
        for name, query_id, variables in found
    ]


def _decoded(variables: str) -> dict[str, Any]:
    try:
        found = decode(variables, what="variables")
    except ExtractionFailed:
        return {}
    return found if isinstance(found, dict) else {}
