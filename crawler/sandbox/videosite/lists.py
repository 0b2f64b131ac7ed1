"""The simulated video site's lists: the tabs of a channel, the pages of each tab, and the tokens for next pages."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import orjson

from crawler.sandbox.videosite import extra
from crawler.sandbox.videosite.item import continuation, playlist_video, row, short
from crawler.sandbox.videosite.page import channel_data, grid, home, nothing, rich_grid
from crawler.sandbox.videosite.parts import Node, mark
from crawler.sandbox.videosite.world import PAGE

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel, Item


def tab_data(channel: Channel, tab: str, *, heavy: bool) -> Node:
    """Build the data of a channel's page with ``tab`` open. If the channel lacks this tab, its first tab is open."""
    if channel.kind == "gated":
        return extra.age_gate(channel)
    if channel.kind in {"game", "sport"}:
        return extra.topic(channel, home(channel))
    selected = tab if tab in channel.tabs else channel.tabs[0]
    if selected not in PAGE:
        content = home(channel)
    elif not channel.items[selected]:
        content = nothing("This channel has no videos.", channel)
    else:
        listed = grid if channel.shape == "grid" and selected != "shorts" else rich_grid
        content = listed(channel, selected, rows_of(channel, selected, 0, heavy=heavy), heavy=heavy)
    return channel_data(channel, selected, content, heavy=heavy)


def items_of(channel: Channel, tab: str, number: int) -> list[Item]:
    """Return the items on a page of a list. Pages are counted from 0."""
    sizes = channel.sizes(tab)
    start = sum(sizes[:number])
    return channel.items.get(tab, [])[start : start + sizes[number]] if number < len(sizes) else []


def token_after(channel: Channel, tab: str, number: int, *, heavy: bool) -> str:
    """Return the token for the page after page ``number`` of a tab's list, or "" if this is the last page."""
    if number + 1 >= len(channel.sizes(tab)):
        return ""
    return token(channel, tab, 1 if channel.fault == "loop" else number + 1, heavy=heavy)


def rows_of(channel: Channel, tab: str, number: int, *, heavy: bool) -> list[Node]:
    """Build the rows on a page of a list, including the row that leads to the next page."""
    listed = items_of(channel, tab, number)
    if channel.kind in {"gated", "topic"}:
        rows = [_playlist_row(channel, item, heavy=heavy) for item in listed]
    else:
        rows = [row(channel, item, heavy=heavy) for item in listed]
    if channel.repeats and len(rows) > 3:
        rows.insert(3, rows[0])
    if channel.shape != "grid" and not number and heavy:
        rows.insert(
            1,
            {"richSectionRenderer": {"content": {"richShelfRenderer": {"contents": []}}, "trackingParams": mark()}},
        )
    following = token_after(channel, tab, number, heavy=heavy)
    return rows + ([continuation(following, channel.ending)] if following else [])


def _playlist_row(channel: Channel, item: Item, *, heavy: bool) -> Node:
    if item.tab == "shorts":
        return {"richItemRenderer": {"content": short(item, heavy=heavy, playlist=True)}}
    return playlist_video(channel, item)


def token(channel: Channel, tab: str, number: int, *, heavy: bool) -> str:
    """Build the token for a page of a tab's list. Like real tokens, it is long and opaque."""
    body = urlsafe_b64encode(orjson.dumps({"c": channel.id, "t": tab, "p": number})).decode().rstrip("=")
    padding = mark(channel.id, tab, number, size=64) * (40 if tab == "shorts" else 24) if heavy else ""
    return quote(f"4qmFsg{body}=={padding}")


def read_token(text: object) -> dict[str, Any]:
    """Return the content of a token, or {} if it is not one of the site's tokens."""
    body = unquote(str(text)).removeprefix("4qmFsg").partition("==")[0]
    try:
        found = orjson.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
