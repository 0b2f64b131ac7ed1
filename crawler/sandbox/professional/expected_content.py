"""The records of ``professional-profile-v4`` that must be extracted for the simulated members (specification 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from crawler.sandbox.professional.expected import followers_shown, record
from crawler.sandbox.professional.figures import figures, is_framed
from crawler.sandbox.professional.linked import is_own
from crawler.sandbox.professional.words import Row

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member

UNITS = {"M": 1_000_000, "K": 1_000}


def content_record(member: Member) -> dict[str, Any]:
    """Build the expected record of ``professional-profile-v4`` for a member."""
    flat = record(member)
    return {
        "pagination": {"cursor": "", "has_more": False},
        "posts": [
            *(_article(member, row) for row in flat["articles"]),
            *(_post(member, row) for row in flat["activity"]),
        ],
        "profile": {
            "account_creation_date": None,
            "account_creation_date_text": "",
            "available_country_codes": [],
            "banner_image": flat["background_cover_image_url"],
            "biography": flat["about"],
            "content_count": None,
            "display_name": flat["fullName"],
            "external_links": [row["url"] for row in flat["websites"]],
            "follower_count": _followers(member),
            "is_family_safe": None,
            "keywords": "",
            "location": flat["location"],
            "privacy_status": "",
            "profile_id": "",
            "profile_image": flat["profile_photo"],
            "profile_link": flat["profile_url"],
            "subscriber_count_text": followers_shown(member),
            "total_views": None,
            "username": flat["public_identifier"],
            "verification_status": None,
        },
    }


def _followers(member: Member) -> int | None:
    """Return the exact number of followers from the linked data, else the rounded number that the page shows."""
    if member.linked:
        return member.followers
    number, _, _ = followers_shown(member).partition(" ")
    if not number:
        return None
    return int(number[:-1]) * UNITS[number[-1]] if number[-1] in UNITS else int(number)


def _article(member: Member, row: Row) -> Row:
    stated = figures(row)
    return {
        **_item(row, caption=row["title"], kind="article"),
        "author_name": member.name,
        "author_username": member.slug,
        "content_code": row["link"].rpartition("/")[2],
        "content_id": row["link"].rpartition("/")[2],
        "comment_count": stated.comments,
        "like_count": stated.reactions,
        "published_date": stated.published if member.linked else stated.day,
    }


def _post(member: Member, row: Row) -> Row:
    """Build the expected item for an activity row.

    In the layout with a list, cards show no numbers of reactions and comments, and no author except the member. Every
    author's handle is in the link of the post.
    """
    stated, tabs, own = figures(row), member.layout == "tabs", is_own(member, row)
    linked = member.linked and own
    owner = row["link"].rpartition("/")[2].partition("_")[0]
    activity = row["link"].rpartition("-activity-")[2].partition("-")[0]
    return {
        **_item(row, caption=row["text"], kind=_kind(row, own=own, tabs=tabs)),
        "author_name": row["author"] if tabs or own else "",
        "author_username": unquote(owner),
        "content_code": activity,
        "content_id": activity,
        "comment_count": stated.comments if tabs else None,
        "like_count": stated.reactions if tabs or linked else None,
        "published_date": stated.published,
    }


def _kind(row: Row, *, own: bool, tabs: bool) -> str:
    if not own:
        return "like"
    return "share" if tabs and is_framed(row) else "post"


def _item(row: Row, *, caption: str, kind: str) -> Row:
    return {
        "age_restriction_status": None,
        "author_id": None,
        "caption": caption,
        "content_language": None,
        "content_link": row["link"],
        "content_type": kind,
        "first_comment": None,
        "hashtags": [],
        "images": [row["image"]] if row["image"] else [],
        "media_links": {"high": None, "low": None, "medium": None, "watermarked": None},
        "mentions": [],
        "slideshow_status": None,
        "subtitles": None,
        "thumbnail_image": "",
        "transcript": None,
        "video_duration_seconds": None,
        "video_link": None,
        "view_count": None,
    }
