"""The simulated microblog's posts and timelines in the formats of three API generations and of embeds."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

from crawler.sandbox.microblog.account import Media, Post, User, date_text
from crawler.sandbox.microblog.user import NEW, OLDEST, b64, oldest_user, user_payload

# Posts


def post_payload(post: Post, shape: str, *, depth: int = 0) -> dict[str, Any]:
    """Build a post in the format of an API generation."""
    made: dict[str, Any] = {
        "__typename": "Tweet",
        "core": {"user_results": {"result": user_payload(post.author, shape)}},
        "edit_control": {
            "edit_tweet_ids": [post.id],
            "editable_until_msecs": str(post.time * 1000 + 3_600_000),
            "edits_remaining": "5",
            "is_edit_eligible": not post.reply_id,
        },
        "grok_translated_post_with_availability": {"is_available": False},
        "is_translatable": False,
        "legacy": legacy(post, sparse=shape == NEW),
        "quick_promote_eligibility": {"eligibility": "IneligibleNotProfessional"},
        "rest_id": post.id,
        "source": '<a href="https://mobile.x.com" rel="nofollow">Web App</a>',
        "unmention_data": {},
        "views": {"state": "Enabled"}
        if post.views is None
        else {"count": str(post.views), "state": "EnabledWithCount"},
    }
    if post.long:
        made["note_tweet"] = _note(post)
    if post.carded:
        made["card"] = _card(post)
        made["article"] = _article(post)
        made["previous_counts"] = dict.fromkeys(
            ("bookmark_count", "favorite_count", "quote_count", "reply_count", "retweet_count"), 1
        )
        made["edit_control"] = {"edit_control_initial": made["edit_control"], "initial_tweet_id": post.id}
    if post.repost_of:
        made["legacy"]["retweeted_status_result"] = {"result": post_payload(post.repost_of, shape, depth=depth + 1)}
    if post.quote_id and not post.repost_of:
        if depth:
            made["quotedRefResult"] = {"result": {"__typename": "Tweet", "rest_id": post.quote_id}}
        elif post.quote_of is None:
            unavailable = {
                "__typename": "TweetTombstone",
                "tombstone": {"__typename": "TextTombstone", "text": {"text": "Gone"}},
            }
            made["quoted_status_result"] = {"result": unavailable} if int(post.id) % 2 else {}
        else:
            made["quoted_status_result"] = {"result": post_payload(post.quote_of, shape, depth=1)}
    if post.wrapped:
        del made["__typename"]
        return {"__typename": "TweetWithVisibilityResults", "limitedActionResults": _limits(), "tweet": made}
    return made


def legacy(post: Post, *, sparse: bool) -> dict[str, Any]:
    """Build the part of a post that is the same in all API generations. Posts in embeds consist of this part only."""
    text = post.served
    entities: dict[str, Any] = {
        "hashtags": []
        if post.long or post.repost_of
        else [{"indices": _span(text, f"#{t}"), "text": t} for t in post.tags],
        "symbols": [],
        "urls": [] if post.long or post.repost_of else [_link(text, short, long) for short, long in post.links],
        "user_mentions": [],
    }
    if post.reply_handle:
        mention = {
            "id_str": "12",
            "indices": [0, len(post.reply_handle) + 1],
            "name": "x",
            "screen_name": post.reply_handle,
        }
        entities["user_mentions"] = [mention]
    media = [] if post.repost_of else [_media(post, each, text) for each in post.media]
    if media:
        entities["media"] = media[:1]
    placeholder = post.repost_of is not None
    made: dict[str, Any] = {
        "bookmark_count": 0 if placeholder else post.saves,
        "bookmarked": False,
        "conversation_id_str": post.reply_id or post.id,
        "created_at": date_text(post.time),
        "display_text_range": [0, len(text) - (24 if media else 0)],
        "entities": {key: value for key, value in entities.items() if value or not sparse},
        "favorite_count": 0 if placeholder else post.likes,
        "favorited": False,
        "full_text": text,
        "id_str": post.id,
        "is_quote_status": bool(post.quote_id) or bool(post.repost_of and post.repost_of.quote_id),
        "lang": "en",
        "quote_count": 0 if placeholder else post.quotes,
        "reply_count": 0 if placeholder else post.replies,
        "retweet_count": post.repost_of.shares if post.repost_of else post.shares,
        "retweeted": False,
        "user_id_str": post.author.id,
    }
    if media:
        made |= {
            "extended_entities": {"media": media},
            "possibly_sensitive": False,
            "possibly_sensitive_editable": True,
        }
    if post.reply_handle:
        made |= {"in_reply_to_screen_name": post.reply_handle, "in_reply_to_user_id_str": "12"}
    if post.reply_id:
        made["in_reply_to_status_id_str"] = post.reply_id
    if post.quote_id:
        expanded = f"https://x.com/i/status/{post.quote_id}"
        made["quoted_status_id_str"] = post.quote_id
        made["quoted_status_permalink"] = {
            "url": "https://t.co/qqqqqqqqqq",
            "expanded": expanded,
            "display": "x.com/i/…",
        }
    return made


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
    entity_set = {
        "hashtags": [{"indices": _span(post.whole, f"#{tag}"), "text": tag} for tag in post.tags],
        "symbols": [],
        "urls": [_link(post.whole, short, long) for short, long in post.links],
        "user_mentions": [{"id_str": "12", "indices": [0, 1], "name": "x", "screen_name": "x"}],
    }
    result = {
        "entity_set": entity_set,
        "id": b64(f"NoteTweet:{post.id}"),
        "media": {"inline_media": []},
        "richtext": {"richtext_tags": []},
        "text": post.whole,
    }
    return {"is_expandable": True, "note_tweet_results": {"result": result}}


def _span(text: str, part: str) -> list[int]:
    start = text.rfind(part)
    return [start, start + len(part)]


def _link(text: str, short: str, long: str) -> dict[str, Any]:
    return {"display_url": "example.org/…", "expanded_url": long, "indices": _span(text, short), "url": short}


def _media(post: Post, each: Media, text: str) -> dict[str, Any]:
    box = {"h": 675, "resize": "fit", "w": 1200}
    made: dict[str, Any] = {
        "allow_download_status": {"allow_download": True},
        "display_url": "pic.x.com/abc",
        "expanded_url": f"https://x.com/{post.author.handle}/status/{post.id}/photo/1",
        "ext_media_availability": {"status": "Available"},
        "features": {
            size: {"faces": [{"h": 60, "w": 60, "x": 1, "y": 2}]} for size in ("large", "medium", "small", "orig")
        },
        "id_str": each.id,
        "indices": _span(text, each.short),
        "media_key": f"3_{each.id}",
        "media_results": {"result": {"media_key": f"3_{each.id}"}},
        "media_url_https": each.thumbnail,
        "original_info": {"focus_rects": [{"h": 1, "w": 2, "x": 0, "y": 0}], "height": 2160, "width": 3840},
        "sizes": {"large": box, "medium": box, "small": box, "thumb": {"h": 150, "resize": "crop", "w": 150}},
        "type": each.kind,
        "url": each.short,
    }
    if each.files:
        made["additional_media_info"] = {"monetizable": False}
        made["video_info"] = {"aspect_ratio": [16, 9], "duration_millis": 60286, "variants": variants(each)}
    return made


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


def _card(post: Post) -> dict[str, Any]:
    image = {"height": 419, "url": "https://pbs.twimg.com/card_img/1/x?format=png&name=800x419", "width": 800}
    palette = {"palette": [{"percentage": 96.25, "rgb": {"blue": 255, "green": 255, "red": 255}}]}
    values = [
        {"key": "thumbnail_image", "value": {"image_value": image, "type": "IMAGE"}},
        {"key": "title", "value": {"string_value": "A card", "type": "STRING"}},
        {"key": "vanity_url", "value": {"scribe_key": "vanity_url", "string_value": "example.org", "type": "STRING"}},
        {"key": "site", "value": {"user_value": {"id_str": post.author.id, "path": []}, "type": "USER"}},
        {"key": "thumbnail_image_color", "value": {"image_color_value": palette, "type": "IMAGE_COLOR"}},
    ]
    platform = {"platform": {"audience": {"name": "production"}, "device": {"name": "Swift", "version": "12"}}}
    refs = [{"result": user_payload(post.author, NEW)}]
    return {
        "legacy": {
            "binding_values": values,
            "card_platform": platform,
            "name": "summary_large_image",
            "url": "https://t.co/cccccccccc",
            "user_refs_results": refs,
        },
        "rest_id": "https://t.co/cccccccccc",
    }


def _article(post: Post) -> dict[str, Any]:
    info = {
        "__typename": "ApiImage",
        "color_info": {"palette": [{"percentage": 96.25, "rgb": {"blue": 255, "green": 255, "red": 255}}]},
        "original_img_height": 419,
        "original_img_url": "https://pbs.twimg.com/media/cover.jpg",
        "original_img_width": 800,
    }
    result = {
        "cover_media": {"id": "QQ==", "media_id": "1", "media_info": info, "media_key": "3_1"},
        "id": b64(f"ArticleEntity:{post.id}"),
        "lifecycle_state": {"modified_at_secs": post.time},
        "metadata": {"first_published_at_secs": post.time},
        "preview_text": "full_text of an article is no text of a post",
        "rest_id": post.id,
        "title": "An article",
    }
    return {"article_results": {"result": result}}


def _limits() -> dict[str, Any]:
    prompt = {
        "__typename": "CtaLimitedActionPrompt",
        "cta_type": "JoinCommunity",
        "headline": {"text": "No", "entities": []},
    }
    return {"limited_actions": [{"action": "Embed"}, {"action": "Reply", "prompt": prompt}]}


# Timelines


def timeline(shape: str, entries: list[dict[str, Any]], pinned: dict[str, Any] | None, *, end: bool) -> dict[str, Any]:
    """Build the response to the query for a user's posts."""
    instructions: list[dict[str, Any]] = [{"type": "TimelineClearCache"}]
    if pinned:
        instructions.append({"entry": pinned, "type": "TimelinePinEntry"})
    instructions.append({"entries": entries, "type": "TimelineAddEntries"})
    if end:
        instructions.append({"direction": "Bottom", "type": "TimelineTerminateTimeline"})
    held = {"timeline": {"instructions": instructions, "metadata": {"scribeConfig": {"page": "profileAll"}}}}
    key = "timeline_v2" if shape == OLDEST else "timeline"
    return {"data": {"user": {"result": {"__typename": "User", key: held}}}}


