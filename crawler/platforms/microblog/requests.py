"""Microblog: builds the requests for the platform's public sources from handles, ids and cursors.

The profile's page contains the newest posts. The embed is the timeline that can be shown on other sites. The guest API
needs a token, which the platform issues to every visitor. Only the guest API returns further pages of posts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import orjson
from scrapy import Request

from crawler.platforms.microblog.ids import CURSOR, HANDLE, USER_ID, QueryForm

PUBLIC_SITE = "https://x.com"
"""Value of the ``Origin`` header, and start of the ``Referer`` header, in API requests."""


def profile_request(origin: str, handle: str) -> Request:
    """Build the request for a profile's public page."""
    return Request(f"{origin}/{handle}", meta={"page_params": {"username": handle}})


def embed_request(origin: str, handle: str) -> Request:
    """Build the request for a profile's embeddable timeline."""
    url = f"{origin}/srv/timeline-profile/screen-name/{handle}"
    return Request(url, meta={"page_params": {"username": handle}})


def token_request(origin: str, *, bearer: str) -> Request:
    """Build the request for a guest token."""
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "*/*"}
    return Request(f"{origin}/1.1/guest/activate.json", method="POST", headers=headers, meta={"page_params": {}})


@dataclass(frozen=True)
class Credentials:
    """The credentials of a guest's query: the web client's bearer token, and the guest token ("" if there is none)."""

    bearer: str
    token: str


def user_request(
    origin: str, handle: str, *, form: QueryForm, credentials: Credentials, missing: Iterable[str] = ()
) -> Request:
    """Build the API request for a user by handle.

    ``missing`` are feature flags that the platform required in an earlier response; they are sent as false.
    """
    request = _call(origin, form, {HANDLE: handle}, credentials, missing)
    return request.replace(meta={"page_params": {"username": handle}})


def timeline_request(  # noqa: PLR0913  # the arguments are the variables of the query
    origin: str,
    handle: str,
    *,
    user_id: str,
    form: QueryForm,
    credentials: Credentials,
    cursor: str = "",
    missing: Iterable[str] = (),
) -> Request:
    """Build the API request for a page of a user's posts: the page at ``cursor``, or the first page."""
    values = {HANDLE: handle, USER_ID: user_id, CURSOR: cursor}
    request = _call(origin, form, values, credentials, missing)
    return request.replace(meta={"page_params": {"username": handle, "cursor": cursor}})


def _call(
    origin: str, form: QueryForm, values: Mapping[str, str], credentials: Credentials, missing: Iterable[str]
) -> Request:
    arguments = {
        "variables": form.filled(values),
        "features": {**form.features, **dict.fromkeys(missing, False)},
        "fieldToggles": dict(form.field_toggles),
    }
    query = urlencode({name: orjson.dumps(each).decode() for name, each in arguments.items() if each}, quote_via=quote)
    headers = {
        "Accept": "*/*",
        "Authorization": f"Bearer {credentials.bearer}",
        "Content-Type": "application/json",
        "Origin": PUBLIC_SITE,
        "Referer": f"{PUBLIC_SITE}/",
        **({"X-Guest-Token": credentials.token} if credentials.token else {}),
        "X-Twitter-Active-User": "yes",
        "X-Twitter-Client-Language": "en",
    }
    return Request(f"{origin}/graphql/{form.query_id}/{form.name}?{query}", headers=headers)
