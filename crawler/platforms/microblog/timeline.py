"""Microblog: finds the posts in the entries of a timeline, and the timeline's end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crawler.platforms.microblog.convert import Contradictions, handle_of, readable, record
from crawler.platforms.microblog.payload import (
    Cursor,
    Entry,
    Instruction,
    Item,
    Module,
    Post,
    PostItem,
    TombstoneItem,
    WebCursor,
    WebEntry,
    WebInstruction,
    WebItem,
    WebPostItem,
    WebTombstoneItem,
    Withheld,
)
from crawler.reading.contract import MAX_NAME_LENGTH, MAX_NAMES, Contract, Unread

CONVERSATION = "profile-conversation"
"""Id prefix of the entries that contain a post together with the posts that it replies to.

Posts by other authors in such an entry are only context.
"""
ADVERT = "promoted"
"""Id prefix of the entries that are advertisements. Such entries also contain a mark."""
BOTTOM = "cursor-bottom"
"""Id prefix of the entries with the cursor for the next page. All 16 recorded entries with such a cursor have it."""

SUBSCRIBERS_ONLY = "TweetPreviewDisplay"
"""The type of the placeholder for a post that only subscribers can see, as other projects describe it."""

PARTS = {"TimelineAddEntries": "entries", "TimelinePinEntry": "entry"}
"""The types of the instructions that add posts, each with the key that contains the posts."""
OTHER_INSTRUCTIONS = frozenset(
    {
        "TimelineAddToModule",
        "TimelineClearCache",
        "TimelineClearEntriesUnreadState",
        "TimelineMarkEntriesUnreadGreaterThanSortIndex",
        "TimelineNavigation",
        "TimelineReplaceEntry",
        "TimelineShowAlert",
        "TimelineShowCover",
        "TimelineTerminateTimeline",
    }
)
"""The types of the other instructions in recorded timelines and in the platform's own clients."""


class Row(NamedTuple):
    """A row in a timeline: a post, or the placeholder for a withheld post."""

    entry_id: str
    post: Post | None
    """The post. None if the platform withholds it."""
    pinned: bool = False
    placeholder: str = ""
    """The platform's name for the type of the placeholder, "" if there is a post."""

    @property
    def handle(self) -> str:
        """The handle of the post's author, "" if the post is withheld."""
        return handle_of(self.post)


@dataclass
class Timeline:
    """The rows of a timeline, and where it continues."""

    rows: list[Row] = field(default_factory=list)
    cursor: str | None = ""
    """The cursor for the next page. "" if the timeline has none; None if it could not be read."""
    is_terminated: bool = False
    """Whether the platform states that the timeline ends with this page."""
    has_empty_parts: bool = False
    """Whether an instruction that adds posts has no entry. Such an instruction is valid only if its list is present."""
    unread: list[Unread] = field(default_factory=list)
    """The instructions of unknown types, the modules without items, and the posts that only subscribers can see."""


def timeline_of(instructions: Sequence[Instruction | WebInstruction]) -> Timeline:
    """Build a timeline from the instructions in a payload. A pinned post always comes first."""
    found = Timeline()
    plain: list[Row] = []
    unknown: Counter[str] = Counter()
    modules: list[Module] = []
    for each in sorted(instructions, key=lambda instruction: instruction.kind == "TimelineReplaceEntry"):
        if each.kind in PARTS and not each.entries and each.entry is None:
            found.has_empty_parts = True
        elif each.kind not in PARTS and each.kind not in OTHER_INSTRUCTIONS:
            unknown[each.kind] += 1
        is_pin = each.kind == "TimelinePinEntry"
        rows = found.rows if is_pin else plain
        for entry in [*each.entries, *([each.entry] if each.entry else [])]:
            rows += rows_of(entry, pinned=is_pin)
            modules += [entry.content] if isinstance(entry.content, Module) else []
            if (cursor := _bottom_cursor(entry)) is not None:
                found.cursor = cursor.value or None
        if isinstance(each, Instruction):
            plain += _rows_of_items(each.module_id or "", [item.content for item in each.module_items])
        found.is_terminated |= "Bottom" in (each.direction or "")
    found.rows += plain
    if hidden := sum(row.placeholder == SUBSCRIBERS_ONLY for row in found.rows):
        path = "instructions[].entries[].content.itemContent.tweet_results.result"
        found.unread.append(Unread(path, "limit", hidden, len(found.rows), loses_rows=True, names=(SUBSCRIBERS_ONLY,)))
    if empty := sum(not each.items for each in modules):  # all 63 recorded modules have items (capture a7bbdceb49fa)
        path = "instructions[].entries[].content.items"
        found.unread.append(Unread(path, "contradiction", empty, len(modules), loses_rows=True))
    if unknown:
        names = tuple(name[:MAX_NAME_LENGTH] for name in unknown)[:MAX_NAMES]
        found.unread.append(
            Unread("instructions[].…unknown", "unknown", unknown.total(), len(instructions), names=names)
        )
    return found


