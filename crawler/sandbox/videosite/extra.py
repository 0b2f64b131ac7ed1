"""The simulated video site's smaller responses: feeds, video metadata, resolved URLs, errors and blocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from crawler.sandbox.skeletons import ABSENT, Fragments, Skeletons
from crawler.sandbox.videosite.header import about_panel, subscribers
from crawler.sandbox.videosite.page import PUBLIC, answer_context, topbar
from crawler.sandbox.videosite.parts import Node, mark

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel, Item

fill, render = Skeletons(__file__), Fragments(__file__)

FEED_LENGTH = 15
PLAYLISTS = {"videos": "UULF", "shorts": "UUSH", "streams": "UULV"}
PACIFIC = timezone(timedelta(hours=-8))


def feed_items(items: list[Item]) -> list[Item]:
    """Return the items in a feed: the newest items that are neither announced nor for members only."""
    return [item for item in items if item.state not in {"members", "upcoming"}][:FEED_LENGTH]


def feed(channel: Channel, tab: str | None) -> bytes:
    """Build a channel's feed. If ``tab`` is given, build the feed of the playlist that contains this tab's items."""
    if tab is None:
        query, feed_id = f"channel_id={channel.id}", channel.id[2:]
        items = sorted((item for items in channel.items.values() for item in items), key=lambda item: -item.published)
        created = channel.created
    else:
        feed_id = PLAYLISTS[tab] + channel.id[2:]
        query, items, created = f"playlist_id={feed_id}", channel.items.get(tab, []), channel.created + 86_400 * 40
    author = render("feed author", channel=channel)
    entries = "".join(_entry(channel, item, author) for item in feed_items(items))
    return render(
        "feed",
        channel=channel,
        query=query,
        kind="channel" if tab is None else "playlist",
        id=feed_id,
        uploader=channel.id[2:],
        author=author,
        created=datetime.fromtimestamp(created, UTC).isoformat(),
        entries=entries,
    ).encode()


def _entry(channel: Channel, item: Item, author: str) -> str:
    published = datetime.fromtimestamp(item.published, UTC).isoformat()
    updated = datetime.fromtimestamp(item.published + 9_000, UTC).isoformat()
    link = f"{PUBLIC}/shorts/{item.id}" if item.tab == "shorts" else f"{PUBLIC}/watch?v={item.id}"
    likes = item.likes or 0
    views = 1 if channel.feed_ones else item.views
    return render(
        "feed entry",
        channel=channel,
        item=item,
        link=link,
        author=author,
        published=published,
        updated=updated,
        picture=feed_picture(item),
        likes=likes,
        average="5.00" if likes else "0.00",
        views=views,
    )


def feed_picture(item: Item) -> str:
    """Return the URL of an item's picture in feeds."""
    return f"https://i4.ytimg.com/vi/{item.id}/hqdefault.jpg"


def player(channel: Channel, item: Item) -> Node:
    """Build a video's metadata, the response to the API call ``player``."""
    moment = datetime.fromtimestamp(item.published, PACIFIC).isoformat()
    is_short, is_ahead = item.tab == "shorts", item.state in {"live", "upcoming"}
    ended = datetime.fromtimestamp(item.published + item.seconds, UTC).isoformat()
    broadcast = {"isLiveNow": item.state == "live", "startTimestamp": moment} | (
        {} if is_ahead else {"endTimestamp": ended}
    )
    return fill(
        "player",
        channel=channel,
        item=item,
        status="UNPLAYABLE" if item.state == "members" else "OK",
        codes=list(channel.codes),
        views="0" if item.state == "upcoming" else str(item.views),
        moment=moment,
        short=is_short,
        link=f"{PUBLIC}/shorts/{item.id}" if is_short else f"{PUBLIC}/watch?v={item.id}",
        seconds=ABSENT if is_ahead else str(item.seconds),
        likes=ABSENT if item.likes is None else str(item.likes),
        live=broadcast if is_ahead or item.tab == "streams" else ABSENT,
    )


def bot_check() -> Node:
    """Build the response of ``player`` that requires a bot check."""
    return fill("bot check")


def resolved(channel: Channel, url: str) -> Node:
    """Build the API response that resolves a URL to a channel's id."""
    return fill("resolved", channel=channel, url=url, token=mark(url), context=answer_context("", heavy=False))


def redirected(url: str) -> Node:
    """Build the API response for a URL that redirects to ``url``."""
    return fill("redirected", url=url, token=mark(url), context=answer_context("", heavy=False))


def refused(code: int, message: str, status: str) -> Node:
    """Build the error response of an API call."""
    return fill("refused", code=code, message=message, status=status, reason=status.lower())


def alert(channel: str, words: str) -> Node:
    """Build the data of a page that contains an alert, because its channel or playlist is unavailable."""
    context = answer_context(channel)
    return fill("alert", channel=channel, words=words, token=mark(words), context=context, topbar=topbar())


def age_gate(channel: Channel) -> Node:
    """Build the data of the age gate that is shown instead of an age-restricted channel."""
    return fill("age gate", channel=channel, context=answer_context(channel.id), topbar=topbar())


def topic(channel: Channel, home: Node) -> Node:
    """Build the page of a generated channel for a game or sport. Such a page has a special header and no metadata."""
    page = fill("topic", channel=channel, home=home, context=answer_context(channel.id), topbar=topbar())
    if channel.kind == "game":
        return page | fill("game", channel=channel, banner=channel.banner.format(w=2560), codes=list(channel.codes))
    words, _ = subscribers(channel)
    return page | fill("sport", channel=channel, avatar=channel.avatar.removeprefix("https:"), words=words)


def appended(browse: str, rows: list[Node], *, place: str = "onResponseReceivedActions", heavy: bool = True) -> Node:
    """Build the API response that contains rows, such as the next page of a list."""
    context = answer_context(browse, len(rows), heavy=heavy)
    fields = {"browse": browse, "rows": rows, "token": mark(browse)}
    return fill("appended", **fields, context=context) | {place: [fill("appended action", **fields)]}


def opened_about(channel: Channel) -> Node:
    """Build the object that contains the about panel in the data of the separate about page."""
    return fill("opened about", channel=channel, panel=about_panel(channel))


def person(channel: Channel) -> Node:
    """Build the linked data of a channel's page, which describes the channel."""
    _, number = subscribers(channel)
    return fill(
        "person",
        channel=channel,
        alternate=f"@{channel.handle}" if channel.handle else "",
        links=list(channel.links),
        statistic=ABSENT if number is None else [fill("subscribers", number=str(number))],
    )


CONSENT, TRAFFIC, NOT_FOUND = (render(name).encode() for name in ("consent", "unusual traffic", "not found"))
"""HTML pages that are sent instead of a channel's page."""
