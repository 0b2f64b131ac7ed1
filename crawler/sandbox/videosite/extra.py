"""The simulated video site's smaller responses: feeds, video metadata, resolved URLs, errors and blocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from crawler.sandbox.videosite.about import about_panel, subscribers
from crawler.sandbox.videosite.page import PUBLIC, answer_context
from crawler.sandbox.videosite.parts import Node, command, linked, mark, simple

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel, Item

FEED_LENGTH = 15
PLAYLISTS = {"videos": "UULF", "shorts": "UUSH", "streams": "UULV"}
PACIFIC = timezone(timedelta(hours=-8))

_FEED = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns:media="http://search.yahoo.com/mrss/"'
    ' xmlns="http://www.w3.org/2005/Atom">\n'
)


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
    author = f"<author><name>{escape(channel.name)}</name><uri>{PUBLIC}/channel/{channel.id}</uri></author>"
    parts = [
        _FEED,
        f' <link rel="self" href="http://www.youtube.com/feeds/videos.xml?{query}"/>\n',
        f" <id>yt:{'channel' if tab is None else 'playlist'}:{feed_id}</id>\n",
        f" <yt:channelId>{channel.id[2:]}</yt:channelId>\n <title>{escape(channel.name)}</title>\n",
        f' <link rel="alternate" href="{PUBLIC}/channel/{channel.id}"/>\n {author}\n',
        f" <published>{datetime.fromtimestamp(created, UTC).isoformat()}</published>\n",
        *(_entry(channel, item, author) for item in feed_items(items)),
        "</feed>",
    ]
    return "".join(parts).encode()


def _entry(channel: Channel, item: Item, author: str) -> str:
    published = datetime.fromtimestamp(item.published, UTC).isoformat()
    updated = datetime.fromtimestamp(item.published + 9_000, UTC).isoformat()
    link = f"{PUBLIC}/shorts/{item.id}" if item.tab == "shorts" else f"{PUBLIC}/watch?v={item.id}"
    likes = item.likes or 0
    views = 1 if channel.feed_ones else item.views
    picture = quoteattr(feed_picture(item))
    return (
        f" <entry>\n  <id>yt:video:{item.id}</id>\n  <yt:videoId>{item.id}</yt:videoId>\n"
        f"  <yt:channelId>{channel.id}</yt:channelId>\n  <title>{escape(item.title)}</title>\n"
        f'  <link rel="alternate" href="{link}"/>\n  {author}\n'
        f"  <published>{published}</published>\n  <updated>{updated}</updated>\n  <media:group>\n"
        f"   <media:title>{escape(item.title)}</media:title>\n"
        f'   <media:thumbnail url={picture} width="480" height="360"/>\n'
        f"   <media:description>{escape(item.description)}</media:description>\n   <media:community>\n"
        f'    <media:starRating count="{likes}" average="{"5.00" if likes else "0.00"}" min="1" max="5"/>\n'
        f'    <media:statistics views="{views}"/>\n   </media:community>\n  </media:group>\n </entry>\n'
    )


def feed_picture(item: Item) -> str:
    """Return the URL of an item's picture in feeds."""
    return f"https://i4.ytimg.com/vi/{item.id}/hqdefault.jpg"


