"""Builds the rows for Shorts in the simulated video site's lists, in the current and the older format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.sandbox.skeletons import ABSENT, Skeletons
from crawler.sandbox.videosite.parts import Node, compact

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Item

fill = Skeletons(__file__)


def short(item: Item, *, heavy: bool, playlist: bool = False) -> Node:
    """Build a short in the format used since 2024. In playlists, it has no text with the number of views."""
    words, _ = compact(item.views)
    spoken_views = "" if item.state == "hidden" else f", {_in_words(words)} views" if item.views else ", No views"
    is_counted = item.state != "hidden" and not playlist
    node = fill(
        "short",
        item=item,
        entity=item.token if playlist else f"shorts-shelf-item-{item.id}",
        spoken=spoken_views,
        views={"content": f"{words} views" if item.views else "No views"} if is_counted else ABSENT,
        reel=fill("reel", item=item) | (fill("heavy reel", item=item) if heavy else {}),
    )
    return {"shortsLockupViewModel": node | (fill("heavy short", item=item) if heavy else {})}


def _in_words(words: str) -> str:
    """Write a rounded number in words, for screen readers."""
    for letter, scale in (("K", "thousand"), ("M", "million"), ("B", "billion")):
        if words.endswith(letter):
            return f"{words[:-1]} {scale}"
    return words
