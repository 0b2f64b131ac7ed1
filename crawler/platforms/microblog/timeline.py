"""Microblog: the entries of a timeline, in all shapes: which of them are posts, whose, and which failed to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.post import author_of, is_withheld, post_id, post_record, unread, unwrapped
from crawler.platforms.microblog.user import screen_name
from crawler.platforms.page import missing
from crawler.reading.values import text

CONVERSATION = ("profile-conversation", "conversationthread")
"""Entries that show a post together with what it answers: others' posts in them are context."""


@dataclass(frozen=True)
class Row:
    """A place of a timeline at which a post stands, or stood."""

    entry_id: str
    result: Node
    pinned: bool = False

    @cached_property
    def post(self) -> Node:
        """The post itself."""
        return unwrapped(self.result)

    @cached_property
    def is_withheld(self) -> bool:
        """Whether nothing is to be read there."""
        return is_withheld(self.result)

    @cached_property
    def handle(self) -> str:
        """Its author's handle."""
        return screen_name(author_of(self.post))


def rows_of(entry: Node, *, pinned: bool = False) -> Iterator[Row]:
    """The posts of an entry: of a plain one its own, of a module each item's. Advertisements and users are none."""
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
    """The posts of a timeline's instructions, a pinned one first wherever it is told of."""
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
    """An instruction's type: the older clients name it otherwise than the newest."""
    return text(instruction.get("type")) or text(instruction.get("__typename"))


def owner_of(rows: list[Row]) -> str:
    """The handle of the one whose timeline it seems to be: who posted most of it."""
    handles = Counter(row.handle for row in rows if row.handle and not row.entry_id.startswith(CONVERSATION))
    handles = handles or Counter(row.handle for row in rows if row.handle)
    return handles.most_common(1)[0][0] if handles else ""


def records_of(rows: list[Row], owner: str) -> list[dict[str, Any]]:
    """The contract's posts of a timeline, each once, without the context of conversations.

    Raises:
        ExtractionFailed: a post is there that cannot be read: neither an empty page nor one with fewer posts.
    """
    paths = [[row.entry_id, name] for row in rows if not row.is_withheld for name in unread(row.post)]
    if paths:
        raise missing("Posts of the timeline are not understood.", *paths[:10], reason="blind")
    records: dict[str, dict[str, Any]] = {}
    for row in rows:
        foreign = row.entry_id.startswith(CONVERSATION) and row.handle.casefold() != owner.casefold()
        if not row.is_withheld and not foreign:
            records.setdefault(post_id(row.post), post_record(row.post))
    return list(records.values())


def author_node(rows: list[Row], handle: str) -> Node:
    """The user of that handle as the fullest of the posts' authors has it; an empty node where none is."""
    found = [author_of(row.post) for row in rows if row.handle.casefold() == handle.casefold()]
    return max(found, key=lambda user: len(user.value), default=Node(None))
