"""The simulated video site's channel pages: header, tabs, metadata and the rest of the page."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import orjson

from crawler.sandbox.videosite.header import header
from crawler.sandbox.videosite.parts import (
    Node,
    accessibility_label,
    button,
    command,
    linked,
    mark,
    posted,
    runs,
    simple,
    uuid,
)
from crawler.sandbox.videosite.topbar import topbar

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel

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
    values = [("browse_id", browse), ("browse_id_prefix", ""), ("logged_in", "0")]
    params = [{"key": key, "value": value} for key, value in values]
    node: Node = {"serviceTrackingParams": [{"service": "GFEEDBACK", "params": params}]}
    if heavy:
        client = [{"key": "c", "value": "WEB"}, {"key": "cver", "value": VERSION}, {"key": "hl", "value": "en"}]
        node |= {
            "visitorData": mark("visitor", *of, size=40),
            "serviceTrackingParams": [
                {"service": "GFEEDBACK", "params": [{"key": "route", "value": "channel.videos"}, *params]},
                {"service": "GOOGLE_HELP", "params": params[:2]},
                {"service": "CSI", "params": client},
            ],
            "maxAgeSeconds": 300,
            "mainAppWebResponseContext": {"loggedOut": True, "trackingParam": mark("main", *of, size=60)},
            "responseId": mark("response", *of),
            "webResponseContextExtensionData": {
                "webResponseContextPreloadData": {"preloadMessageNames": ["pageHeaderRenderer", "richGridRenderer"]},
                "hasDecorated": True,
            },
        }
    return node


def channel_data(channel: Channel, selected: str, content: Node, *, heavy: bool) -> Node:
    """Build the data of a channel's page with one tab open."""
    tabs = [_tab(channel, name, content if name == selected else None) for name in channel.tabs]
    tabs.append(
        {
            "expandableTabRenderer": {
                "endpoint": _tab_endpoint(channel, "search", "EgZzZWFyY2jyBgQKAloA"),
                "title": "Search",
                "selected": False,
            }
        }
    )
    data: Node = {
        "responseContext": answer_context(channel.id, channel.id, selected, heavy=heavy),
        "contents": {"twoColumnBrowseResultsRenderer": {"tabs": tabs}},
        "header": header(channel, heavy=heavy),
        "metadata": {"channelMetadataRenderer": _metadata(channel)},
        "trackingParams": mark("page", channel.id),
        "microformat": {"microformatDataRenderer": _microformat(channel)},
    }
    if heavy:
        data["topbar"] = topbar()
    return data


def _tab_endpoint(channel: Channel, name: str, params: str) -> Node:
    base = channel.path
    endpoint = {"browseId": channel.id, "params": params, "canonicalBaseUrl": base}
    return command(channel.id, name, web=linked(f"{base}/{name}"), browseEndpoint=endpoint)


def _tab(channel: Channel, name: str, content: Node | None) -> Node:
    title, params = TABS[name]
    node: Node = {
        "endpoint": _tab_endpoint(channel, name, params),
        "title": title,
        "trackingParams": mark("tab", channel.id, name),
    }
    if content is not None:
        node |= {"selected": True, "content": content}
    return {"tabRenderer": node}


def rich_grid(channel: Channel, tab: str, rows: list[Node], *, heavy: bool) -> Node:
    """Build the content of a tab in the format used since 2022."""
    grid: Node = {"contents": rows, "trackingParams": mark("grid", channel.id, tab)}
    if heavy:
        target = uuid(channel.id, tab)
        grid |= {"targetId": target, "style": "RICH_GRID_STYLE_SLIM", "header": _chips(channel, tab, target)}
    return {"richGridRenderer": grid}


def grid(channel: Channel, tab: str, rows: list[Node], *, heavy: bool) -> Node:
    """Build the content of a tab in the format used until 2022."""
    inner = {"items": rows, "trackingParams": mark("grid", channel.id), "targetId": f"browse-feed{channel.id}{tab}"}
    section = {"contents": [{"gridRenderer": inner}], "trackingParams": mark("section", channel.id)}
    node: Node = {"contents": [{"itemSectionRenderer": section}], "trackingParams": mark("list", channel.id)}
    if heavy:
        node |= {
            "disablePullToRefresh": True,
            "targetId": f"browse-feed{channel.id}{tab}",
            "subMenu": _sub_menu(channel, tab),
        }
    return {"sectionListRenderer": node}


def nothing(words: str, channel: Channel) -> Node:
    """Build the content of a tab without items."""
    message = {"messageRenderer": {"text": simple(words), "trackingParams": mark("message", channel.id)}}
    section = {"itemSectionRenderer": {"contents": [message], "trackingParams": mark("empty", channel.id)}}
    return {"sectionListRenderer": {"contents": [section], "trackingParams": mark("list", channel.id)}}


def home(channel: Channel) -> Node:
    """Build the content of the home tab. A shelf in it contains the token for another channel's about panel."""
    token = mark("about of another channel", channel.id, size=60)
    panel = {"continuationItemRenderer": {"continuationEndpoint": {"continuationCommand": {"token": token}}}}
    opened = command(channel.id, "shelf", showEngagementPanelEndpoint={"engagementPanel": panel})
    shelf = {
        "shelfRenderer": {
            "title": runs("For you"),
            "endpoint": opened,
            "content": {"horizontalListRenderer": {"items": []}},
        }
    }
    section = {"itemSectionRenderer": {"contents": [shelf], "trackingParams": mark("shelf", channel.id)}}
    return {"sectionListRenderer": {"contents": [section], "trackingParams": mark("home", channel.id)}}