def entry(post: Post, shape: str, *, pinned: bool = False, promoted: bool = False) -> dict[str, Any]:
    """Build a post's entry in the timeline."""
    shown: dict[str, Any] = {
        "__typename": "TimelineTweet",
        "itemType": "TimelineTweet",
        "tweetDisplayType": "Tweet",
        "tweet_results": {"result": post_payload(post, shape)},
    }
    if pinned:
        shown["socialContext"] = {"contextType": "Pin", "text": "Pinned", "type": "TimelineGeneralContext"}
    if promoted:
        shown["promotedMetadata"] = {"advertiser_results": {"result": {}}, "impressionId": "1"}
    content = {
        "__typename": "TimelineTimelineItem",
        "clientEventInfo": _event("pinned_tweets" if pinned else "tweet"),
        "entryType": "TimelineTimelineItem",
        "itemContent": shown,
    }
    return {"content": content, "entryId": f"tweet-{post.id}", "sortIndex": post.id}


def conversation(posts: list[Post], shape: str) -> dict[str, Any]:
    """Build the timeline's entry for a conversation: a reply and the post that it replies to."""
    name = f"profile-conversation-{posts[-1].id}"
    items = [
        {"dispensable": True, "entryId": f"{name}-tweet-{post.id}", "item": _module_item(entry(post, shape))}
        for post in posts
    ]
    content = {
        "__typename": "TimelineTimelineModule",
        "clientEventInfo": _event("suggest_ranked_organic_tweet"),
        "displayType": "VerticalConversation",
        "entryType": "TimelineTimelineModule",
        "items": items,
        "metadata": {"conversationMetadata": {"allTweetIds": [post.id for post in posts], "enableDeduplication": True}},
    }
    return {"content": content, "entryId": name, "sortIndex": posts[-1].id}


