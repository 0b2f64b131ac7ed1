"""The simulated microblog's users in the formats of three API generations."""

from __future__ import annotations

import html
from base64 import b64encode
from typing import Any

from crawler.sandbox.microblog.account import User, date_text

OLDEST, OLD, NEW = "A", "B", "C"


def b64(text: str) -> str:
    """Encode an id in base64, as in records."""
    return b64encode(text.encode()).decode()


def user_payload(user: User, shape: str) -> dict[str, Any]:
    """Build a user in the format of an API generation."""
    common = {
        "__typename": "User",
        "affiliates_highlighted_label": _label() if user.kind else {},
        "business_account": {"affiliates_count": 100} if user.kind else {},
        "creator_subscriptions_count": 0,
        "has_graduated_access": True,
        "has_hidden_subscriptions_on_profile": False,
        "highlights_info": {"can_highlight_tweets": True, "highlighted_tweets": "4"},
        "id": b64(f"User:{user.id}"),
        "is_blue_verified": user.blue,
        "is_profile_translatable": False,
        "legacy_extended_profile": {},
        "professional": {
            "category": [{"icon_name": "IconBriefcaseStroke", "id": 1009, "name": "Community"}],
            "professional_type": "Business",
            "rest_id": "1516891231749517312",
        },
        "profile_image_shape": "Square" if user.kind else "Circle",
        "rest_id": user.id,
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
        return common | {"legacy": oldest_user(user), "parody_commentary_fan_label": "None", "user_seed_tweet_count": 0}
    newer = common | {
        "avatar": {"image_url": user.picture},
        "core": {"created_at": date_text(user.created), "name": html.escape(user.name), "screen_name": user.handle},
        "dm_permissions": {"can_dm": True},
        "follow_request_sent": False,
        "location": {"location": user.location},
        "media_permissions": {"can_media_tag": True},
        "privacy": {"protected": user.protected},
        "profile_bio": {"description": html.escape(user.about, quote=False), "entities": _bio_entities(user)},
        "profile_description_language": "en",
        "profile_sort_enabled": True,
        "relationship_perspectives": dict.fromkeys(
            ("blocked_by", "blocking", "followed_by", "following", "live_following", "muting"), False
        ),
        "super_follow_eligible": False,
        "super_followed_by": False,
        "super_following": False,
        "verification": {"verified": False, **({"verified_type": user.kind} if user.kind else {})},
    }
    if shape == OLD:
        legacy = oldest_user(user)
        for moved in ("created_at", "location", "name", "profile_image_url_https", "screen_name", "verified"):
            del legacy[moved]
        legacy = {"time_zone": "", "utc_offset": 0, "notifications": False, "withheld_scope": ""} | legacy
        return newer | {"legacy": legacy | {"url": user.link, "profile_banner_url": user.banner}}
    return newer | {
        "action_counts": {"favorites_count": user.likes},
        "banner": {"image_url": user.banner},
        "notifications_settings": {"notifications_enabled": False},
        "pinned_items": {"tweet_ids_str": []},
        "possibly_sensitive": False,
        "profile_metadata": {"profile_interstitial_type": ""},
        "profile_translation": {"translator_type": "regular"},
        "relationship_counts": {"followers": user.followers, "following": user.following},
        "tweet_counts": {"media_tweets": user.media, "tweets": user.posts},
        "website": {"url": user.link},
    }


def oldest_user(user: User, *, stale: int = 0) -> dict[str, Any]:
    """Build a user in the oldest format, as in embeds. ``stale`` is subtracted from the follower count."""
    optional = {"profile_banner_url": user.banner, "url": user.link, "verified_type": user.kind}
    return {
        "created_at": date_text(user.created),
        "default_profile": False,
        "default_profile_image": False,
        "description": html.escape(user.about, quote=False),
        "entities": _bio_entities(user),
        "fast_followers_count": 0,
        "favourites_count": user.likes,
        "followers_count": user.followers - stale,
        "friends_count": user.following,
        "has_custom_timelines": True,
        "is_translator": False,
        "listed_count": user.lists,
        "location": user.location,
        "media_count": user.media,
        "name": html.escape(user.name),
        "normal_followers_count": user.followers,
        "pinned_tweet_ids_str": [],
        "possibly_sensitive": False,
        "profile_image_url_https": user.picture,
        "profile_interstitial_type": "",
        "screen_name": user.handle,
        "statuses_count": user.posts,
        "translator_type": "regular",
        "verified": False,
        "want_retweets": False,
        "withheld_in_countries": [],
        **({"protected": True} if user.protected else {}),
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


def _bio_entities(user: User) -> dict[str, Any]:
    if not user.link:
        return {"description": {}}
    link = {"display_url": "example.org", "expanded_url": "https://example.org/", "indices": [0, 23], "url": user.link}
    return {"description": {}, "url": {"urls": [link]}}
