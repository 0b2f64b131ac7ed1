"""Microblog: finds the posts and their authors in the entries of a timeline, in all of the platform's JSON layouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.post import Post
from crawler.reading.values import text

CONVERSATION = ("profile-conversation", "conversationthread")
"""Prefixes of the ids of entries that have a post together with the posts that it replies to.

Posts by other authors in such an entry are only context.
"""


OF_POSTS = "tweet-"
"""Prefix of the ids of entries that have a post, or the placeholder for one."""
OF_A_POST = "TimelineTweet"
"""The type of an item in a module that has a post."""


@dataclass(frozen=True)
class Row:
    """A row in a timeline: a post, or the placeholder for a withheld post."""

    entry_id: str
    result: Node
    pinned: bool = False
    is_unread: bool = False
    """Whether the row's structure is unknown, so that its post was not found."""

    @cached_property
    def post(self) -> Post:
        """The post, which may be withheld or incomplete."""
        return Post(self.result)

    @property
    def is_withheld(self) -> bool:
        """Whether the platform withholds the post."""
        return not self.is_unread and self.post.is_withheld

    @property
    def handle(self) -> str:
        """The handle of the post's author."""
        return self.post.handle


def rows_of(entry: Node, *, pinned: bool = False) -> Iterator[Row]:
    """Yield the posts in an entry, which may be a module with several items. Advertisements and users are skipped."""
    entry_id = text(entry.get("entryId")) or text(entry.get("entry_id"))
    if entry_id.startswith("promoted"):
        return
    content, is_module = entry.node("content"), entry_id.startswith(CONVERSATION)
    items = content.nodes("items") or entry.nodes("items") or ([entry] if content and not is_module else [])
    if not items and (is_module or entry_id.startswith(OF_POSTS)):
        yield Row(entry_id, Node(None), pinned, is_unread=True)
    for item in items:
        holder = item.node("item") or item.node("content")
        shown = holder.node("itemContent") or holder.node("content") or holder
        if shown.get("promotedMetadata") or shown.get("promoted_metadata"):
            continue
        holder = shown.node("tweet_results")
        if "tweet_results" in shown.value:
            is_unread = bool(holder) and "result" not in holder.value
            yield Row(entry_id, holder.node("result"), pinned, is_unread)
        elif entry_id.startswith(OF_POSTS) or (is_module and kind_of_item(shown) in {"", OF_A_POST}):
            yield Row(entry_id, Node(None), pinned, is_unread=True)


def rows_of_instructions(instructions: Iterable[Node]) -> Iterator[Row]:
    """Yield the posts in a timeline. A pinned post always comes first.

    ``instructions`` are the objects with which the API adds entries to the timeline, or pins an entry.
    """
    plain: list[Row] = []
    for instruction in instructions:
        if kind_of(instruction) == "TimelinePinEntry":
            yield from rows_of(instruction.node("entry"), pinned=True)
        for entry in instruction.nodes("entries"):
            plain += rows_of(entry)
        module_id = text(instruction.get("moduleEntryId"))
        for item in instruction.nodes("moduleItems"):
            plain += rows_of(Node({"entryId": module_id, "content": {"items": [item.value]}}))
    yield from plain


def kind_of(instruction: Node) -> str:
    """Return the type of a timeline's instruction. Its key in the newest API generation differs from the older ones."""
    return text(instruction.get("type")) or text(instruction.get("__typename"))


def kind_of_item(item: Node) -> str:
    """Return the type of the content of a module's item, such as a cursor's. Its key differs between generations."""
    return text(item.get("itemType")) or text(item.get("__typename"))


def owner_of(rows: list[Row]) -> str:
    """Return the handle of the most frequent author in the timeline, who presumably is its owner."""
    handles = Counter(row.handle for row in rows if row.handle and not row.entry_id.startswith(CONVERSATION))
    handles = handles or Counter(row.handle for row in rows if row.handle)
    return handles.most_common(1)[0][0] if handles else ""


def records_of(rows: list[Row], owner: str) -> list[dict[str, Any]]:
    """Build posts, as the data model describes them, from a timeline's rows that were understood.

    Each post is returned once. Other authors' posts in conversations are left out.
    """
    records: dict[str, dict[str, Any]] = {}
    for row in rows:
        foreign = row.entry_id.startswith(CONVERSATION) and row.handle.casefold() != owner.casefold()
        if not row.is_withheld and not foreign and not lacking(row):
            records.setdefault(row.post.id, row.post.record())
    return list(records.values())


def lacking(row: Row) -> list[list[str]]:
    """Return the paths of the mandatory parts that a row lacks. Empty for complete and for withheld posts."""
    if row.is_unread:
        return [[row.entry_id, "tweet_results", "result"]]
    return [] if row.is_withheld else [[row.entry_id, name] for name in row.post.missing_parts]


def author_node(rows: list[Row], handle: str) -> Node:
    """Return the user object with this handle and the most fields among the posts' authors, or an empty node."""
    found = [row.post.author for row in rows if row.handle.casefold() == handle.casefold()]
    return max(found, key=lambda user: len(user.value), default=Node(None))