def who_to_follow(others: list[User], shape: str) -> dict[str, Any]:
    """Build the timeline's entry with recommended users."""
    shown = {"__typename": "TimelineUser", "itemType": "TimelineUser", "userDisplayType": "User"}
    event = _event("suggest_who_to_follow")
    items = [
        {
            "entryId": f"who-to-follow-1-user-{user.id}",
            "item": {
                "clientEventInfo": event,
                "itemContent": shown | {"user_results": {"result": user_payload(user, shape)}},
            },
        }
        for user in others
    ]
    landing = {"url": "twitter://connect_people?user_id=1", "urlType": "DeepLink"}
    content = {
        "__typename": "TimelineTimelineModule",
        "clientEventInfo": event,
        "displayType": "Vertical",
        "entryType": "TimelineTimelineModule",
        "footer": {"displayType": "Classic", "landingUrl": landing, "text": "Show more"},
        "header": {"displayType": "Classic", "sticky": False, "text": "Who to follow"},
        "items": items,
    }
    return {"content": content, "entryId": "who-to-follow-1", "sortIndex": "1"}


def cursor(kind: str, value: str) -> dict[str, Any]:
    """Build the timeline's entry with a cursor."""
    content = {
        "__typename": "TimelineTimelineCursor",
        "cursorType": kind,
        "entryType": "TimelineTimelineCursor",
        "value": value,
    }
    return {"content": content, "entryId": f"cursor-{kind.lower()}-1", "sortIndex": "1"}


def tombstone(number: str) -> dict[str, Any]:
    """Build the timeline's entry for a removed post."""
    text = {"entities": [], "rtl": False, "text": "This Post is from a suspended account. Learn more"}
    unavailable = {"__typename": "TweetTombstone", "tombstone": {"__typename": "TextTombstone", "text": text}}
    shown = {"__typename": "TimelineTweet", "itemType": "TimelineTweet", "tweet_results": {"result": unavailable}}
    content = {"__typename": "TimelineTimelineItem", "entryType": "TimelineTimelineItem", "itemContent": shown}
    return {"content": content, "entryId": f"tweet-{number}", "sortIndex": number}


def _module_item(made: dict[str, Any]) -> dict[str, Any]:
    return {key: made["content"][key] for key in ("clientEventInfo", "itemContent")}


def _event(component: str) -> dict[str, Any]:
    details = {"controllerData": "DAACDAABDAABCgAB", "injectionType": "RankedOrganicTweet", "sourceData": "DAABCgAB"}
    return {"component": component, "details": {"timelinesDetails": details}, "element": "tweet"}
