"""The simulated microblog's pages: its newest client, rendered on the server, with the data in script literals."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from typing import Any

import orjson

from crawler.sandbox.microblog_account import Media, Post, User
from crawler.sandbox.microblog_old import b64, variants

KEY = "__key"
"""The id under which an object becomes a record of its own."""
_BARE = re.compile(r"[A-Za-z0-9_$]+", re.ASCII)

# Objects of the newest client


def user(who: User, *, whole: bool) -> dict[str, Any]:
    """A user; ``whole`` is the one whose page it is, the others are fragments beside their posts."""
    core: dict[str, Any] = {"__typename": "UserCore", "screen_name": who.handle, "name": who.name}
    verification: dict[str, Any] = {"__typename": "UserVerification", "is_blue_verified": who.blue}
    verification["verified_type"] = who.kind or None
    made: dict[str, Any] = {
        KEY: b64(f"User:{who.id}"),
        "__typename": "User",
        "core": core,
        "rest_id": who.id,
        "avatar": {"__typename": "UserAvatar", "image_url": who.picture},
        "relationship_counts": {
            "__typename": "UserRelationshipCounts",
            "followers": who.followers,
            "following": who.following,
        },
        "tweet_counts": {"__typename": "UserTweetCounts", "tweets": who.posts},
        "profile_image_shape": "Circle",
        "identity_profile_labels_highlighted_label": {"__typename": "HighlightedUserLabelResponse", "label": None},
        "privacy": {"__typename": "UserPrivacy", "protected": who.protected},
        "verification": verification,
        "id": b64(f"User:{who.id}"),
    }
    if whole:
        core["created_at_ms"] = who.created * 1000
        verification["verified"] = False
        made["profile_bio"] = {"__typename": "UserProfileBio", "description": html.escape(who.about, quote=False)}
    return made


def post(it: Post, *, depth: int = 0) -> dict[str, Any]:
    """A post."""
    quoted = it.quote_id if depth == 0 and not it.repost_of else ""
    placeholder = it.repost_of is not None
    counts: dict[str, Any] = {
        "__typename": "ApiCounts",
        "bookmark_count": 0 if placeholder else it.saves,
        "favorite_count": 0 if placeholder else it.likes,
        "reply_count": 0 if placeholder else it.replies,
        "retweet_count": it.repost_of.shares if it.repost_of else it.shares,
    }
    if depth:
        del counts["bookmark_count"]
    text = it.served
    shown = not it.long and not placeholder
    return {
        KEY: b64(f"Tweet:{it.id}"),
        "__typename": "Tweet",
        "rest_id": it.id,
        "core": {"__typename": "TweetCore", "user_results": _user_results(it.author)},
        "legacy": {
            "__typename": "LegacyTweet",
            "retweeted_status_results": post_results(it.repost_of, depth=1) if it.repost_of else None,
            "possibly_sensitive": False if it.media else None,
            "lang": "en",
        },
        "counts": counts,
        "views": {"__typename": "ViewCountInfo", **({} if it.views is None else {"count": str(it.views)})},
        "details": {
            "__typename": "TBirdData",
            "conversation_control": None,
            "display_text_range": [0, len(text)],
            "self_thread_metadata": None,
            "full_text": text,
            "hashtag_entities": [{"__typename": "HashtagEntity", "text": tag} for tag in it.tags] if shown else [],
            "timestamp_entities": [],
            "cashtag_entities": [],
            "smarttags": [],
            "created_at_ms": it.time * 1000,
        },
        "mention_entities": [],
        "reply_to_results": _reply(it),
        "reply_to_user_results": _reply_user(it),
        "media_entities2": [_media(each, text) for each in it.media] if not placeholder else [],
        "quoted_tweet_results": _quoted(it) if quoted else None,
        "card": None,
        "jetfuel_attachment": None,
        "article": None,
        "cashtag_attachments": [],
        "birdwatch_pivot": None,
        "content_disclosure": None,
        "url_entities": [_link(text, short, long) for short, long in it.links] if shown else [],
        "note_tweet": _note(it) if it.long else None,
        "grok_translated_post_with_availability": {
            "__typename": "ApiGrokTranslateResponse",
            "is_available": False,
            "data": None,
        },
        "exclusive_tweet_info": None,
        "reaction_context": None,
        "place": {"__typename": "ApiPlace", "full_name": None, "id": None},
        "super_follows_conversation_user_results": None,
        "id": b64(f"Tweet:{it.id}"),
    }


def post_results(it: Post, *, depth: int = 0) -> dict[str, Any]:
    """A post as something that may be missing."""
    made: dict[str, Any] = {KEY: f"TweetResults:{it.id}", "__typename": "TweetResults", "result": post(it, depth=depth)}
    return made | {"id": b64(f"TweetResults:{it.id}"), "rest_id": it.id}


def _user_results(who: User, *, whole: bool = False) -> dict[str, Any]:
    made_id = b64(f"UserResults:{who.id}")
    return {KEY: made_id, "__typename": "UserResults", "result": user(who, whole=whole), "id": made_id}


def _quoted(it: Post) -> dict[str, Any]:
    if it.quote_of:
        return post_results(it.quote_of, depth=1)
    gone = {"__typename": "BlurredMediaTombstone", "text": "Log in to X to view this post."} if int(it.id) % 2 else None
    return {KEY: f"TweetResults:{it.quote_id}", "__typename": "TweetResults", "result": gone, "rest_id": it.quote_id}


def _reply(it: Post) -> dict[str, Any] | None:
    if not it.reply_id:
        return None
    return {KEY: f"TweetResults:{it.reply_id}", "__typename": "TweetResults", "result": None, "rest_id": it.reply_id}


def _reply_user(it: Post) -> dict[str, Any] | None:
    if not it.reply_handle:
        return None
    who = {
        KEY: b64("User:12"),
        "__typename": "User",
        "core": {"__typename": "UserCore", "screen_name": it.reply_handle},
    }
    return {KEY: b64(f"UserResults:{it.reply_handle}"), "__typename": "UserResults", "result": who}


def _note(it: Post) -> dict[str, Any]:
    entity_set = {
        "__typename": "EntitySet",
        "hashtags": [{"__typename": "HashtagEntity", "text": tag} for tag in it.tags],
        "symbols": [],
        "smarttags": [],
        "urls": [_link(it.whole, short, long) for short, long in it.links],
        "timestamps": None,
        "user_mentions": [],
    }
    note_id, results_id = b64(f"NoteTweet:{it.id}"), b64(f"NoteTweetResults:{it.id}")
    note = {KEY: note_id, "__typename": "NoteTweet", "text": it.whole, "entity_set": entity_set, "id": note_id}
    results = {KEY: results_id, "__typename": "NoteTweetResults", "result": note, "id": results_id}
    return {"__typename": "NoteTweetData", "is_expandable": True, "note_tweet_results": results}


def _link(text: str, short: str, long: str) -> dict[str, Any]:
    start = text.rfind(short)
    return {
        "__typename": "UrlsEntity",
        "display_url": "example.org/…",
        "expanded_url": long,
        "indices": [start, start + len(short)],
        "url": short,
    }


def _media(each: Media, text: str) -> dict[str, Any]:
    start = text.rfind(each.short)
    info = None
    if each.files:
        files = [{"__typename": "ApiMediaEntityVideoVariant", **file} for file in variants(each, explicit=True)]
        info = {"__typename": "ApiMediaEntityVideoInfo", "duration_millis": 11433, "variants": files}
    meta = {"__typename": "ApiMediaMetadata", "title": None, "description": None, "source_user": None}
    return {
        "__typename": "ApiMediaEntity",
        "media_url_https": each.thumbnail,
        "type": each.kind,
        "indices": [start, start + len(each.short)],
        "id_str": each.id,
        "original_info": {"__typename": "ApiMediaEntityOriginalInfo", "width": 1622, "height": 1548},
        "ext_alt_text": None,
        "additional_media_info": meta if each.files else None,
        "sensitive_media_warning": None,
        "video_info": info,
        "source_status_id_str": None,
        "ext_playlists": [],
        "features": {"__typename": "ApiMediaEntityFeatures", "all": None},
    }


def entry(it: Post, *, kind: str = "tweet") -> dict[str, Any]:
    """A timeline's entry of a post."""
    entry_id = f"{kind}-{it.id}"
    shown = {
        "__typename": "TimelineTweet",
        "promoted_metadata": None,
        "tweet_results": post_results(it),
        "display_type": "Tweet",
        "social_context": None,
        "has_moderated_replies": None,
    }
    event = {
        "__typename": "TimelineClientEventInfo",
        "action": None,
        "component": "organic_tweets",
        "element": "tweet",
        "details": None,
    }
    content = {
        "__typename": "TimelineTimelineItem",
        "client_event_info": event,
        "feedback_info": None,
        "content": shown,
    }
    return {
        KEY: f"urt:server:TimelineTimelineEntry:{entry_id}",
        "__typename": "TimelineTimelineEntry",
        "content": content,
        "entry_id": entry_id,
        "sort_index": it.id,
    }


