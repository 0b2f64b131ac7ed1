"""The simulated microblog's HTML pages. The pages' data is in scripts: JavaScript in profiles, JSON in embeds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import orjson

from crawler.sandbox.microblog.account import Post, User
from crawler.sandbox.microblog.new import KEY, entry, plain, user_payload, user_results
from crawler.sandbox.microblog.old import b64
from crawler.sandbox.skeletons import Fragments, Skeletons

fill, render = Skeletons(__file__), Fragments(__file__)

_BARE = re.compile(r"[A-Za-z0-9_$]+", re.ASCII)

# The two encodings of the page's data


def records(user: User, posts: list[Post]) -> dict[str, Any]:
    """Build the page's data as flat records: each object occurs once, and other objects refer to it by its id."""
    store: dict[str, dict[str, Any]] = {"client:root": {"__id": "client:root", "__typename": "__Root"}}
    for name, kind in (("Tweet", "__isTweetResult"), ("TimelineTweet", "__isTimelineTimelineItemContent")):
        store[f"client:__type:{name}"] = {"__id": f"client:__type:{name}", "__typename": "__TypeSchema", kind: True}
    _normalise(user_results(user, whole=True), store, "")
    timeline = f"client:{b64(f'Timeline:{user.id}')}:__timeline_urt"
    listed = []
    for post in posts:
        ref = _normalise(entry(post), store, "")
        copy_id = f"{timeline}:entries:tweet-{post.id}"
        copy = store[ref["__ref"]] | {"__id": copy_id, "is_unread": False, "conversation_position": None}
        store[copy_id] = copy  # ``_Literal`` writes the references in the copy as references to slots
        listed.append(copy_id)
    end = "client:ProfileOriginalsProduct-Timeline:instructions:2"
    store[end] = {"__id": end, "__typename": "TimelineTerminateTimeline", "direction": "TopAndBottom"}
    store[timeline] = fill("timeline", timeline=timeline, end=end, listed=listed)
    return store


def _normalise(value: dict[str, Any], store: dict[str, dict[str, Any]], path: str) -> dict[str, str]:
    """Add an object and the objects inside it to the store, and return a reference to the object's record."""
    record_id = str(value.get(KEY) or path)
    below = record_id if record_id.startswith("client:") else f"client:{record_id}"
    made: dict[str, Any] = {"__id": record_id}
    for key, each in value.items():
        if isinstance(each, dict):
            made[key] = _normalise(each, store, f"{below}:{key}")
        elif isinstance(each, list) and (not each or isinstance(each[0], dict)):
            refs = [_normalise(one, store, f"{below}:{key}:{n}")["__ref"] for n, one in enumerate(each)]
            made[key] = {"__refs": refs}
        elif key != KEY:
            made[key] = each
    # Merge the object with an earlier record, because the profile's user object has more keys than a post's author.
    store[record_id] = made | store.get(record_id, {})
    return {"__ref": record_id}


def nested(user: User, posts: list[Post]) -> dict[str, Any]:
    """Build the page's data as nested objects, in the order in which the page streams them."""
    instruction = {"__typename": "TimelineAddEntries", "entries": [entry(post) for post in posts]}
    timeline = {"id": "ProfileOriginalsProduct-Timeline", "instructions": [instruction]}
    result = plain(user_payload(user, whole=True)) | {"profile_timeline": plain({"timeline": timeline})}
    return {"user_result_by_screen_name": {"id": b64(f"UserResults:{user.id}"), "result": result}}


class _Literal:
    """Writes values as JavaScript. Each object gets a slot, ``$R[n]``, which replaces its repetitions."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.slots: dict[int, int] = {}
        self.kept: list[Any] = []

    def write(self, value: Any) -> str:
        if isinstance(value, dict | list):
            if id(value) in self.slots:
                return f"$R[{self.slots[id(value)]}]"
            slot = self.slots[id(value)] = self.first + len(self.slots)
            self.kept.append(value)
            if isinstance(value, list):
                return f"$R[{slot}]=[{','.join(map(self.write, value))}]"
            inside = ",".join(f"{_key(key)}:{self.write(each)}" for key, each in value.items())
            return f"$R[{slot}]={{{inside}}}"
        if isinstance(value, bool):
            return "!0" if value else "!1"
        if isinstance(value, str):
            return _quoted_text(value)
        return "null" if value is None else str(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted_text(key)


def _quoted_text(text: str) -> str:
    for old, new in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\u2028", "\\u2028"), ("<", "\\x3C")):
        text = text.replace(old, new)
    return f'"{text}"'


# Pages


def profile_page(user: User, posts: list[Post], *, flat: bool) -> bytes:
    """Render a profile's page. ``flat``: with flat records as its data, else with nested objects."""
    data = {"dehydratedData": {"relayRecords": records(user, posts)}} if flat else {"matches": [nested(user, posts)]}
    created = datetime.fromtimestamp(user.created, UTC).isoformat().replace("+00:00", ".000Z")
    linked = fill(
        "person", user=user, created=created, picture=user.large_picture, links=[user.link] if user.link else []
    )
    return render(
        "profile",
        user=user,
        title=f"{user.name} (@{user.handle}) / X",
        picture=user.picture.replace("_normal", "_200x200"),
        linked=_in_script(linked),
        data=_Literal().write(data),
    ).encode()


def _in_script(data: dict[str, Any]) -> str:
    return orjson.dumps(data).decode().replace("<", "\\u003c")


def with_streams(page: bytes, queries: list[tuple[str, str, dict[str, Any]]]) -> bytes:
    """Add a stream for each of the page's own queries to a profile's page. ``queries``: ids, names, variables."""
    states: list[str] = []
    for query_id, name, variables in queries:
        key = query_id + orjson.dumps(variables).decode()
        for state in ("Started", "Completed"):
            stream = {"kind": f"GraphQLRequestStream.{state}", "key": key, "name": name}
            states.append(f"$R[9000].next({_Literal(9_001 + len(states)).write(stream)})")
    script = f"<script data-tsr-stream-part>{';'.join(states)}</script>"
    return page.replace(b"</body>", script.encode() + b"</body>")


def other_page(title: str, body: str, head: str = "") -> bytes:
    """Render a page that contains no data, such as an error page."""
    return render("other", title=title, body=body, head=head).encode()


def embed_page(handle: str, entries: list[dict[str, Any]]) -> bytes:
    """Render the embeddable timeline of an account."""
    latest = entries[0]["content"]["tweet"]["id_str"] if entries else ""
    data = fill("embed", handle=handle, entries=entries, latest=latest, has_results=bool(entries))
    return other_page("", render("embed", block=_in_script(data)))
