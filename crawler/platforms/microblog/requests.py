"""Microblog: builds the requests for the platform's public sources from handles, ids and cursors.

The profile's page contains the newest posts. The embed is the timeline that can be shown on other sites. The guest API
needs a token, which the platform issues to every visitor. Only the guest API returns further pages of posts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def query_request(  # noqa: PLR0913  # the parts of a query
    origin: str,
    form: QueryForm,
    page_params: Mapping[str, str],
    *,
    bearer: str,
    token: str,
    user_id: str = "",
    missing: Iterable[str] = (),
) -> Request:
    """Build the API request for a user, or for a page of a user's posts.

    Args:
        origin: the origin of the API.
        form: the query's id and arguments.
        page_params: the profile's ``username``; for posts, also the ``cursor`` of the page, "" for the first page.
        bearer: the key of the platform's web client.
        token: the guest token, "" if there is none.
        user_id: the profile's id, which the query for posts needs.
        missing: feature flags that the platform required in an earlier response; they are sent as false.
    """
    values = {HANDLE: page_params["username"], USER_ID: user_id, CURSOR: page_params.get("cursor", "")}
    arguments = {
        "variables": form.filled(values),
        "features": {**form.features, **dict.fromkeys(missing, False)},
        "fieldToggles": dict(form.field_toggles),
    }
    query = urlencode({name: orjson.dumps(each).decode() for name, each in arguments.items() if each}, quote_via=quote)
    headers = {
        "Accept": "*/*",
        "Authorization": f"Bearer {bearer}",
        "Content-Type": "application/json",
        "Origin": PUBLIC_SITE,
        "Referer": f"{PUBLIC_SITE}/",
        **({"X-Guest-Token": token} if token else {}),
        "X-Twitter-Active-User": "yes",
        "X-Twitter-Client-Language": "en",
    }
    url = f"{origin}/graphql/{form.query_id}/{form.name}?{query}"
    return Request(url, headers=headers, meta={"page_params": dict(page_params)})
