"""The simulated microblog's calls and embeds, in the shapes of four generations of its clients."""

from __future__ import annotations

import html
from base64 import b64encode
from dataclasses import replace
from typing import Any

from crawler.sandbox.microblog_account import Media, Post, User, date_text

OLDEST, OLD, NEW = "A", "B", "C"


def b64(text: str) -> str:
    """A record's id."""
    return b64encode(text.encode()).decode()


# Users


def user(who: User, shape: str) -> dict[str, Any]:
    """A user as the calls of a generation give it."""
    common = {
        "__typename": "User",
        "affiliates_highlighted_label": _label() if who.kind else {},
        "business_account": {"affiliates_count": 100} if who.kind else {},
        "creator_subscriptions_count": 0,
        "has_graduated_access": True,
        "has_hidden_subscriptions_on_profile": False,
        "highlights_info": {"can_highlight_tweets": True, "highlighted_tweets": "4"},
        "id": b64(f"User:{who.id}"),
        "is_blue_verified": who.blue,
        "is_profile_translatable": False,
        "legacy_extended_profile": {},
        "professional": {
            "category": [{"icon_name": "IconBriefcaseStroke", "id": 1009, "name": "Community"}],
            "professional_type": "Business",
            "rest_id": "1516891231749517312",
        },
        "profile_image_shape": "Square" if who.kind else "Circle",
        "rest_id": who.id,
        "tipjar_settings": {},
        "verification_info": {
            "is_identity_verified": False,
            "reason": {
                "description": {
                    "entities": [
                        {"from_index": 53, "ref": {"url": "https://x.com/x", "url_type": "ExternalUrl"}, "to_index": 55}
                    ],
                    "text": "This account is Premium",
                },
                "verified_since_msec": "1395425700472",
            },
        },
    }
    if shape == OLDEST:
        return common | {"legacy": oldest_user(who), "parody_commentary_fan_label": "None", "user_seed_tweet_count": 0}
    newer = common | {
        "avatar": {"image_url": who.picture},
        "core": {"created_at": date_text(who.created), "name": html.escape(who.name), "screen_name": who.handle},
        "dm_permissions": {"can_dm": True},
        "follow_request_sent": False,
        "location": {"location": who.location},
        "media_permissions": {"can_media_tag": True},
        "privacy": {"protected": who.protected},
        "profile_bio": {"description": html.escape(who.about, quote=False), "entities": _bio_entities(who)},
        "profile_description_language": "en",
        "profile_sort_enabled": True,
        "relationship_perspectives": dict.fromkeys(
            ("blocked_by", "blocking", "followed_by", "following", "live_following", "muting"), False
        ),
        "super_follow_eligible": False,
        "super_followed_by": False,
        "super_following": False,
        "verification": {"verified": False, **({"verified_type": who.kind} if who.kind else {})},
    }
    if shape == OLD:
        legacy = oldest_user(who)
        for moved in ("created_at", "location", "name", "profile_image_url_https", "screen_name", "verified"):
            del legacy[moved]
        legacy = {"time_zone": "", "utc_offset": 0, "notifications": False, "withheld_scope": ""} | legacy
        return newer | {"legacy": legacy | {"url": who.link, "profile_banner_url": who.banner}}
    return newer | {
        "action_counts": {"favorites_count": who.likes},
        "banner": {"image_url": who.banner},
        "notifications_settings": {"notifications_enabled": False},
        "pinned_items": {"tweet_ids_str": []},
        "possibly_sensitive": False,
        "profile_metadata": {"profile_interstitial_type": ""},
        "profile_translation": {"translator_type": "regular"},
        "relationship_counts": {"followers": who.followers, "following": who.following},
        "tweet_counts": {"media_tweets": who.media, "tweets": who.posts},
        "website": {"url": who.link},
    }


def oldest_user(who: User, *, stale: int = 0) -> dict[str, Any]:
    """A user as the oldest calls, and still the embeds, have it. ``stale`` followers are not yet counted."""
    optional = {"profile_banner_url": who.banner, "url": who.link, "verified_type": who.kind}
    return {
        "created_at": date_text(who.created),
        "default_profile": False,
        "default_profile_image": False,
        "description": html.escape(who.about, quote=False),
        "entities": _bio_entities(who),
        "fast_followers_count": 0,
        "favourites_count": who.likes,
        "followers_count": who.followers - stale,
        "friends_count": who.following,
        "has_custom_timelines": True,
        "is_translator": False,
        "listed_count": who.lists,
        "location": who.location,
        "media_count": who.media,
        "name": html.escape(who.name),
        "normal_followers_count": who.followers,
        "pinned_tweet_ids_str": [],
        "possibly_sensitive": False,
        "profile_image_url_https": who.picture,
        "profile_interstitial_type": "",
        "screen_name": who.handle,
        "statuses_count": who.posts,
        "translator_type": "regular",
        "verified": False,
        "want_retweets": False,
        "withheld_in_countries": [],
        **({"protected": True} if who.protected else {}),
        **{name: value for name, value in optional.items() if value},
    }


