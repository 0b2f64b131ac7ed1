"""The numbers of subscribers and items that the simulated video site's channels show, and their about panels."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from crawler.sandbox.videosite.parts import Node, command, compact, linked, mark

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel


def subscribers(channel: Channel) -> tuple[str, int | None]:
    """Return the text with the rounded number of subscribers, and that number; "" and None if it is hidden."""
    if channel.subscribers is None:
        return "", None
    words, number = compact(channel.subscribers, digits=3, lower=channel.lower)
    return f"{words} subscriber{'' if number == 1 else 's'}", number


def videos(channel: Channel) -> tuple[str, int]:
    """Return the text with the channel's number of items, and the number in the text, which may be rounded."""
    words, number = (
        compact(channel.total, digits=3, lower=channel.lower)
        if channel.total >= 1000
        else (str(channel.total), channel.total)
    )
    return f"{words} video{'' if number == 1 else 's'}", number


def redirect(link: str, event: str) -> str:
    """Build the URL of an external link in pages: through the platform's redirect, except for its own hosts."""
    if "music.youtube.com" in link:
        return link
    return f"https://www.youtube.com/redirect?event={event}&redir_token={mark(link)}&q={quote(link, safe='')}"


def about_panel(channel: Channel) -> Node:
    """Build the about panel of a channel."""
    joined = datetime.fromtimestamp(channel.created, UTC)
    words, _ = subscribers(channel)
    node: Node = {
        "description": channel.description,
        "descriptionLabel": {"content": "Description"},
        "viewCountText": f"{channel.views:,} view{'' if channel.views == 1 else 's'}",
        "joinedDateText": {"content": f"Joined {joined:%b} {joined.day}, {joined.year}", "styleRuns": []},
        "canonicalChannelUrl": f"http://www.youtube.com{channel.path}",
        "channelId": channel.id,
        "videoCountText": f"{channel.total:,} video{'' if channel.total == 1 else 's'}",
        "signInForBusinessEmail": {"content": "Sign in to see email address"},
    }
    if channel.country:
        node["country"] = channel.country
    if words:
        node["subscriberCountText"] = words
    if channel.links:
        node["links"] = [_about_link(link) for link in channel.links]
    return {"aboutChannelRenderer": {"metadata": {"aboutChannelViewModel": node}}}


def _about_link(link: str) -> Node:
    shown, url = link.removeprefix("https://"), redirect(link, "channel_description")
    tapped = command(
        "about",
        web=linked(url, "UNKNOWN", 83_769, api=False),
        urlEndpoint={"url": url, "target": "TARGET_NEW_WINDOW", "nofollow": True},
    )
    run = {"startIndex": 0, "length": len(shown), "onTap": {"innertubeCommand": tapped}}
    return {
        "channelExternalLinkViewModel": {"title": {"content": "Link"}, "link": {"content": shown, "commandRuns": [run]}}
    }
