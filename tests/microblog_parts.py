"""Puts recorded parts of the microblog's responses into a response to one of the project's requests.

Some captures are of posts that no request of the project receives in this form: timelines of lists, searches,
communities and threads, single posts, and excerpts of a page. The posts and scripts in them are the same as in a
profile's timeline and page. The posts of the responses until 2025-03 are also the same, but not their timelines and
authors: such an author is replaced by an invented one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_FIRST_SLOT = re.compile(rb":\$R\[\d+\]=")


MADE_UP = "madeUp"
"""The key of objects that are not recorded, so that their values do not count as evidence of contracts."""

AUTHOR = {
    MADE_UP: True,
    "__typename": "User",
    "rest_id": "7",
    "is_blue_verified": False,
    "core": {"screen_name": "quiet_harbor", "name": "Harbor", "created_at": "Tue Dec 09 19:02:13 +0000 2014"},
    "avatar": {"image_url": "https://pbs.twimg.com/profile_images/7/face_normal.jpg"},
    "banner": {"image_url": ""},
    "location": {"location": ""},
    "privacy": {"protected": False},
    "profile_bio": {"description": ""},
    "verification": {"verified": False},
    "website": {"url": ""},
    "action_counts": {"favorites_count": 1},
    "relationship_counts": {"followers": 5, "following": 6},
    "tweet_counts": {"media_tweets": 2, "tweets": 9},
}
"""The author of a post in a response of the time until 2025-03."""


def whole(body: bytes) -> bytes:
    """Return a response with the parts that a capture contains. A capture that is a whole response is unchanged."""
    if not body.lstrip().startswith(b"{"):
        first = None if b"<script" in body else _FIRST_SLOT.search(body)
        return body if first is None else _page(_closed(body[first.start() :].decode()))
    data = orjson.loads(body)
    if any(isinstance(each, dict) and "__id" in each for each in data.values()):
        return _page(f"($R=>$R[0]={{relayRecords:$R[1]={body.decode()}}})()")
    posts = [each for each in _values(data, "result") if "full_text" in each.get("legacy", {})]
    if not posts or "timeline" in data.get("data", {}).get("user", {}).get("result", {}):
        return body
    for user in _values(data, "user_results"):
        if "core" not in user.get("result", {}):
            user["result"] = AUTHOR
    instructions = next((each["instructions"] for each in _objects(data) if "instructions" in each), None)
    timeline = {"timeline": {"instructions": instructions or [_entry(posts[0])]}}
    return orjson.dumps({MADE_UP: True, "data": {"user": {"result": {"__typename": "User", "timeline": timeline}}}})


def _entry(post: dict[str, Any]) -> dict[str, Any]:
    item = {"itemType": "TimelineTweet", "tweet_results": {"result": post}}
    entry = {"entryId": "tweet-1", "content": {"entryType": "TimelineTimelineItem", "itemContent": item}}
    return {"type": "TimelineAddEntries", "entries": [entry]}


def _page(script: str) -> bytes:
    return f'<html><head></head><script class="$tsr">{script}</script></html>'.encode()


def _closed(script: str) -> str:
    """Return a script that ends in the middle of values, up to the last object or list that ends, with these closed."""
    expected: list[str] = []
    end, missing = 0, ""
    for token in _TOKEN.finditer(script):
        if token[0] in "{[":
            expected.append({"{": "}", "[": "]"}[token[0]])
        elif token[0] in "}]" and expected:
            expected.pop()
            end, missing = token.end(), "".join(reversed(expected))
    return script[:end] + missing


def _values(data: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield the objects under a key in nested data, the outermost first."""
    return (each[key] for each in _objects(data) if isinstance(each.get(key), dict))


def _objects(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in nested data, the outermost first."""
    waiting = [data]
    for each in waiting:
        if isinstance(each, dict):
            yield each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