def _label() -> dict[str, Any]:
    return {
        "label": {
            "badge": {"url": "https://pbs.twimg.com/profile_images/1/x_bigger.jpg"},
            "description": "X",
            "url": {"url": "https://x.com/x", "urlType": "DeepLink"},
            "userLabelDisplayType": "Badge",
            "userLabelType": "BusinessLabel",
        }
    }


def _bio_entities(who: User) -> dict[str, Any]:
    if not who.link:
        return {"description": {}}
    link = {"display_url": "example.org", "expanded_url": "https://example.org/", "indices": [0, 23], "url": who.link}
    return {"description": {}, "url": {"urls": [link]}}


# Posts


def post(it: Post, shape: str, *, depth: int = 0) -> dict[str, Any]:
    """A post as the calls of a generation give it."""
    made: dict[str, Any] = {
        "__typename": "Tweet",
        "core": {"user_results": {"result": user(it.author, shape)}},
        "edit_control": {
            "edit_tweet_ids": [it.id],
            "editable_until_msecs": str(it.time * 1000 + 3_600_000),
            "edits_remaining": "5",
            "is_edit_eligible": not it.reply_id,
        },
        "grok_translated_post_with_availability": {"is_available": False},
        "is_translatable": False,
        "legacy": legacy(it, sparse=shape == NEW),
        "quick_promote_eligibility": {"eligibility": "IneligibleNotProfessional"},
        "rest_id": it.id,
        "source": '<a href="https://mobile.x.com" rel="nofollow">Web App</a>',
        "unmention_data": {},
        "views": {"state": "Enabled"} if it.views is None else {"count": str(it.views), "state": "EnabledWithCount"},
    }
    if it.long:
        made["note_tweet"] = _note(it)
    if it.carded:
        made["card"] = _card(it)
    if it.repost_of:
        made["legacy"]["retweeted_status_result"] = {"result": post(it.repost_of, shape, depth=depth + 1)}
    if it.quote_id and not it.repost_of:
        if it.quote_of is None:
            gone = {
                "__typename": "TweetTombstone",
                "tombstone": {"__typename": "TextTombstone", "text": {"text": "Gone"}},
            }
            made["quoted_status_result"] = {"result": gone} if int(it.id) % 2 else {}
        elif depth == 0:
            made["quoted_status_result"] = {"result": post(it.quote_of, shape, depth=1)}
        else:
            made["quotedRefResult"] = {"result": {"__typename": "Tweet", "rest_id": it.quote_id}}
    if it.wrapped:
        del made["__typename"]
        return {"__typename": "TweetWithVisibilityResults", "limitedActionResults": _limits(), "tweet": made}
    return made


def legacy(it: Post, *, sparse: bool) -> dict[str, Any]:
    """The part of a post that all generations of the calls share, and that embeds are made of."""
    text = it.served
    entities: dict[str, Any] = {
        "hashtags": [] if it.long or it.repost_of else [{"indices": _span(text, f"#{t}"), "text": t} for t in it.tags],
        "symbols": [],
        "urls": [] if it.long or it.repost_of else [_link(text, short, long) for short, long in it.links],
        "user_mentions": [],
    }
    if it.reply_handle:
        mention = {
            "id_str": "12",
            "indices": [0, len(it.reply_handle) + 1],
            "name": "x",
            "screen_name": it.reply_handle,
        }
        entities["user_mentions"] = [mention]
    media = [] if it.repost_of else [_media(it, each, text) for each in it.media]
    if media:
        entities["media"] = media[:1]
    placeholder = it.repost_of is not None
    made: dict[str, Any] = {
        "bookmark_count": 0 if placeholder else it.saves,
        "bookmarked": False,
        "conversation_id_str": it.reply_id or it.id,
        "created_at": date_text(it.time),
        "display_text_range": [0, len(text) - (24 if media else 0)],
        "entities": {key: value for key, value in entities.items() if value or not sparse},
        "favorite_count": 0 if placeholder else it.likes,
        "favorited": False,
        "full_text": text,
        "id_str": it.id,
        "is_quote_status": bool(it.quote_id) or bool(it.repost_of and it.repost_of.quote_id),
        "lang": "en",
        "quote_count": 0 if placeholder else it.quotes,
        "reply_count": 0 if placeholder else it.replies,
        "retweet_count": it.repost_of.shares if it.repost_of else it.shares,
        "retweeted": False,
        "user_id_str": it.author.id,
    }
    if media:
        made |= {
            "extended_entities": {"media": media},
            "possibly_sensitive": False,
            "possibly_sensitive_editable": True,
        }
    if it.reply_handle:
        made |= {"in_reply_to_screen_name": it.reply_handle, "in_reply_to_user_id_str": "12"}
    if it.reply_id:
        made["in_reply_to_status_id_str"] = it.reply_id
    if it.quote_id:
        expanded = f"https://x.com/i/status/{it.quote_id}"
        made["quoted_status_id_str"] = it.quote_id
        made["quoted_status_permalink"] = {
            "url": "https://t.co/qqqqqqqqqq",
            "expanded": expanded,
            "display": "x.com/i/…",
        }
    return made


