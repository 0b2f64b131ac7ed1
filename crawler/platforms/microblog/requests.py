"""Microblog: builds the requests for the platform's public sources from handles, ids and cursors.

The profile's page contains the newest posts. The embed is the timeline that can be shown on other sites. The guest API
needs a token, which the platform issues to every visitor. Only the guest API returns further pages of posts.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

import orjson
from scrapy import Request

from crawler.platforms.microblog import API, EMBED, PLATFORM
from crawler.platforms.microblog.ids import CURSOR, HANDLE, USER_ID, Ids, Query


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
