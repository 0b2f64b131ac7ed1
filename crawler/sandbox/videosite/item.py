"""Builds the rows for items in the simulated video site's lists, in all recent formats of the real site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.sandbox.skeletons import ABSENT, Skeletons
from crawler.sandbox.videosite.parts import Node, accessibility_label, ago, clock, compact, mark, runs, simple
from crawler.sandbox.videosite.world import NOW

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel, Item

fill = Skeletons(__file__)

_UNCOUNTED = {"members": "Members only", "premium": "Premium"}
"""The words on the badge of an item whose row has no number of views, by the item's state."""


def row(channel: Channel, item: Item, *, heavy: bool) -> Node:
    """Build an item's row in the list of its tab."""
    if item.tab == "shorts":
        shown = short(item, heavy=heavy)
    elif channel.shape == "grid":
        return {"gridVideoRenderer": video(channel, item, heavy=heavy)}
    elif channel.shape == "rich":
        shown = {"videoRenderer": video(channel, item, heavy=heavy)}
    else:
        shown = lockup(channel, item, heavy=heavy)
    return {"richItemRenderer": {"content": shown, "trackingParams": item.token}}


def listed_views(channel: Channel, item: Item, *, playlist: bool = False) -> tuple[str, int | None]:
    """Return the text about views or viewers in an item's row, and the number of views in that text.

    The text is "" if the list shows neither views nor viewers. The number is None if the text contains no views.
    """
    if item.state == "live":
        return f"{item.views % 9_000 + 5:,} watching", None
    if item.state == "upcoming":
        return f"{item.views % 90 + 2} waiting", None
    if item.state in _UNCOUNTED:
        return "", None
    if item.views == 0:
        return "No views", 0
    if channel.shape != "lockup" and item.tab != "shorts" and not playlist:
        return f"{item.views:,} view{'s' if item.views > 1 else ''}", item.views
    words, number = compact(item.views, lower=channel.lower)
    return f"{words} view{'s' if item.views > 1 else ''}", number


def length(item: Item) -> str:
    """Return the text on an item's thumbnail: the duration, "LIVE" or "Upcoming"."""
    return {"live": "LIVE", "upcoming": "Upcoming"}.get(item.state, clock(item.seconds))


def age(item: Item) -> str:
    """Return the item's age as lists show it, such as "3 weeks ago"."""
    words = ago(NOW - item.published)
    return f"Streamed {words}" if item.tab == "streams" else words


def lockup(channel: Channel, item: Item, *, heavy: bool) -> Node:
    """Build an item in the format that lists have used since 2026 (``lockupViewModel``)."""
    badge = fill("badge", item=item, length=length(item), style="LIVE" if item.state == "live" else "DEFAULT")
    return fill(
        "lockup",
        item=item,
        length=length(item),
        badge=badge | (fill("heavy badge", item=item) if heavy else {}),
        rows=_rows(channel, item),
        **{part: fill(part, item=item) if heavy else ABSENT for part in ("moving", "hover", "menu", "palette")},
    )


def _rows(channel: Channel, item: Item) -> list[Node]:
    views, _ = listed_views(channel, item)
    starts = {"upcoming": f"Scheduled for {item.published}", "live": ""}.get(item.state, age(item))
    together = [[f"{channel.name} and 2 more"]] if item.together else []
    texts = [*together, [part for part in (views, starts) if part]]
    rows: list[Node] = [{"metadataParts": [{"text": {"content": part}} for part in parts]} for parts in texts]
    if words := _UNCOUNTED.get(item.state):
        rows.append(fill("badge row", item=item, words=words, style=f"BADGE_{_constant(words)}"))
    if item.charity:
        rows.append(fill("badge row", item=item, words="Fundraiser", style="BADGE_COMMERCE"))
    return rows


def _older_badges(item: Item) -> object:
    words = _UNCOUNTED.get(item.state)
    if words is None:
        return ABSENT
    return [fill("older badge", item=item, words=words, style=f"BADGE_STYLE_TYPE_{_constant(words)}")]


def _constant(words: str) -> str:
    return words.upper().replace(" ", "_")


def video(channel: Channel, item: Item, *, heavy: bool) -> Node:
    """Build an item in the format that lists used until 2026, and grids until 2022."""
    words = simple(length(item)) | accessibility_label(length(item))
    is_ahead = item.state in {"live", "upcoming"}
    node = fill(
        "video",
        item=item,
        channel=channel,
        words=words,
        style=item.state.upper() if is_ahead else "DEFAULT",
        icon={"iconType": "LIVE"} if heavy else ABSENT,
        published=ABSENT if is_ahead else simple(age(item)),
        length_text=ABSENT if is_ahead else words,
        badges=_older_badges(item),
        **_view_counts(channel, item),
        **{part: fill(part, item=item) if heavy else ABSENT for part in ("toggle", "playing")},
    )
    return node | (fill("heavy video", item=item, snippet=item.description[:120]) if heavy else {})


def _view_counts(channel: Channel, item: Item) -> Node:
    views, _ = listed_views(channel, item)
    if item.state in {"live", "upcoming"}:
        number, _, what = views.partition(" ")
        return {"views": runs(number, f" {what}"), "short_views": runs(number, f" {what}") | accessibility_label(views)}
    if not views:
        return {"views": ABSENT, "short_views": ABSENT}
    short_views = simple(f"{compact(item.views)[0]} views") | accessibility_label(views)
    return {"views": simple(views), "short_views": short_views}


def playlist_video(channel: Channel, item: Item) -> Node:
    """Build an item in the format of playlists."""
    views, _ = listed_views(channel, item, playlist=True)
    is_ahead = item.state in {"live", "upcoming"}
    words = simple(length(item)) | accessibility_label(length(item))
    return fill(
        "playlist video",
        item=item,
        channel=channel,
        byline=f"/@{channel.handle}" if channel.handle else f"/channel/{channel.id}",
        words=words,
        style=item.state.upper() if is_ahead else "DEFAULT",
        badges=_older_badges(item),
        video_info=runs(views, " • ", age(item)) if views else runs(age(item)),
        length_text=ABSENT if is_ahead else words,
        seconds=ABSENT if is_ahead else str(item.seconds),
    )


def continuation(token: str, ending: str) -> Node:
    """Build the last row of a list that has a next page. ``ending``: its format."""
    return fill(f"continuation {ending}", next=token, token=mark(token[-20:]))


def short(item: Item, *, heavy: bool, playlist: bool = False) -> Node:
    """Build a short in the format used since 2024. In playlists, no number of views is visible in it."""
    words, _ = compact(item.views)
    spoken_views = f", {_in_words(words)} views" if item.views else ", No views"
    node = fill(
        "short",
        item=item,
        entity=item.token if playlist else f"shorts-shelf-item-{item.id}",
        spoken=spoken_views,
        views={"content": f"{words} views" if item.views else "No views"} if not playlist else ABSENT,
        reel=fill("reel", item=item) | (fill("heavy reel", item=item) if heavy else {}),
    )
    return {"shortsLockupViewModel": node | (fill("heavy short", item=item) if heavy else {})}


def _in_words(words: str) -> str:
    """Write a rounded number in words, for screen readers."""
    for letter, scale in (("K", "thousand"), ("M", "million"), ("B", "billion")):
        if words.endswith(letter):
            return f"{words[:-1]} {scale}"
    return words