def embedded(it: Post, stale: int) -> dict[str, Any]:
    """A post as embeds have it: flat, with its author inside, without views and bookmarks."""
    made = legacy(it, sparse=False)
    for unknown in ("bookmark_count", "bookmarked", "user_id_str"):
        del made[unknown]
    who = oldest_user(it.author, stale=stale) | {"id_str": it.author.id, "is_blue_verified": it.author.blue}
    who |= {"protected": it.author.protected}
    made |= {"id": 0, "permalink": f"/{it.author.handle}/status/{it.id}", "text": it.served, "user": who}
    if it.long:
        made["full_text"] = made["text"] = html.escape(it.whole, quote=False) + (
            f" {it.media[0].short}" if it.media else ""
        )
        made["entities"] = legacy(replace(it, long=False), sparse=False)["entities"]
    if it.repost_of:
        made["retweeted_status"] = embedded(it.repost_of, 0)
    if it.quote_of and not it.repost_of:
        made["quoted_status"] = embedded(it.quote_of, 0)
    return made


def _note(it: Post) -> dict[str, Any]:
    entity_set = {
        "hashtags": [{"indices": _span(it.whole, f"#{tag}"), "text": tag} for tag in it.tags],
        "symbols": [],
        "urls": [_link(it.whole, short, long) for short, long in it.links],
        "user_mentions": [],
    }
    result = {
        "entity_set": entity_set,
        "id": b64(f"NoteTweet:{it.id}"),
        "media": {"inline_media": []},
        "richtext": {"richtext_tags": []},
        "text": it.whole,
    }
    return {"is_expandable": True, "note_tweet_results": {"result": result}}


def _span(text: str, part: str) -> list[int]:
    start = text.rfind(part)
    return [start, start + len(part)]


def _link(text: str, short: str, long: str) -> dict[str, Any]:
    return {"display_url": "example.org/…", "expanded_url": long, "indices": _span(text, short), "url": short}


