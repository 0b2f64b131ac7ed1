"""The records of ``professional-profile-v4`` that must be extracted for the simulated members (specification 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from crawler.sandbox.professional.expected import followers_shown, record
from crawler.sandbox.professional.figures import figures, is_framed
from crawler.sandbox.professional.linked import is_own
from crawler.sandbox.professional.words import Row
from crawler.sandbox.skeletons import Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member

UNITS = {"M": 1_000_000, "K": 1_000}


fill = Skeletons(__file__)


def content_record(member: Member) -> dict[str, Any]:
    """Build the expected record of ``professional-profile-v4`` for a member."""
    flat = record(member)
    articles = [_article(member, row) for row in flat["articles"]]
    return fill(
        "record",
        flat=flat,
        posts=articles + [_post(member, row) for row in flat["activity"]],
        links=[row["url"] for row in flat["websites"]],
        followers=_followers(member),
        followers_text=followers_shown(member),
    )


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
    return fill(
        "post",
        row=row,
        caption=row["title"],
        kind="article",
        images=[row["image"]] if row["image"] else [],
        author=member.name,
        username=member.slug,
        id=row["link"].rpartition("/")[2],
        comments=stated.comments,
        likes=stated.reactions,
        published=stated.published if member.linked else stated.day,
    )


def _post(member: Member, row: Row) -> Row:
    """Build the expected item for an activity row.

    In the layout with a list, cards show no numbers of reactions and comments, and no author except the member. Every
    author's handle is in the link of the post.
    """
    stated, tabs, own = figures(row), member.layout == "tabs", is_own(member, row)
    return fill(
        "post",
        row=row,
        caption=row["text"],
        kind=_kind(row, own=own, tabs=tabs),
        images=[row["image"]] if row["image"] else [],
        author=row["author"] if tabs or own else "",
        username=unquote(row["link"].rpartition("/")[2].partition("_")[0]),
        id=row["link"].rpartition("-activity-")[2].partition("-")[0],
        comments=stated.comments if tabs else None,
        likes=stated.reactions if tabs or (member.linked and own) else None,
        published=stated.published,
    )


def _kind(row: Row, *, own: bool, tabs: bool) -> str:
    if not own:
        return "like"
    return "share" if tabs and is_framed(row) else "post"
