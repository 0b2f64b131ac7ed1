"""The simulated video site's channel pages: tabs, metadata and the rest of the page."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import orjson

from crawler.sandbox.skeletons import ABSENT, Skeletons
from crawler.sandbox.videosite.header import header
from crawler.sandbox.videosite.parts import Node, mark

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel

fill = Skeletons(__file__)

PUBLIC = "https://www.youtube.com"
VERSION = "2.20260801.03.00"
"""The version number of the web client in pages."""

TABS = {
    "featured": ("Home", "EghmZWF0dXJlZPIGBAoCMgA%3D"),
    "videos": ("Videos", "EgZ2aWRlb3PyBgQKAjoA"),
    "shorts": ("Shorts", "EgZzaG9ydHPyBgUKA5oBAA%3D%3D"),
    "streams": ("Live", "EgdzdHJlYW1z8gYECgJ6AA%3D%3D"),
    "playlists": ("Playlists", "EglwbGF5bGlzdHPyBgQKAkIA"),
    "posts": ("Posts", "EgVwb3N0c_IGBAoCSgA%3D"),
}
"""Each tab's title and its ``params`` in API calls, by the last segment of the tab's URL."""


def answer_context(browse: str, *of: object, heavy: bool = True) -> Node:
    """Build the context that every API response contains."""
    return fill("heavy context" if heavy else "light context", browse=browse, token=mark(*of), version=VERSION)


def channel_data(channel: Channel, selected: str, content: Node, *, heavy: bool) -> Node:
    """Build the data of a channel's page with one tab open."""
    tabs = [_tab(channel, name, content if name == selected else None) for name in channel.tabs]
    short = channel.description.replace("\n", " ")[:150]
    return fill(
        "channel",
        channel=channel,
        context=answer_context(channel.id, channel.id, selected, heavy=heavy),
        tabs=[*tabs, fill("search tab", channel=channel)],
        header=header(channel, heavy=heavy),
        codes=shuffled(channel),
        description=short + ("..." if len(short) == 150 else ""),
        tags=[word.strip('"') for word in channel.keywords.split()],
        topbar=topbar(hotkeys=30) if heavy else ABSENT,
    )


def topbar(hotkeys: int = 1) -> Node:
    """Build the bar above every page. ``hotkeys``: the number of rows in its dialog of keyboard shortcuts."""
    return fill("topbar", token=mark("topbar"), hotkeys=[fill("hotkey")] * hotkeys)


def _tab(channel: Channel, name: str, content: Node | None) -> Node:
    title, params = TABS[name]
    shown = {"selected": ABSENT, "content": ABSENT} if content is None else {"selected": True, "content": content}
    return fill("tab", channel=channel, name=name, title=title, params=params, **shown)


def rich_grid(channel: Channel, tab: str, rows: list[Node], *, heavy: bool) -> Node:
    """Build the content of a tab in the format used since 2022."""
    node = fill("rich grid", channel=channel, rows=rows)
    return {"richGridRenderer": node | (_sorting(channel, tab) if heavy else {})}


def _sorting(channel: Channel, tab: str) -> Node:
    """Build the chips that sort a list, in one of two formats. Both were recorded in all tabs in the same months."""
    age = "" if (channel.shape == "lockup" and tab != "shorts") or channel.id[2] > "R" else "older "
    orders = ("Latest", "Popular", "Oldest")
    chips = [fill(f"{age}chip", channel=channel, order=order, selected=order == "Latest") for order in orders]
    return fill("heavy rich grid", channel=channel, chips=fill(f"{age}chips", channel=channel, chips=chips))


def grid(channel: Channel, tab: str, rows: list[Node], *, heavy: bool) -> Node:
    """Build the content of a tab in the format used until 2022."""
    node = fill("grid", channel=channel, tab=tab, rows=rows)
    return {"sectionListRenderer": node | (fill("heavy grid", channel=channel, tab=tab) if heavy else {})}


def nothing(words: str, channel: Channel) -> Node:
    """Build the content of a tab without items."""
    return fill("nothing", channel=channel, words=words)


def home(channel: Channel) -> Node:
    """Build the content of the home tab. A shelf in it contains the token for another channel's about panel."""
    return fill("home", channel=channel)


def shuffled(channel: Channel) -> list[str]:
    """Return the country codes in random order, because real responses do not sort them."""
    codes = list(channel.codes)
    random.Random(channel.id).shuffle(codes)  # noqa: S311  # an invented order
    return codes


def document(title: str, data: object, *, person: Node | None = None, player: Node | None = None) -> bytes:
    """Render an HTML page that contains the given data. Bytes are inserted unchanged, even invalid JSON."""
    block = data if isinstance(data, bytes) else orjson.dumps(data)
    config = orjson.dumps(
        {"INNERTUBE_CONTEXT_CLIENT_VERSION": VERSION, "INNERTUBE_CONTEXT_HL": "en", "VISITOR_DATA": mark("visitor")}
    )
    parts = [
        b'<!DOCTYPE html><html style="font-size: 10px" lang="en"><head><title>',
        title.replace("&", "&amp;").replace("<", "&lt;").encode(),
        b' - YouTube</title><script nonce="x">(function() {window.ytplayer={};ytcfg.set(',
        config,
        b");})();</script>",
    ]
    if person is not None:
        parts += [b'<script type="application/ld+json" nonce="x">', orjson.dumps(person), b"</script>"]
    if player is not None:
        parts += [b'<script nonce="x">var ytInitialPlayerResponse = ', orjson.dumps(player), b";</script>"]
    parts += [
        b'</head><body dir="ltr"><ytd-app></ytd-app><script nonce="x">var ytInitialData = ',
        block.replace(b"</", b"\\u003c/"),
        b";</script></body></html>",
    ]
    return b"".join(parts)
