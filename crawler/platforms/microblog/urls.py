"""Microblog: reads links to profiles, and builds the requests for public sources from handles, ids and cursors. The ids
of the guest API's queries come from the platform's data file or from a profile page.

The profile's page contains the newest posts. The embed is the timeline that can be shown on other sites. The guest API
needs a token, which the platform issues to every visitor. Only the guest API returns further pages of posts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson
from pydantic import Field, StringConstraints, model_validator
from scrapy import Request

from crawler.errors import ExtractionFailed
from crawler.platforms.links import Found, Grammar, PlatformLinks, Url
from crawler.platforms.microblog import API, EMBED, PLATFORM
from crawler.platforms.requests import IdsModel
from crawler.reading.documents import decode
from crawler.reading.values import text

OLD_DOMAIN = "twitter.com"
HOSTS = re.compile(rf"(?:(?:www|m|mobile)\.)?(?:{re.escape(PLATFORM.domain)}|{re.escape(OLD_DOMAIN)})")
USERNAME = Grammar(r"@?[A-Za-z0-9_]{1,15}", "a handle has 1 to 15 letters, digits and underscores")
"""A handle. The @ in front of it is not part of it."""
RESERVED = frozenset(
    """
    about account compose download explore hashtag home i intent jobs login logout messages notifications oauth privacy
    search settings share signup tos who_to_follow
    """.split()  # noqa: SIM905  # a list of quoted words would need four times as many lines
)
"""The first path segments of the site's own pages, which are therefore not handles of profiles."""
_OTHER_PAGES = frozenset(
    {"followers", "following", "list", "lists", "moments", "status", "statuses", "verified_followers"}
)
"""The segments after a handle that lead to something else than the profile's posts."""


def target_of(url: Url) -> Found | None:
    """Return the profile that a URL leads to. The URL may also lead to one of the profile's tabs, or follow button.

    Before 2012, the path stood in the fragment: ``/#!/handle``.
    """
    if url.path in {"", "/"} and url.fragment.startswith("!/"):
        url = url._replace(path=url.fragment.removeprefix("!"))
    match url.segments():
        case ["intent", "user" | "follow"]:
            handle = url.arguments().get("screen_name", "")
        case [handle, tab, *_] if tab in _OTHER_PAGES:
            return None
        case [handle, *_] if handle.lower() not in RESERVED:
            pass
        case _:
            return None
    return ("profile", {"username": handle.removeprefix("@")}) if USERNAME.matches(handle) else None


LINKS = PlatformLinks(
    platform=PLATFORM,
    hosts=HOSTS,
    scrapers={"profile": ("microblog-profile",)},
    target_of=target_of,
    expected=f"expected a profile of {PLATFORM.domain} or {OLD_DOMAIN}: /<handle>",
    other_pages={
        "a post": re.compile(r"/(i/web|i|[^/]+)/status(es)?/"),
        "a list, community or space": re.compile(r"/i/(lists|communities|spaces)/|/[^/]+/lists?(/|$)"),
        "a list of people": re.compile(r"/[^/]+/(verified_)?follow(ers|ing)"),
        "a search": re.compile(r"/search|/hashtag/"),
        "a login page": re.compile(r"/login|/i/flow/"),
        "the home page": re.compile(r"/?$|/home"),
    },
    short_hosts=frozenset({"t.co", f"pic.{PLATFORM.domain}", f"pic.{OLD_DOMAIN}"}),
    redirects=re.compile(r"[^/]+/(login|i/flow/(login|signup))(/|$)"),
    destinations=("redirect_after_login",),
)


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


def profile_request(handle: str) -> Request:
    """Build the request for a profile's public page."""
    return Request(f"{PLATFORM.origin}/{handle}", meta={"page_params": {"username": handle}})


def embed_request(handle: str) -> Request:
    """Build the request for a profile's embeddable timeline."""
    url = f"{EMBED}/srv/timeline-profile/screen-name/{handle}"
    return Request(url, meta={"page_params": {"username": handle}})


def token_request(*, bearer: str) -> Request:
    """Build the request for a guest token."""
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "*/*"}
    return Request(f"{API}/1.1/guest/activate.json", method="POST", headers=headers, meta={"page_params": {}})


def query_request(
    ids: Ids, query: Query, query_id: str, page_params: Mapping[str, str], *, user_id: str = ""
) -> Request:
    """Build the API request for a user, or for a page of a user's posts. The request lacks the guest token.

    Args:
        ids: the platform's data file, which has the key and the flags.
        query: the query for the user or for the posts.
        query_id: the id with which the query is sent.
        page_params: the profile's ``username``; for posts, also the ``cursor`` of the page, "" for the first page.
        user_id: the profile's id, which the query for posts needs.
    """
    values = {HANDLE: page_params["username"], USER_ID: user_id, CURSOR: page_params.get("cursor", "")}
    arguments = {
        "variables": query.filled(values),
        "features": ids.features,
        "fieldToggles": query.field_toggles,
    }
    sent = urlencode({name: orjson.dumps(each).decode() for name, each in arguments.items() if each}, quote_via=quote)
    headers = {
        "Accept": "*/*",
        "Authorization": f"Bearer {ids.bearer}",
        "Content-Type": "application/json",
        "Origin": PLATFORM.origin,
        "Referer": f"{PLATFORM.origin}/",
        "X-Twitter-Active-User": "yes",
        "X-Twitter-Client-Language": "en",
    }
    url = f"{API}/graphql/{query_id}/{query.name}?{sent}"
    return Request(url, headers=headers, meta={"page_params": dict(page_params)})
