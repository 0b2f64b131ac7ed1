"""The records that must be extracted from the simulated video site, built from its data instead of its pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crawler.sandbox.skeletons import Skeletons
from crawler.sandbox.videosite.extra import feed_items, feed_picture
from crawler.sandbox.videosite.header import subscribers, videos
from crawler.sandbox.videosite.item import listed_views
from crawler.sandbox.videosite.page import PUBLIC

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel, Item

LABELS = {"videos": "video", "shorts": "short", "streams": "live"}

Record = dict[str, Any]

fill = Skeletons(__file__)


def sources_of(channel: Channel, page: list[Item], *, first: bool, enriched: bool = True) -> dict[str, str]:
    """Return the source that enriches each item of a page, by item id: ``feed``, or ``video`` for a request of its own.

    Items that are not enriched are absent. If ``enriched`` is false, the result is empty, except with the fault
    ``no-playlist``, where the items themselves are read from the Atom feed.
    """
    sources: dict[str, str] = {}
    if not enriched and channel.fault != "no-playlist":
        return sources
    if first and channel.fault != "no-feed":
        tab = page[0].tab if page else ""
        newest = {item.id for item in feed_items(channel.items.get(tab, []))}
        sources = {item.id: "feed" for item in page if item.id in newest}
    if channel.fault in {"no-player", "bot-check"}:
        return sources
    return {item.id: "video" for item in page} | sources


def post(channel: Channel, item: Item, source: str) -> Record:
    """Build an item's expected record from its row in the list, and from the ``source`` that enriches it, if any."""
    from_feed = channel.fault == "no-playlist"
    playlist = channel.kind in {"gated", "topic"}
    _, listed = listed_views(channel, item, playlist=playlist)
    finished = item.state not in {"live", "upcoming"}
    return fill(
        "post",
        channel=channel,
        item=item,
        username="" if channel.kind == "gated" else channel.handle,
        link=f"{PUBLIC}/shorts/{item.id}" if item.tab == "shorts" else f"{PUBLIC}/watch?v={item.id}",
        label=LABELS[item.tab],
        hashtags=list(dict.fromkeys([*item.tags[0], *(item.tags[1] if source else ())])),
        likes=item.likes if source else None,
        mentions=list(dict.fromkeys([*item.friends[0], *(item.friends[1] if source else ())])),
        published=item.published if source else None,
        picture=feed_picture(item) if from_feed else _picture(item),
        seconds=_seconds(item, source, from_feed=from_feed) if finished else None,
        views=item.views if from_feed else _views(channel, item, source, listed),
    )


def _picture(item: Item) -> str:
    width, height = (405, 720) if item.tab == "shorts" else (336, 188)
    return item.picture.format(w=width, h=height)


def _seconds(item: Item, source: str, *, from_feed: bool) -> int | None:
    listed = item.tab != "shorts" and not from_feed
    return item.seconds if listed or source == "video" else None


def _views(channel: Channel, item: Item, source: str, listed: int | None) -> int | None:
    """Return the expected number of views: for a short, the list's number; else the exact number if a source contains
    it.

    If a channel's feed states 1 view for every item, a number above 2 in the list is used instead.
    """
    if item.tab == "shorts" or not source or item.state == "upcoming":
        return listed
    if source == "feed" and channel.feed_ones:
        return 1 if listed is None or listed <= 2 else listed
    return item.views


def profile(channel: Channel, *, about: bool) -> Record:
    """Build the channel's expected record. ``about`` adds the fields of the about panel.

    If the channel has no about panel, other sources supply some of these fields.
    """
    words, number = subscribers(channel)
    shown = channel.kind in {"normal", "topic"}
    handle = channel.handle if shown else ""
    is_place = channel.kind in {"gated", "sport"}
    is_destination = channel.kind in {"gated", "game"}
    record: Record = fill(
        "profile",
        channel=channel,
        countries=[] if is_place else sorted(channel.codes),
        banner=channel.banner.format(w=2560) if shown or channel.kind == "game" else "",
        biography="" if is_place else channel.description,
        videos=videos(channel)[1] if shown else None,
        followers=None if is_destination else number,
        safe=None if is_place else channel.safe,
        keywords=channel.keywords if shown else "",
        link=f"{PUBLIC}/@{quote(handle)}" if handle else f"{PUBLIC}/channel/{channel.id}",
        words="" if is_destination else words,
        handle=handle,
        verified=None if channel.kind in {"gated", "game", "sport"} else bool(channel.badge),
    )
    if not about:
        return record
    if shown and channel.fault != "no-about":
        day = datetime.fromtimestamp(channel.created, UTC).replace(hour=0, minute=0, second=0)
        record |= {
            "account_creation_date": int(day.timestamp()),
            "account_creation_date_text": day.date().isoformat(),
            "content_count": channel.total,
            "external_links": list(channel.links),
            "location": channel.country,
            "total_views": channel.views,
        }
        return record
    if shown:
        record["external_links"] = list(channel.links)  # the page's linked data contains the links, too
    if channel.kind not in {"game", "sport"}:  # the channel's feed contains the exact time of creation
        record["account_creation_date"] = channel.created
        record["account_creation_date_text"] = datetime.fromtimestamp(channel.created, UTC).date().isoformat()
    return record
