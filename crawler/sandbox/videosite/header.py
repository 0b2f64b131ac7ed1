"""The page headers of the simulated video site's channels, and their about panels."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from crawler.sandbox.skeletons import ABSENT, Skeletons
from crawler.sandbox.videosite.parts import Node, compact, images, mark

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel

fill = Skeletons(__file__)

_BANNERS = ((1060, 175), (1138, 188), (1707, 283), (2120, 351), (2276, 377), (2560, 424))
_BADGES = {"verified": "CHECK_CIRCLE_FILLED", "artist": "AUDIO_BADGE"}


def subscribers(channel: Channel) -> tuple[str, int | None]:
    """Return the text with the rounded number of subscribers, and that number; "" and None if it is hidden."""
    if channel.subscribers is None:
        return "", None
    words, number = compact(channel.subscribers, digits=3, lower=channel.lower)
    return f"{words} subscriber{'' if number == 1 else 's'}", number


def videos(channel: Channel) -> tuple[str, int]:
    """Return the text with the channel's number of items, and the number in the text, which may be rounded."""
    words, number = compact(channel.total, digits=3, lower=channel.lower)
    return f"{words} video{'' if number == 1 else 's'}", number


def header(channel: Channel, *, heavy: bool) -> Node:
    """Build the visible header of a channel's page."""
    words, _ = subscribers(channel)
    count, _ = videos(channel)
    banner = images(channel.banner, *_BANNERS)
    return fill(
        "header",
        channel=channel,
        title=_title(channel),
        verified={"label": f"{channel.name}, verified"} if channel.badge else ABSENT,
        handle=_handle(channel) if channel.handle else ABSENT,
        subscribers={"text": {"content": words}, "accessibilityLabel": words} if words else ABSENT,
        videos=count,
        videos_length=len(count),
        first=channel.description.partition("\n")[0],
        panel=fill("panel", channel=channel),
        attribution=_attribution(channel) if channel.links else ABSENT,
        banner=fill("banner", channel=channel, sources=banner) if channel.banner else ABSENT,
        actions=fill("actions", channel=channel) if heavy else ABSENT,
    )


def _title(channel: Channel) -> Node:
    if not channel.badge:
        return {"content": channel.name}
    return fill("badged title", channel=channel, picture=_BADGES[channel.badge])


def _handle(channel: Channel) -> Node:
    pronouns = {"text": {"content": "they/them"}, "tooltip": "Pronouns"}
    return fill("handle", channel=channel, pronouns=pronouns if channel.pronouns else ABSENT)


def _attribution(channel: Channel) -> Node:
    first, *others = channel.links
    shown, words = first.removeprefix("https://"), f"and {len(others)} more links"
    more = fill("suffix", channel=channel, words=words, length=len(words), panel=fill("panel", channel=channel))
    url = redirect(first, "channel_header")
    suffix = more if others else ABSENT
    return fill("attribution", channel=channel, shown=shown, length=len(shown), url=url, suffix=suffix)


def redirect(link: str, event: str) -> str:
    """Build the URL of an external link in pages: through the platform's redirect, except for its own hosts."""
    if "music.youtube.com" in link:
        return link
    return f"https://www.youtube.com/redirect?event={event}&redir_token={mark(link)}&q={quote(link, safe='')}"


def about_panel(channel: Channel) -> Node:
    """Build the about panel of a channel."""
    joined = datetime.fromtimestamp(channel.created, UTC)
    return fill(
        "about panel",
        channel=channel,
        views=f"{channel.views:,} view{'' if channel.views == 1 else 's'}",
        joined=f"Joined {joined:%b} {joined.day}, {joined.year}",
        videos=f"{channel.total:,} video{'' if channel.total == 1 else 's'}",
        country=channel.country or ABSENT,
        subscribers=subscribers(channel)[0] or ABSENT,
        links=[_about_link(channel, link) for link in channel.links] or ABSENT,
    )


def _about_link(channel: Channel, link: str) -> Node:
    shown, url = link.removeprefix("https://"), redirect(link, "channel_description")
    return fill("about link", channel=channel, shown=shown, length=len(shown), url=url)