def _chips(channel: Channel, tab: str, target: str) -> Node:
    def sort_command(order: str) -> Node:
        reload = command(order, showReloadUiCommand={"targetId": target})
        token = mark(channel.id, tab, order, size=60)
        return {"token": token, "request": "CONTINUATION_REQUEST_TYPE_BROWSE", "command": reload}

    orders = ("Latest", "Popular", "Oldest")
    if channel.shape == "lockup" and tab != "shorts":
        chips = [
            {
                "chipViewModel": {
                    "text": order,
                    "selected": order == "Latest",
                    "displayType": "CHIP_VIEW_MODEL_DISPLAY_TYPE_UNSPECIFIED",
                    "tapCommand": {
                        "innertubeCommand": command(
                            order, web=posted("browse"), continuationCommand=sort_command(order)
                        )
                    },
                    "accessibilityLabel": order,
                    "loggingDirectives": {"trackingParams": mark(order, channel.id), "visibility": {"types": "12"}},
                }
            }
            for order in orders
        ]
        return {"chipBarViewModel": {"chips": chips}}
    contents = [
        {
            "chipCloudChipRenderer": {
                "text": simple(order),
                "navigationEndpoint": command(order, web=posted("browse"), continuationCommand=sort_command(order)),
                "trackingParams": mark(order, channel.id),
                "isSelected": order == "Latest",
            }
        }
        for order in orders
    ]
    arrow = {
        "icon": {"iconType": "CHEVRON_RIGHT"},
        "tooltip": "Next",
        "accessibilityData": accessibility_label("Next")["accessibility"],
    }
    bar = {
        "contents": contents,
        "trackingParams": mark("chips", channel.id),
        "nextButton": button("STYLE_DEFAULT", "next", **arrow),
        "previousButton": button("STYLE_DEFAULT", "previous", **arrow),
        "styleType": "FEED_FILTER_CHIP_BAR_STYLE_TYPE_CHANNEL_PAGE_GRID",
    }
    return {"feedFilterChipBarRenderer": bar}


def _sub_menu(channel: Channel, tab: str) -> Node:
    def line(title: str, *, key: str) -> Node:
        return {
            key: _tab_endpoint(channel, tab, mark(title, size=9)),
            "title": title,
            "selected": title in {"Uploads", "Date"},
        }

    orders = [line(title, key="navigationEndpoint") | {"trackingParams": mark(title)} for title in ("Popular", "Date")]
    sort = {"subMenuItems": orders, "title": "Sort by", "icon": {"iconType": "SORT"}, "trackingParams": mark("sort")}
    kinds = [line(title, key="endpoint") for title in ("Uploads", "Past live streams")]
    setting = {"sortFilterSubMenuRenderer": sort | accessibility_label("Sort by")}
    return {"channelSubMenuRenderer": {"contentTypeSubMenuItems": kinds, "sortSetting": setting}}


def _metadata(channel: Channel) -> Node:
    page = f"{PUBLIC}/channel/{channel.id}"
    return {
        "title": channel.name,
        "description": channel.description,
        "rssUrl": f"{PUBLIC}/feeds/videos.xml?channel_id={channel.id}",
        "externalId": channel.id,
        "keywords": channel.keywords,
        "ownerUrls": [channel.vanity],
        "avatar": {"thumbnails": [{"url": channel.avatar, "width": 900, "height": 900}]},
        "channelUrl": page,
        "isFamilySafe": channel.safe,
        "facebookProfileId": channel.name,
        "doubleclickTrackingUsername": channel.name,
        "availableCountryCodes": shuffled(channel),
        "androidDeepLink": f"android-app://com.google.android.youtube/http/www.youtube.com/channel/{channel.id}",
        "androidAppindexingLink": f"android-app://com.google.android.youtube/http/www.youtube.com/channel/{channel.id}",
        "iosAppindexingLink": f"ios-app://544007664/vnd.youtube/www.youtube.com/channel/{channel.id}",
        "vanityChannelUrl": channel.vanity,
    }


def shuffled(channel: Channel) -> list[str]:
    """Return the country codes in random order, because real responses do not sort them."""
    codes = list(channel.codes)
    random.Random(channel.id).shuffle(codes)  # noqa: S311  # an invented order
    return codes


def _microformat(channel: Channel) -> Node:
    page, short = f"{PUBLIC}/channel/{channel.id}", channel.description.replace("\n", " ")[:150]
    deep = f"vnd.youtube://www.youtube.com/channel/{channel.id}"
    return {
        "urlCanonical": page,
        "title": channel.name,
        "description": short + ("..." if len(short) == 150 else ""),
        "thumbnail": {"thumbnails": [{"url": channel.avatar, "width": 200, "height": 200}]},
        "siteName": "YouTube",
        "appName": "YouTube",
        "androidPackage": "com.google.android.youtube",
        "iosAppStoreId": "544007664",
        "iosAppArguments": page,
        "ogType": "yt-fb-app:channel",
        "urlApplinksWeb": f"{page}?feature=applinks",
        "urlApplinksIos": f"{deep}?feature=applinks",
        "urlApplinksAndroid": f"{deep}?feature=applinks",
        "urlTwitterIos": f"{deep}?feature=twitter-deep-link",
        "urlTwitterAndroid": f"{deep}?feature=twitter-deep-link",
        "twitterCardType": "summary",
        "twitterSiteHandle": "@YouTube",
        "schemaDotOrgType": "http://schema.org/http://schema.org/YoutubeChannelV2",
        "noindex": False,
        "unlisted": False,
        "familySafe": channel.safe,
        "tags": [word.strip('"') for word in channel.keywords.split()],
        "availableCountries": shuffled(channel),
        "linkAlternates": [{"hrefUrl": f"https://m.youtube.com/channel/{channel.id}"}],
    }


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
