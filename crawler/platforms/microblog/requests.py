"""Microblog: builds the requests for the platform's public sources from handles, ids and cursors.

The profile's page comes with the newest posts. The embed is the timeline that other sites show. The guest API needs a
token, which the platform issues to every visitor. Only the guest API has further pages of posts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from scrapy import Request

# These values change with releases of the platform's web client. They were copied from it in May to August 2026.

BEARER = (  # a public constant in the web client: the same for every visitor since 2020
    "AAAAAAAAAAAAAAAAAAAAANRILgAAAAAAnNwIzUejRCOuH5E6I8xnZz4puTs%3D1Zv7ttfk8LF81IUq16cHjhLTvJu4FA33AGWWjCpTnA"
)
USER_QUERIES = ("ck5KkZ8t5cOmoLssopN99Q", "Gb-d6r0vxPOADdG62OEBpQ")
"""Ids of the query for a user, in the order in which they are tried. Copied on 2026-08-01 and 2026-08-07."""
TIMELINE_QUERIES = ("E8Wq-_jFSaU7hxVcuOPR9g", "SXVCYB8XHSS25nzIljNtZA")
"""Ids of the query for a user's posts, in the order in which they are tried. Copied on 2026-08-01 and 2026-08-22."""
PAGE_SIZE = 20
FEATURES = dict.fromkeys(
    (
        "android_ad_formats_media_component_render_overlay_enabled",
        "articles_preview_enabled",
        "c9s_tweet_anatomy_moderator_badge_enabled",
        "communities_web_enable_tweet_community_results_fetch",
        "creator_subscriptions_tweet_preview_api_enabled",
        "freedom_of_speech_not_reach_fetch_enabled",
        "graphql_is_translatable_rweb_tweet_is_translatable_enabled",
        "hidden_profile_subscriptions_enabled",
        "highlights_tweets_tab_ui_enabled",
        "longform_notetweets_consumption_enabled",
        "longform_notetweets_inline_media_enabled",
        "longform_notetweets_rich_text_read_enabled",
        "payments_enabled",
        "premium_content_api_read_enabled",
        "profile_label_improvements_pcf_label_in_post_enabled",
        "responsive_web_edit_tweet_api_enabled",
        "responsive_web_graphql_exclude_directive_enabled",
        "responsive_web_graphql_skip_user_profile_image_extensions_enabled",
        "responsive_web_graphql_timeline_navigation_enabled",
        "responsive_web_grok_analysis_button_from_backend",
        "responsive_web_grok_analyze_button_fetch_trends_enabled",
        "responsive_web_grok_analyze_post_followups_enabled",
        "responsive_web_grok_image_annotation_enabled",
        "responsive_web_grok_imagine_annotation_enabled",
        "responsive_web_grok_share_attachment_enabled",
        "responsive_web_grok_show_grok_translated_post",
        "responsive_web_jetfuel_frame",
        "responsive_web_twitter_article_notes_tab_is_enabled",
        "responsive_web_twitter_article_tweet_consumption_enabled",
        "rweb_tipjar_consumption_enabled",
        "rweb_video_screen_enabled",
        "standardized_nudges_misinfo",
        "subscriptions_feature_can_gift_premium",
        "subscriptions_verification_info_is_identity_verified_enabled",
        "subscriptions_verification_info_verified_since_enabled",
        "tweet_awards_web_tipping_enabled",
        "tweet_with_visibility_results_prefer_gql_limited_actions_policy_enabled",
        "verified_phone_label_enabled",
        "view_counts_everywhere_api_enabled",
    ),
    True,
)
DISABLED_FEATURES = (
    "payments_enabled",
    "responsive_web_graphql_skip_user_profile_image_extensions_enabled",
    "responsive_web_grok_analyze_button_fetch_trends_enabled",
    "tweet_awards_web_tipping_enabled",
    "verified_phone_label_enabled",
)
"""Feature flags that the web client sends as false."""

PUBLIC_SITE = "https://x.com"
"""Value of the ``Origin`` header, and start of the ``Referer`` header, in API requests."""


def profile_request(origin: str, handle: str) -> Request:
    """Build the request for a profile's public page."""
    return Request(f"{origin}/{handle}", meta={"page_params": {"username": handle}})


def embed_request(origin: str, handle: str) -> Request:
    """Build the request for a profile's embeddable timeline."""
    url = f"{origin}/srv/timeline-profile/screen-name/{handle}"
    return Request(url, meta={"page_params": {"username": handle}})


def token_request(origin: str) -> Request:
    """Build the request for a guest token."""
    headers = {"Authorization": f"Bearer {BEARER}", "Accept": "*/*"}
    return Request(f"{origin}/1.1/guest/activate.json", method="POST", headers=headers, meta={"page_params": {}})


def user_request(origin: str, handle: str, *, token: str, query_id: str, missing: Iterable[str] = ()) -> Request:
    """Build the API request for a user by handle.

    ``missing`` are feature flags that the platform required in an earlier response; they are sent as false.
    """
    request = _call(
        f"{origin}/graphql/{query_id}/UserByScreenName",
        {"screen_name": handle},
        {"withAuxiliaryUserLabels": True},
        token,
        missing,
    )
    return request.replace(meta={"page_params": {"username": handle}})


def timeline_request(  # noqa: PLR0913  # these arguments are the query's own variables
    origin: str,
    handle: str,
    *,
    user_id: str,
    token: str,
    query_id: str,
    cursor: str = "",
    missing: Iterable[str] = (),
) -> Request:
    """Build the API request for a page of a user's posts: the first page, or the page that ``cursor`` leads to."""
    variables = {
        "userId": user_id,
        "count": PAGE_SIZE,
        "includePromotedContent": False,
        "withQuickPromoteEligibilityTweetFields": False,
        "withVoice": True,
        **({"cursor": cursor} if cursor else {}),
    }
    url = f"{origin}/graphql/{query_id}/UserTweets"
    request = _call(url, variables, {"withArticlePlainText": False}, token, missing)
    return request.replace(meta={"page_params": {"username": handle, "cursor": cursor}})


def _call(url: str, variables: dict[str, Any], toggles: dict[str, Any], token: str, missing: Iterable[str]) -> Request:
    features = FEATURES | dict.fromkeys((*DISABLED_FEATURES, *missing), False)
    arguments = {"variables": variables, "features": features, "fieldToggles": toggles}
    query = urlencode({name: orjson.dumps(value).decode() for name, value in arguments.items()}, quote_via=quote)
    headers = {
        "Accept": "*/*",
        "Authorization": f"Bearer {BEARER}",
        "Content-Type": "application/json",
        "Origin": PUBLIC_SITE,
        "Referer": f"{PUBLIC_SITE}/",
        **({"X-Guest-Token": token} if token else {}),
        "X-Twitter-Active-User": "yes",
        "X-Twitter-Client-Language": "en",
    }
    return Request(f"{url}?{query}", headers=headers)