def call_timeline(posts: list[Post], pinned: Post | None, following: str, *, end: bool) -> dict[str, Any]:
    """The answer of the newest client's call for a user's posts."""
    instructions: list[dict[str, Any]] = []
    if pinned:
        instructions.append({"__typename": "TimelinePinEntry", "entry": entry(pinned)})
    entries = [entry(it) for it in posts]
    if following:
        bottom = {"__typename": "TimelineTimelineCursor", "cursor_type": "Bottom", "value": following}
        entries.append({"entry_id": "cursor-bottom-1", "sort_index": "1", "content": bottom})
    instructions.append({"__typename": "TimelineAddEntries", "entries": entries})
    if end:
        instructions.append({"__typename": "TimelineTerminateTimeline", "direction": "Bottom"})
    result = {"__typename": "User", "profile_timeline_v2": {"timeline": {"instructions": instructions}}}
    made: dict[str, Any] = _plain({"data": {"user_result_by_screen_name": {"result": result}}})
    return made


# Their two encodings


def _plain(value: Any) -> Any:
    """Nested objects, without the ids of records."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != KEY}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def records(who: User, posts: list[Post]) -> dict[str, Any]:
    """The page's store of records: each object once, and references between them."""
    store: dict[str, dict[str, Any]] = {"client:root": {"__id": "client:root", "__typename": "__Root"}}
    _normalise(_user_results(who, whole=True), store, "")
    timeline = f"client:{b64(f'Timeline:{who.id}')}:__timeline_urt"
    listed = []
    for it in posts:
        ref = _normalise(entry(it), store, "")
        copy_id = f"{timeline}:entries:tweet-{it.id}"
        copy = store[ref["__ref"]] | {"__id": copy_id, "is_unread": False, "conversation_position": None}
        store[copy_id] = copy  # the copy holds the very same reference object, which is then written as a slot
        listed.append(copy_id)
    end = "client:ProfileOriginalsProduct-Timeline:instructions:2"
    store[end] = {"__id": end, "__typename": "TimelineTerminateTimeline", "direction": "TopAndBottom"}
    store[timeline] = {
        "__id": timeline,
        "__typename": "TimelineTimeline",
        "id": "ProfileOriginalsProduct-Timeline",
        "response_objects": None,
        "instructions": {"__refs": [end]},
        "entries": {"__refs": listed},
        "held_entries": {"__refs": []},
        "top_cursor": None,
        "bottom_cursor": None,
        "pinned_entry_ids": [],
        "unread_entry_ids": [],
        "unread_entries_sort_index": None,
        "is_terminated_at_bottom": True,
        "is_terminated_at_top": True,
        "last_top_fetch_timestamp_ms": 1_789_210_687_330,
        "last_revealed_timestamp_ms": None,
    }
    return store