def lacking_parts(instructions: Sequence[dict[str, Any]]) -> list[Unread]:
    """Return the keys with posts that are missing in a payload's instructions. An empty list is not missing.

    All 29 recorded instructions of the API that add posts have these keys (captures e992000b9ff4, d3ee9f8bd024).
    """
    keys = Counter(
        key
        for each in instructions
        for kind, key in PARTS.items()
        if kind == each.get("__typename", each.get("type")) and each.get(key) is None
    )
    return [
        Unread(f"instructions[].{key}", "missing", rows, len(instructions), loses_rows=True)
        for key, rows in keys.items()
    ]


def rows_of(entry: Entry | WebEntry, *, pinned: bool = False) -> list[Row]:
    """Return the rows in an entry, which may be a module with several items. Skip advertisements and users."""
    content = entry.content
    if isinstance(content, (Item, WebItem)):
        return _rows_of_items(entry.id, (content.content,), pinned=pinned)
    if isinstance(content, Module):
        return _rows_of_items(entry.id, [item.content for item in content.items], pinned=pinned)
    return []


def _rows_of_items(entry_id: str, items: Iterable[Contract], *, pinned: bool = False) -> list[Row]:
    if entry_id.startswith(ADVERT):
        return []
    rows: list[Row] = []
    for each in items:
        if isinstance(each, (PostItem, WebPostItem)) and each.advert is None:
            rows.append(_row(entry_id, each.post, pinned=pinned))
        elif isinstance(each, (TombstoneItem, WebTombstoneItem)):
            rows.append(Row(entry_id, None, pinned, "TimelineTombstone"))
    return rows


def _row(entry_id: str, post: Post | Withheld | None, *, pinned: bool) -> Row:
    if found := readable(post):
        return Row(entry_id, found, pinned)
    withheld = post.author if isinstance(post, Post) else post
    return Row(entry_id, None, pinned, withheld.tag[1] if withheld and withheld.tag else "")


def _bottom_cursor(entry: Entry | WebEntry) -> Cursor | WebCursor | None:
    """Return the cursor for the next page if the entry contains it."""
    content = entry.content
    if isinstance(content, (Cursor, WebCursor)) and (content.kind == "Bottom" or entry.id.startswith(BOTTOM)):
        return content
    return None


def owner_of(rows: list[Row]) -> str:
    """Return the handle of the most frequent author in the timeline, who is presumably its owner."""
    named = [(row.handle, row.entry_id.startswith(CONVERSATION)) for row in rows]
    handles = [handle for handle, is_context in named if handle and not is_context]
    handles = handles or [handle for handle, _ in named if handle]
    return Counter(handles).most_common(1)[0][0] if handles else ""


def records_of(rows: list[Row], owner: str, contradictions: Contradictions) -> list[dict[str, Any]]:
    """Build posts, as the data model describes them, from a timeline's rows.

    Each post is returned once. Other authors' posts in conversations are left out.
    """
    records: dict[str, dict[str, Any]] = {}
    for row in rows:
        foreign = row.entry_id.startswith(CONVERSATION) and row.handle.casefold() != owner.casefold()
        if row.post and not foreign and row.post.id not in records:
            found = record(row.post, contradictions)
            if found is not None:
                records[row.post.id] = found
    return list(records.values())
