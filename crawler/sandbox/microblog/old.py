"""The simulated microblog's users, posts and timelines in the formats of two API generations and of embeds."""

from __future__ import annotations

import html
from base64 import b64encode
from dataclasses import replace
from typing import Any

from crawler.sandbox.microblog.account import Media, Post, User, date_text
from crawler.sandbox.skeletons import ABSENT, Skeletons

NEW = "C"
"""The format of the newest generation."""

fill = Skeletons(__file__)

# Users


def b64(text: str) -> str:
    """Encode an id in base64, as in records."""
    return b64encode(text.encode()).decode()


def user_payload(user: User, shape: str) -> dict[str, Any]:
    """Build a user in the format of an API generation."""
    common = fill(
        "user",
        user=user,
        id=b64(f"User:{user.id}"),
        label=fill("label") if user.kind else {},
        business={"affiliates_count": 100} if user.kind else {},
        shape="Square" if user.kind else "Circle",
    )
    newer = common | fill("newer user", **_texts(user))
    if shape == NEW:
        return newer | fill("newest user", user=user)
    legacy = oldest_user(user)
    for moved in ("created_at", "location", "name", "profile_image_url_https", "screen_name", "verified"):
        del legacy[moved]
    return newer | {
        "legacy": fill("older user legacy") | legacy | {"url": user.link, "profile_banner_url": user.banner}
    }


def oldest_user(user: User, *, stale: int = 0) -> dict[str, Any]:
    """Build a user in the oldest format, as in embeds. ``stale`` is subtracted from the follower count."""
    return fill(
        "user legacy",
        **_texts(user),
        followers=user.followers - stale,
        protected=user.protected or ABSENT,
        banner=user.banner or ABSENT,
        link=user.link or ABSENT,
    )


def _texts(user: User) -> dict[str, Any]:
    urls = {"url": {"urls": [fill("user link", user=user)]}} if user.link else {}
    return {
        "user": user,
        "created": date_text(user.created),
        "name": html.escape(user.name),
        "about": html.escape(user.about, quote=False),
        "kind": user.kind or ABSENT,
        "bio": {"description": {"urls": []}, **urls},
    }


# Posts


def post_payload(post: Post, shape: str, *, depth: int = 0) -> dict[str, Any]:
    """Build a post in the format of an API generation."""
    deadline = str(post.time * 1000 + 3_600_000)
    edit_control = fill("edit control", post=post, editable_until=deadline, editable=not post.reply_id)
    made = fill(
        "post",
        post=post,
        author=user_payload(post.author, shape),
        edit_control=edit_control,
        legacy=legacy(post, sparse=shape == NEW),
        views={"state": "Enabled"} if post.views is None else {"count": str(post.views), "state": "EnabledWithCount"},
    )
    if post.long:
        made["note_tweet"] = _note(post)
    if post.carded:
        author = user_payload(post.author, NEW)
        made |= fill("carded", post=post, author=author, edit_control=edit_control, id=b64(f"ArticleEntity:{post.id}"))
    if post.repost_of:
        made["legacy"]["retweeted_status_result"] = {"result": post_payload(post.repost_of, shape, depth=depth + 1)}
    if post.quote_id and not post.repost_of:
        made |= _quoted(post, shape, depth)
    if post.wrapped:
        del made["__typename"]
        return fill("limited", tweet=made)
    return made


def _quoted(post: Post, shape: str, depth: int) -> dict[str, Any]:
    if depth:
        return {"quotedRefResult": {"result": {"__typename": "Tweet", "rest_id": post.quote_id}}}
    if post.quote_of:
        return {"quoted_status_result": {"result": post_payload(post.quote_of, shape, depth=1)}}
    return {"quoted_status_result": {"result": fill("gone")} if int(post.id) % 2 else {}}


def legacy(post: Post, *, sparse: bool) -> dict[str, Any]:
    """Build the part of a post that is the same in all API generations. Posts in embeds consist of this part only."""
    text = post.served
    media = [] if post.repost_of else [_media(post, each, text) for each in post.media]
    entities = {
        **(_entities(text, replace(post, tags=(), links=()) if post.long or post.repost_of else post)),
        "user_mentions": [_mention(post.reply_handle)] if post.reply_handle else [],
        **({"media": media[:1]} if media else {}),
    }
    made = fill(
        "legacy",
        post=post,
        **post.figures,
        text=text,
        created=date_text(post.time),
        conversation=post.reply_id or post.id,
        length=len(text) - (24 if media else 0),
        entities={key: value for key, value in entities.items() if value or not sparse},
        quotes_post=bool(post.quote_id) or bool(post.repost_of and post.repost_of.quote_id),
    )
    if media:
        made |= fill("with media", media=media)
    if post.reply_handle:
        made |= {"in_reply_to_screen_name": post.reply_handle, "in_reply_to_user_id_str": "12"}
    if post.reply_id:
        made["in_reply_to_status_id_str"] = post.reply_id
    return made | (fill("quoting", post=post) if post.quote_id else {})


def _entities(text: str, post: Post) -> dict[str, Any]:
    """Build the positions of a post's hashtags and links in a text."""
    return {
        "hashtags": [{"indices": span(text, f"#{tag}"), "text": tag} for tag in post.tags],
        "symbols": [],
        "urls": [fill("link", span=span(text, short), short=short, long=long) for short, long in post.links],
    }