def _normalise(value: dict[str, Any], store: dict[str, dict[str, Any]], path: str) -> dict[str, str]:
    """Puts an object into the store and returns the reference to it."""
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
    # A record that is known already only gains: a user's page has more of it than its posts.
    store[record_id] = made | store.get(record_id, {})
    return {"__ref": record_id}


def nested(who: User, posts: list[Post]) -> dict[str, Any]:
    """The page's data in the order of the stream, objects within objects."""
    instruction = {"__typename": "TimelineAddEntries", "entries": [entry(it) for it in posts]}
    timeline = {"id": "ProfileOriginalsProduct-Timeline", "instructions": [instruction]}
    result = _plain(user(who, whole=True)) | {"profile_timeline": _plain({"timeline": timeline})}
    return {"user_result_by_screen_name": {"id": b64(f"UserResults:{who.id}"), "result": result}}


class _Literal:
    """Writes values as a stream serialiser does: each object gets a slot, and is only named where it comes again."""

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        self.kept: list[Any] = []

    def write(self, value: Any) -> str:
        if isinstance(value, dict | list):
            if id(value) in self.slots:
                return f"$R[{self.slots[id(value)]}]"
            slot = self.slots[id(value)] = len(self.slots)
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


def profile_page(who: User, posts: list[Post], *, flat: bool) -> bytes:
    """The page of a profile: its data as records (``flat``), or as nested objects."""
    data = {"dehydratedData": {"relayRecords": records(who, posts)}} if flat else {"matches": [nested(who, posts)]}
    script = f'($R=>{_Literal().write(data)})($R["tsr"]);document.currentScript.remove()'
    return _document(who, f'<script class="$tsr">{script}</script>')


