"""Microblog: reads the entries of a timeline in all shapes: its posts, their authors, posts not recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.post import author_of, is_withheld, missing_parts, post_id, post_record, unwrapped
from crawler.platforms.microblog.user import screen_name
from crawler.platforms.page import missing_error
from crawler.reading.values import text

CONVERSATION = ("profile-conversation", "conversationthread")
"""Prefixes of entries with a post and the posts that it replies to. Other authors' posts in them are context."""


@dataclass(frozen=True)
class Row:
    """A row of a timeline: a post, or the placeholder of a withheld one."""

    entry_id: str
    result: Node
    pinned: bool = False

    @cached_property
    def post(self) -> Node:
        """The post itself."""
        return unwrapped(self.result)

    @cached_property
    def is_withheld(self) -> bool:
        """Whether the platform withholds the post."""
        return is_withheld(self.result)

    @cached_property
    def handle(self) -> str:
        """Its author's handle."""
        return screen_name(author_of(self.post))


def rows_of(entry: Node, *, pinned: bool = False) -> Iterator[Row]:
    """Yield the posts of an entry, or of a module's items. Advertisements and users are skipped."""
    entry_id = text(entry.get("entryId")) or text(entry.get("entry_id"))
    if entry_id.startswith("promoted"):
        return
    content = entry.node("content")
    items = content.nodes("items") or ([entry] if content else entry.nodes("items"))
    for item in items:
        holder = item.node("item") or item.node("content")
        shown = holder.node("itemContent") or holder.node("content") or holder
        if shown.get("promotedMetadata") or shown.get("promoted_metadata"):
            continue
        if "tweet_results" in shown.value:
            yield Row(entry_id, shown.node("tweet_results", "result"), pinned=pinned)


def rows_of_instructions(instructions: Iterable[Node]) -> Iterator[Row]:
    """Yield the posts of a timeline's instructions, a pinned one first, whatever the order of the instructions."""
    plain: list[Row] = []
    for instruction in instructions:
        if kind_of(instruction) == "TimelinePinEntry":
            yield from rows_of(instruction.node("entry"), pinned=True)
        for entry in instruction.nodes("entries"):
            plain += rows_of(entry)
        module_id = text(instruction.get("moduleEntryId"))
        for item in instruction.nodes("moduleItems"):
            plain += (Row(module_id, row.result) for row in rows_of(Node({"content": {"items": [item.value]}})))
    yield from plain


def kind_of(instruction: Node) -> str:
    """An instruction's type. Older and newest API have different keys for it."""
    return text(instruction.get("type")) or text(instruction.get("__typename"))


def owner_of(rows: list[Row]) -> str:
    """The handle of the timeline's most frequent author, presumably its owner."""
    handles = Counter(row.handle for row in rows if row.handle and not row.entry_id.startswith(CONVERSATION))
    handles = handles or Counter(row.handle for row in rows if row.handle)
    return handles.most_common(1)[0][0] if handles else ""


def records_of(rows: list[Row], owner: str) -> list[dict[str, Any]]:
    """Build the contract's posts of a timeline, each once, without the context of conversations.

    Raises:
        ExtractionFailed: a post lacks mandatory parts. Skipping it would return incomplete data as complete.
    """
    paths = [[row.entry_id, name] for row in rows if not row.is_withheld for name in missing_parts(row.post)]
    if paths:
        raise missing_error("Posts of the timeline lack mandatory parts.", *paths[:10], reason="blind")
    records: dict[str, dict[str, Any]] = {}
    for row in rows:
        foreign = row.entry_id.startswith(CONVERSATION) and row.handle.casefold() != owner.casefold()
        if not row.is_withheld and not foreign:
            records.setdefault(post_id(row.post), post_record(row.post))
    return list(records.values())


def author_node(rows: list[Row], handle: str) -> Node:
    """The fullest user object of that handle among the posts' authors, or an empty node."""
    found = [author_of(row.post) for row in rows if row.handle.casefold() == handle.casefold()]
    return max(found, key=lambda user: len(user.value), default=Node(None))