def _mention(handle: str) -> dict[str, Any]:
    return {"id_str": "12", "indices": [0, len(handle) + 1], "name": "x", "screen_name": handle}


def embedded(post: Post, stale: int) -> dict[str, Any]:
    """Build a post in the format of embeds: not nested, with its author inside, and without views and bookmarks."""
    made = legacy(post, sparse=False)
    for key in ("bookmark_count", "bookmarked", "user_id_str"):
        del made[key]
    user = oldest_user(post.author, stale=stale) | {"id_str": post.author.id, "is_blue_verified": post.author.blue}
    user |= {"protected": post.author.protected}
    made |= {"id": 0, "permalink": f"/{post.author.handle}/status/{post.id}", "text": post.served, "user": user}
    if post.long:
        made["full_text"] = made["text"] = html.escape(post.whole, quote=False) + (
            f" {post.media[0].short}" if post.media else ""
        )
        made["entities"] = legacy(replace(post, long=False), sparse=False)["entities"]
    if post.repost_of:
        made["retweeted_status"] = embedded(post.repost_of, 0)
    if post.quote_of and not post.repost_of:
        made["quoted_status"] = embedded(post.quote_of, 0)
    return made


def _note(post: Post) -> dict[str, Any]:
    return fill("note", post=post, id=b64(f"NoteTweet:{post.id}"), **_entities(post.whole, post))


def span(text: str, part: str) -> list[int]:
    """Return the start and the end of the last occurrence of a part in a text."""
    start = text.rfind(part)
    return [start, start + len(part)]


def _media(post: Post, each: Media, text: str) -> dict[str, Any]:
    return fill(
        "media",
        post=post,
        media=each,
        span=span(text, each.short),
        info={"monetizable": False} if each.files else ABSENT,
        video=fill("video", variants=variants(each)) if each.files else ABSENT,
    )


def variants(each: Media, *, explicit: bool = False) -> list[dict[str, Any]]:
    """Build the list of a video's variants: its files, and a stream that has no bitrate."""
    files: list[dict[str, Any]] = [
        {"bitrate": rate, "content_type": "video/mp4", "url": url} for rate, url in each.files
    ]
    if each.kind == "video":
        stream: dict[str, Any] = {
            "content_type": "application/x-mpegURL",
            "url": f"https://video.twimg.com/{each.id}/pl/list.m3u8?tag=28",
        }
        files.insert(len(files) // 2, stream | ({"bitrate": None} if explicit else {}))
    return files


# Timelines


def timeline(entries: list[dict[str, Any]], pinned: dict[str, Any] | None, *, end: bool) -> dict[str, Any]:
    """Build the response to the query for a user's posts."""
    instructions: list[dict[str, Any]] = [{"type": "TimelineClearCache"}]
    if pinned:
        instructions.append({"entry": pinned, "type": "TimelinePinEntry"})
    instructions.append({"entries": entries, "type": "TimelineAddEntries"})
    if end:
        instructions.append({"direction": "Bottom", "type": "TimelineTerminateTimeline"})
    held = fill("timeline", instructions=instructions)
    return {"data": {"user": {"result": {"__typename": "User", "timeline": held}}}}


def entry(post: Post, shape: str, *, pinned: bool = False, promoted: bool = False) -> dict[str, Any]:
    """Build a post's entry in the timeline."""
    context = {"contextType": "Pin", "text": "Pinned", "type": "TimelineGeneralContext"}
    promotion = {"advertiser_results": {"result": {}}, "impressionId": "1"}
    return fill(
        "entry",
        post=post,
        payload=post_payload(post, shape),
        event=_event("pinned_tweets" if pinned else "tweet"),
        context=context if pinned else ABSENT,
        promoted=promotion if promoted else ABSENT,
    )


def conversation(posts: list[Post], shape: str) -> dict[str, Any]:
    """Build the timeline's entry for a conversation: a reply and the post that it replies to."""
    return fill(
        "conversation",
        post=posts[-1],
        items=[_module_item(posts[-1], post, shape) for post in posts],
        ids=[post.id for post in posts],
        event=_event("suggest_ranked_organic_tweet"),
    )


def _module_item(last: Post, post: Post, shape: str) -> dict[str, Any]:
    content = entry(post, shape)["content"]
    item = {key: content[key] for key in ("clientEventInfo", "itemContent")}
    return {"dispensable": True, "entryId": f"profile-conversation-{last.id}-tweet-{post.id}", "item": item}


def who_to_follow(others: list[User], shape: str) -> dict[str, Any]:
    """Build the timeline's entry with recommended users."""
    event = _event("suggest_who_to_follow")
    items = [fill("recommended", user=user, event=event, payload=user_payload(user, shape)) for user in others]
    return fill("who to follow", event=event, items=items)


def cursor(kind: str, value: str) -> dict[str, Any]:
    """Build the timeline's entry with a cursor."""
    return fill("cursor", kind=kind, value=value, lower=kind.lower())


def tombstone(number: str) -> dict[str, Any]:
    """Build the timeline's entry for a removed post."""
    return fill("tombstone", number=number)


def _event(component: str) -> dict[str, Any]:
    return fill("event", component=component)