def _document(who: User, scripts: str) -> bytes:
    """The page around its data."""
    person = {
        "@type": "Person",
        "additionalName": who.handle,
        "name": who.name,
        "description": who.about,
        "homeLocation": {"@type": "Place", "name": who.location},
        "identifier": who.id,
        "image": {"@type": "ImageObject", "contentUrl": who.picture.replace("_normal", "_400x400")},
        "interactionStatistic": [
            {
                "@type": "InteractionCounter",
                "interactionType": f"https://schema.org/{action}",
                "userInteractionCount": number,
            }
            for action, number in (
                ("FollowAction", who.followers),
                ("SubscribeAction", who.following),
                ("WriteAction", who.posts),
            )
        ],
        "sameAs": [who.link] if who.link else [],
    }
    created = datetime.fromtimestamp(who.created, UTC).isoformat().replace("+00:00", ".000Z")
    linked = {"@context": "https://schema.org", "@type": "ProfilePage", "dateCreated": created, "mainEntity": person}
    block = orjson.dumps(linked).decode().replace("<", "\\u003c")
    title = html.escape(f"{who.name} (@{who.handle}) / X")
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"/>'
        f'<title>{title}</title><meta property="profile:username" content="{who.handle}"/>'
        f'<meta property="og:image" content="{who.picture.replace("_normal", "_200x200")}"/>'
        '<meta name="twitter:label1" content="Posts"/><meta name="twitter:data1" content="1.2K"/>'
        '<script type="module" src="https://abs.twimg.com/x-web/x-web/entry-client-logged-out-1a2b.js"></script>'
        f'<script type="application/ld+json">{block}</script></head><body><div id="root"><article>Post</article></div>'
        '<script class="$tsr">self.$R=self.$R||{};self.$_TSR={c(){document.querySelectorAll("."+"\\\\$tsr")}}</script>'
        f"{scripts}</body></html>"
    ).encode()


def other_page(title: str, body: str, head: str = "") -> bytes:
    """A page without data."""
    return f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()


def embed_page(handle: str, entries: list[dict[str, Any]]) -> bytes:
    """The page of an embedded timeline."""
    props = {
        "pageProps": {
            "contextProvider": {"features": {}, "scribeData": {"page": "profile"}, "hasResults": bool(entries)},
            "latest_tweet_id": entries[0]["content"]["tweet"]["id_str"] if entries else "",
            "headerProps": {"screenName": handle},
            "timeline": {"entries": entries},
        },
        "__N_SSP": True,
    }
    block = orjson.dumps({"props": props, "page": "/timeline-profile/screen-name/[screenName]", "query": {}}).decode()
    block = block.replace("<", "\\u003c")
    return other_page("", f'<div id="__next"></div><script id="__NEXT_DATA__" type="application/json">{block}</script>')