def player(channel: Channel, item: Item) -> Node:
    """Build a video's metadata, the response to the API call ``player``."""
    moment = datetime.fromtimestamp(item.published, PACIFIC).isoformat()
    short = item.tab == "shorts"
    microformat: Node = {
        "thumbnail": {
            "thumbnails": [{"url": f"https://i.ytimg.com/vi/{item.id}/maxresdefault.jpg", "width": 1280, "height": 720}]
        },
        "embed": {"iframeUrl": f"{PUBLIC}/embed/{item.id}", "width": 1280, "height": 720},
        "title": simple(item.title),
        "description": simple(item.description),
        "ownerProfileUrl": f"http://www.youtube.com{channel.path}",
        "externalChannelId": channel.id,
        "isFamilySafe": channel.safe,
        "availableCountries": list(channel.codes),
        "isUnlisted": False,
        "hasYpcMetadata": False,
        "viewCount": "0" if item.state == "upcoming" else str(item.views),
        "category": "People & Blogs",
        "publishDate": moment,
        "ownerChannelName": channel.name,
        "uploadDate": moment,
        "isShortsEligible": short,
        "externalVideoId": item.id,
        "canonicalUrl": f"{PUBLIC}/shorts/{item.id}" if short else f"{PUBLIC}/watch?v={item.id}",
    }
    if item.state not in {"live", "upcoming"}:
        microformat["lengthSeconds"] = str(item.seconds)
    if item.likes is not None:
        microformat["likeCount"] = str(item.likes)
    if item.state in {"live", "upcoming"}:
        microformat["liveBroadcastDetails"] = {"isLiveNow": item.state == "live", "startTimestamp": moment}
    elif item.tab == "streams":
        ended = datetime.fromtimestamp(item.published + item.seconds, UTC).isoformat()
        microformat["liveBroadcastDetails"] = {"isLiveNow": False, "startTimestamp": moment, "endTimestamp": ended}
    return {
        "playabilityStatus": {"status": "UNPLAYABLE" if item.state == "members" else "OK"},
        "videoDetails": {"videoId": item.id},
        "microformat": {"playerMicroformatRenderer": microformat},
    }


def bot_check() -> Node:
    """Build the response of ``player`` that requires a bot check."""
    reason = "Sign in to confirm you’re not a bot"
    return {"responseContext": {}, "playabilityStatus": {"status": "LOGIN_REQUIRED", "reason": reason}}


def resolved(channel: Channel, url: str) -> Node:
    """Build the API response that resolves a URL to a channel's id."""
    web = linked(url, "CHANNEL") | {"apiUrl": "/youtubei/v1/browse"}
    endpoint = command("resolve", web=web, browseEndpoint={"browseId": channel.id, "params": "EgC4AQDyBgQKAjIA"})
    endpoint["commandMetadata"]["resolveUrlCommandMetadata"] = {"isVanityUrl": True}
    return {"responseContext": answer_context("", heavy=False), "endpoint": endpoint}


def redirected(url: str) -> Node:
    """Build the API response for a URL that redirects to ``url``."""
    endpoint = command("resolve", web=linked(url, "UNKNOWN", 83_769, api=False), urlEndpoint={"url": url})
    endpoint["commandMetadata"]["resolveUrlCommandMetadata"] = {"isVanityUrl": True}
    return {"responseContext": answer_context("", heavy=False), "endpoint": endpoint}


def refused(code: int, message: str, status: str) -> Node:
    """Build the error response of an API call."""
    error = {"message": message, "domain": "global", "reason": status.lower()}
    return {"error": {"code": code, "message": message, "errors": [error], "status": status}}


def alert(channel: str, words: str, kind: str = "ERROR") -> Node:
    """Build the data of a page whose channel is unavailable, which contains an alert instead of content."""
    picture = {"thumbnails": [{"url": "https://yt3.ggpht.com/a/default-user=s100", "width": 100, "height": 100}]}
    return {
        "responseContext": answer_context(channel, heavy=False),
        "header": {"c4TabbedHeaderRenderer": {"channelId": channel, "avatar": picture, "trackingParams": mark(words)}},
        "trackingParams": mark(words),
        "alerts": [{"alertRenderer": {"type": kind, "text": simple(words)}}],
    }


def age_gate(channel: Channel) -> Node:
    """Build the age gate that is shown instead of an age-restricted channel."""
    gate = {
        "channelTitle": channel.name,
        "avatar": {"thumbnails": [{"url": channel.avatar, "width": 144, "height": 144}]},
        "header": simple("Sign in to view this channel"),
        "mainText": {"runs": [{"text": "This channel may have inappropriate content."}]},
    }
    content = {"sectionListRenderer": {"contents": [{"channelAgeGateRenderer": gate}], "trackingParams": mark("gate")}}
    tab = {"tabRenderer": {"selected": True, "content": content, "trackingParams": mark("tab")}}
    return {
        "responseContext": answer_context(channel.id, heavy=False),
        "contents": {"twoColumnBrowseResultsRenderer": {"tabs": [tab]}},
        "trackingParams": mark("page", channel.id),
    }


