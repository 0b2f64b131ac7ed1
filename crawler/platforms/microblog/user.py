"""Microblog: converts a user in any format to the data model's profile fields.

A field is None if the format lacks it.
"""

from __future__ import annotations

import html
from typing import Any

from crawler.platforms.microblog.payload_user import User
from crawler.platforms.microblog.schema import Demographics
from crawler.platforms.microblog.text import date_text, seconds
from crawler.platforms.microblog.unread import Contradictions
from crawler.reading.values import count

FIELDS = tuple(Demographics.model_fields)
"""The data model's profile fields. They are named after the keys in the oldest format, which embeds still have."""
COUNTS = Demographics.entity.history
OMITTED_WHEN_EMPTY = ("profile_banner_url", "url", "verified_type")


def profile(user: User, contradictions: Contradictions) -> dict[str, Any]:
    """Return the data model's profile fields of a user. A field is None if this form of payload lacks it."""
    found: dict[str, Any] = {name: getattr(user, name) for name in FIELDS}
    for name in COUNTS:
        found[name] = number(user, name, contradictions)
    if user.created_at is not None and seconds(user.created_at) is None:  # not in the platform's date format
        found["created_at"] = date_text(user.created_at)
        if found["created_at"] is None:
            contradictions.add(user, "created_at", "type")
    if not user.url and user.listed_urls:
        found["url"] = user.listed_urls[0]
    if user.omits_empty:
        found.update({name: "" for name in OMITTED_WHEN_EMPTY if found[name] is None})
        found["protected"] = bool(user.protected)
    elif user.verified_type is None and (user.verified, user.is_blue_verified) != (None, None):
        found["verified_type"] = ""
    for name in ("name", "description"):
        found[name] = None if found[name] is None else html.unescape(found[name])
    contradictions.row()
    for name in user.contradictions:
        contradictions.add(user, name)
        found[name] = None
    return found


def number(row: Any, name: str, contradictions: Contradictions) -> int | None:
    """Return a count of a user or post as an integer. If it is not a number, return None and report it."""
    value = getattr(row, name)
    if value is None or (type(value) is int and value >= 0):  # the usual case
        return value
    found = count(value)
    if found is None:
        contradictions.add(row, name, "type")
    return found


def merged(profiles: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge profiles field by field. For each field, the first profile with a value wins."""
    return {name: next((each[name] for each in profiles if each.get(name) is not None), None) for name in FIELDS}