def _media(it: Post, each: Media, text: str) -> dict[str, Any]:
    box = {"h": 675, "resize": "fit", "w": 1200}
    made: dict[str, Any] = {
        "allow_download_status": {"allow_download": True},
        "display_url": "pic.x.com/abc",
        "expanded_url": f"https://x.com/{it.author.handle}/status/{it.id}/photo/1",
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
    """A video's files; the stream is no file, and names no bitrate."""
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


def _card(it: Post) -> dict[str, Any]:
    image = {"height": 419, "url": "https://pbs.twimg.com/card_img/1/x?format=png&name=800x419", "width": 800}
    palette = {"palette": [{"percentage": 96.25, "rgb": {"blue": 255, "green": 255, "red": 255}}]}
    values = [
        {"key": "thumbnail_image", "value": {"image_value": image, "type": "IMAGE"}},
        {"key": "title", "value": {"string_value": "A card", "type": "STRING"}},
        {"key": "vanity_url", "value": {"scribe_key": "vanity_url", "string_value": "example.org", "type": "STRING"}},
        {"key": "site", "value": {"user_value": {"id_str": it.author.id, "path": []}, "type": "USER"}},
        {"key": "thumbnail_image_color", "value": {"image_color_value": palette, "type": "IMAGE_COLOR"}},
    ]
    platform = {"platform": {"audience": {"name": "production"}, "device": {"name": "Swift", "version": "12"}}}
    refs = [{"result": user(it.author, NEW)}]
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


def _limits() -> dict[str, Any]:
    prompt = {
        "__typename": "CtaLimitedActionPrompt",
        "cta_type": "JoinCommunity",
        "headline": {"text": "No", "entities": []},
    }
    return {"limited_actions": [{"action": "Embed"}, {"action": "Reply", "prompt": prompt}]}


# Timelines


def timeline(shape: str, entries: list[dict[str, Any]], pinned: dict[str, Any] | None, *, end: bool) -> dict[str, Any]:
    """The answer of the call for a user's posts."""
    instructions: list[dict[str, Any]] = [{"type": "TimelineClearCache"}]
    if pinned:
        instructions.append({"entry": pinned, "type": "TimelinePinEntry"})
    instructions.append({"entries": entries, "type": "TimelineAddEntries"})
    if end:
        instructions.append({"direction": "Bottom", "type": "TimelineTerminateTimeline"})
    held = {"timeline": {"instructions": instructions, "metadata": {"scribeConfig": {"page": "profileAll"}}}}
    key = "timeline_v2" if shape == OLDEST else "timeline"
    return {"data": {"user": {"result": {"__typename": "User", key: held}}}}


def entry(it: Post, shape: str, *, pinned: bool = False, promoted: bool = False) -> dict[str, Any]:
    """A timeline's entry of a post."""
    shown: dict[str, Any] = {
        "__typename": "TimelineTweet",
        "itemType": "TimelineTweet",
        "tweetDisplayType": "Tweet",
        "tweet_results": {"result": post(it, shape)},
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
    return {"content": content, "entryId": f"tweet-{it.id}", "sortIndex": it.id}


def conversation(posts: list[Post], shape: str) -> dict[str, Any]:
    """A reply together with what it answers."""
    name = f"profile-conversation-{posts[-1].id}"
    items = [
        {"dispensable": True, "entryId": f"{name}-tweet-{it.id}", "item": _module_item(entry(it, shape))}
        for it in posts
    ]
    content = {
        "__typename": "TimelineTimelineModule",
        "clientEventInfo": _event("suggest_ranked_organic_tweet"),
        "displayType": "VerticalConversation",
        "entryType": "TimelineTimelineModule",
        "items": items,
        "metadata": {"conversationMetadata": {"allTweetIds": [it.id for it in posts], "enableDeduplication": True}},
    }
    return {"content": content, "entryId": name, "sortIndex": posts[-1].id}


def who_to_follow(others: list[User], shape: str) -> dict[str, Any]:
    """Users that are recommended between the posts."""
    shown = {"__typename": "TimelineUser", "itemType": "TimelineUser", "userDisplayType": "User"}
    event = _event("suggest_who_to_follow")
    items = [
        {
            "entryId": f"who-to-follow-1-user-{who.id}",
            "item": {"clientEventInfo": event, "itemContent": shown | {"user_results": {"result": user(who, shape)}}},
        }
        for who in others
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
    """A timeline's entry that leads on."""
    content = {
        "__typename": "TimelineTimelineCursor",
        "cursorType": kind,
        "entryType": "TimelineTimelineCursor",
        "value": value,
    }
    return {"content": content, "entryId": f"cursor-{kind.lower()}-1", "sortIndex": "1"}


def tombstone(number: str) -> dict[str, Any]:
    """A timeline's entry where a post was taken away."""
    text = {"entities": [], "rtl": False, "text": "This Post is from a suspended account. Learn more"}
    gone = {"__typename": "TweetTombstone", "tombstone": {"__typename": "TextTombstone", "text": text}}
    shown = {"__typename": "TimelineTweet", "itemType": "TimelineTweet", "tweet_results": {"result": gone}}
    content = {"__typename": "TimelineTimelineItem", "entryType": "TimelineTimelineItem", "itemContent": shown}
    return {"content": content, "entryId": f"tweet-{number}", "sortIndex": number}


def _module_item(made: dict[str, Any]) -> dict[str, Any]:
    return {key: made["content"][key] for key in ("clientEventInfo", "itemContent")}


def _event(component: str) -> dict[str, Any]:
    details = {"controllerData": "DAACDAABDAABCgAB", "injectionType": "RankedOrganicTweet", "sourceData": "DAABCgAB"}
    return {"component": component, "details": {"timelinesDetails": details}, "element": "tweet"}