def topic(channel: Channel, home: Node) -> Node:
    """Build the page of a generated channel for a game or sport. Such a page has a special header and no metadata."""
    url = f"/channel/{channel.id}/featured"
    tab = {
        "tabRenderer": {
            "endpoint": command("home", web=linked(url)),
            "title": "Home",
            "selected": True,
            "content": home,
        }
    }
    data: Node = {
        "responseContext": answer_context(channel.id, heavy=False),
        "contents": {"twoColumnBrowseResultsRenderer": {"tabs": [tab]}},
        "trackingParams": mark("page", channel.id),
    }
    if channel.kind == "game":
        box = {"thumbnails": [{"url": channel.avatar, "width": 288, "height": 384}]}
        shown = {"type": "INTERACTIVE_TABBED_HEADER_RENDERER_TYPE_GAMING", "title": simple(channel.name), "boxArt": box}
        data["header"] = {"interactiveTabbedHeaderRenderer": shown | {"description": simple(channel.description)}}
        canonical = {"urlCanonical": f"{PUBLIC}/channel/{channel.id}", "availableCountries": list(channel.codes)}
        data["microformat"] = {"microformatDataRenderer": canonical | {"familySafe": channel.safe}}
        return data
    words, _ = subscribers(channel)
    subscribe = {"buttonRenderer": {"navigationEndpoint": {"subscribeEndpoint": {"channelId": channel.id}}}}
    shown = {
        "title": simple(channel.name),
        "avatar": {"thumbnails": [{"url": channel.avatar.removeprefix("https:"), "width": 240, "height": 240}]},
        "subtitle": simple(words),
        "subscribeButton": subscribe | {"subscribeButtonRenderer": {"channelId": channel.id}},
    }
    data["header"] = {
        "carouselHeaderRenderer": {"contents": [{"carouselItemRenderer": {}}, {"topicChannelDetailsRenderer": shown}]}
    }
    return data


def appended(browse: str, rows: list[Node], *, place: str = "onResponseReceivedActions", heavy: bool = True) -> Node:
    """Build the API response that contains rows, such as the next page of a list."""
    added = {"continuationItems": rows, "targetId": f"browse-feed{browse}"}
    return {
        "responseContext": answer_context(browse, len(rows), heavy=heavy),
        "trackingParams": mark("more", browse),
        place: [command("append", appendContinuationItemsAction=added)],
    }


def opened_about(channel: Channel) -> Node:
    """Build the object that contains the about panel in the data of the separate about page."""
    section = {"itemSectionRenderer": {"contents": [about_panel(channel)]}}
    panel = {"engagementPanelSectionListRenderer": {"content": {"sectionListRenderer": {"contents": [section]}}}}
    return command("about", showEngagementPanelEndpoint={"engagementPanel": panel})


def person(channel: Channel) -> Node:
    """Build the linked data of a channel's page, which describes the channel."""
    _, number = subscribers(channel)
    main: Node = {
        "@type": "Person",
        "name": channel.name,
        "alternateName": f"@{channel.handle}" if channel.handle else "",
        "url": f"{PUBLIC}/channel/{channel.id}",
        "image": channel.avatar,
        "description": channel.description,
        "sameAs": list(channel.links),
    }
    if number is not None:
        counted = {"@type": "InteractionCounter", "userInteractionCount": str(number)}
        main["interactionStatistic"] = [counted | {"interactionType": "https://schema.org/FollowAction"}]
    return {"@context": "https://schema.org", "@type": "ProfilePage", "mainEntity": main}


CONSENT = (
    b"<!DOCTYPE html><html lang=en><title>Before you continue to YouTube</title><body>"
    b'<form action="https://consent.youtube.com/save" method="POST"><button>Reject all</button></form></body></html>'
)
TRAFFIC = (
    b'<html><head><title>https://www.youtube.com/</title></head><body><form id="captcha-form" action="index">'
    b"<div>Our systems have detected unusual traffic from your computer network.</div></form></body></html>"
)
NOT_FOUND = (
    b"<!DOCTYPE html><html lang=en><title>Error 404 (Not Found)!!1</title>"
    b"<p><b>404.</b> <ins>That's an error.</ins></html>"
)
