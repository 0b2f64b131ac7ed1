"""Video site: reads the channel itself from all kinds of page headers, and both layouts of its about panel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from crawler.platforms.videosite.item import ORIGIN, VIEWS, node_text, rows_of
from crawler.platforms.videosite.schema import CHANNEL_ID
from crawler.reading.json import dicts, dig, find_all, nonempty_strings
from crawler.reading.values import absolute_url, count, flag, stated_count, stated_day, text

SUBSCRIBERS, VIDEOS = "subscribers?", "videos?"
BADGES = {"CHECK_CIRCLE_FILLED", "AUDIO_BADGE"}
"""Icons that mark a channel as verified or as an artist. Labels are not compared, because they are translated."""
BADGE_STYLES = {"BADGE_STYLE_TYPE_VERIFIED", "BADGE_STYLE_TYPE_VERIFIED_ARTIST"}


def blank(channel: str = "", *, handle: str = "", name: str = "") -> dict[str, Any]:
    """Build a channel with at most an id, a handle and a name. All other fields are empty."""
    return {
        "account_creation_date": None,
        "account_creation_date_text": "",
        "available_country_codes": [],
        "banner_image": "",
        "biography": "",
        "content_count": None,
        "display_name": name,
        "external_links": [],
        "follower_count": None,
        "is_family_safe": None,
        "keywords": "",
        "location": "",
        "privacy_status": "public",
        "profile_id": channel,
        "profile_image": "",
        "profile_link": link_of(handle, channel),
        "subscriber_count_text": "",
        "total_views": None,
        "username": handle,
        "verification_status": None,
    }


def profile_of(data: Any, person: Any) -> dict[str, Any]:
    """Build the channel from a page's data and from the page's linked data (``person``)."""
    metadata = dig(data, "metadata", "channelMetadataRenderer")
    microformat = dig(data, "microformat", "microformatDataRenderer")
    header = _header(data)
    url = text(dig(metadata, "vanityChannelUrl"))
    name = handle_in(url) or header["username"] or handle_in(text(dig(person, "alternateName")))
    channel = channel_id(data, person)
    subscribers = header["subscriber_count_text"]
    safe = flag(dig(metadata, "isFamilySafe"))
    codes = nonempty_strings(dig(metadata, "availableCountryCodes")) or nonempty_strings(
        dig(microformat, "availableCountries")
    )
    return {
        **blank(channel, handle=name),
        "available_country_codes": sorted(set(codes)),
        "banner_image": absolute_url(ORIGIN, header["banner_image"]),
        "biography": text(dig(metadata, "description")) or header["biography"] or text(dig(person, "description")),
        "content_count": header["content_count"],
        "display_name": text(dig(metadata, "title")) or header["display_name"] or text(dig(person, "name")),
        "follower_count": first(
            stated_count(subscribers, SUBSCRIBERS),
            count(dig(person, "interactionStatistic", 0, "userInteractionCount")),
        ),
        "is_family_safe": flag(dig(microformat, "familySafe")) if safe is None else safe,
        "keywords": text(dig(metadata, "keywords")),
        "profile_image": absolute_url(
            ORIGIN, _largest_url(dig(metadata, "avatar")) or header["image"] or dig(person, "image")
        ),
        "profile_link": _legacy_link(url) or link_of(name, channel),
        "subscriber_count_text": subscribers,
        "verification_status": header["verified"],
    }


def channel_id(data: Any, person: Any = None) -> str:
    """Return the id of the channel that a response belongs to, "" if the response has no such id."""
    candidates = [
        dig(data, "metadata", "channelMetadataRenderer", "externalId"),
        dig(data, "header", "c4TabbedHeaderRenderer", "channelId"),
        text(dig(data, "microformat", "microformatDataRenderer", "urlCanonical")).rpartition("/")[2],
        *find_all(dig(data, "header", "carouselHeaderRenderer"), "channelId"),
        text(dig(person, "url")).rpartition("/")[2],
        browse_id(data),
    ]
    return next((str(each) for each in candidates if re.fullmatch(CHANNEL_ID, text(each))), "")


def browse_id(data: Any) -> str:
    """Return the requested id, as the response repeats it: a channel's id, or "VL" followed by a playlist's id."""
    tracked = dicts(dig(data, "responseContext", "serviceTrackingParams"))
    params = (param for each in tracked for param in dicts(each.get("params")))
    return next((text(param.get("value")) for param in params if param.get("key") == "browse_id"), "")


def handle_in(url: str) -> str:
    """Return the handle in a URL or in a text like "@name", without "@"; "" without a handle.

    >>> handle_in("http://www.youtube.com/@a.b"), handle_in("@a"), handle_in("http://www.youtube.com/channel/UC1")
    ('a.b', 'a', '')
    """
    path = unquote(url.partition("?")[0]) if "/" in url else url
    last = path.rpartition("/")[2].strip()
    return last.removeprefix("@") if last.startswith("@") else ""


def link_of(handle: str, channel: str) -> str:
    """Return the channel's URL: with the handle if the channel has one, else with the id."""
    return f"{ORIGIN}/@{quote(handle)}" if handle else f"{ORIGIN}/channel/{channel}" if channel else ""


def _legacy_link(url: str) -> str:
    """Return the URL of a channel that has a legacy name instead of a handle, "" for other URLs."""
    path = urlsplit(url).path
    return f"{ORIGIN}{path}" if re.fullmatch(r"/(?:c|user)/[^/]+", path) else ""


def first(*values: Any) -> Any:
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), None)


def _header(data: Any) -> dict[str, Any]:
    """Return the channel's fields from the page header, which may be of any known kind."""
    header = dig(data, "header")
    page = dig(header, "pageHeaderRenderer", "content", "pageHeaderViewModel")
    tabbed = dig(header, "c4TabbedHeaderRenderer")
    if isinstance(page, dict):
        return _page_header(page)
    if isinstance(tabbed, dict):
        return _tabbed_header(tabbed)
    return _other_header(header, data)


def has_unread_numbers(data: Any) -> bool:
    """Whether the page header states numbers of subscribers or items that could not be read, as in other languages."""
    header = _header(data)
    subscribers = header["subscriber_count_text"] or header.get("subtitle", "")
    videos = header.get("content_count_text", "")
    return (bool(subscribers) and stated_count(subscribers, SUBSCRIBERS) is None) or (
        bool(videos) and stated_count(videos, VIDEOS) is None
    )


def _page_header(page: dict[str, Any]) -> dict[str, Any]:
    title = dig(page, "title", "dynamicTextViewModel", "text")
    rows = dicts(dig(page, "metadata", "contentMetadataViewModel", "metadataRows"))
    parts = [[node_text(part.get("text")) for part in dicts(row.get("metadataParts"))] for row in rows]
    handles = [part for row in parts for part in row if part.startswith("@")]
    videos = [part for row in parts for part in row if re.search(r"\bv[ií]d[eé]os?\b", part, re.IGNORECASE)]
    named = [part for row in parts for part in row if stated_count(part, SUBSCRIBERS) is not None]
    # If the number of subscribers has no English label, it is the other part in the row with the number of videos.
    candidates = [row for row in parts if handles[:1] != row[:1] and set(row) & set(videos)]
    subscribers = named or [part for row in candidates for part in row if part not in videos]
    icons = [text(dig(each, "imageName")) for each in find_all(dig(title, "attachmentRuns"), "clientResource")]
    return {
        "username": handle_in(handles[0]) if handles else "",
        "display_name": node_text(title),
        "biography": "",
        "image": _largest_url(dig(page, "image", "decoratedAvatarViewModel", "avatar", "avatarViewModel", "image")),
        "banner_image": _largest_url(dig(page, "banner", "imageBannerViewModel", "image")),
        "subscriber_count_text": subscribers[0] if subscribers else "",
        "content_count": stated_count(videos[0], VIDEOS) if videos else None,
        "content_count_text": videos[0] if videos else "",
        "verified": bool(BADGES.intersection(icons)),
    }


def _tabbed_header(tabbed: dict[str, Any]) -> dict[str, Any]:
    styles = {text(dig(badge, "metadataBadgeRenderer", "style")) for badge in dicts(tabbed.get("badges"))}
    return {
        "username": handle_in(node_text(tabbed.get("channelHandleText"))),
        "display_name": node_text(tabbed.get("title")),
        "biography": "",
        "image": _largest_url(tabbed.get("avatar")),
        "banner_image": _largest_url(tabbed.get("banner")),
        "subscriber_count_text": node_text(tabbed.get("subscriberCountText")),
        "content_count": stated_count(node_text(tabbed.get("videosCountText")), VIDEOS),
        "content_count_text": node_text(tabbed.get("videosCountText")),
        "verified": bool(BADGE_STYLES & styles),
    }


def _other_header(header: Any, data: Any) -> dict[str, Any]:
    """Return the fields from the page header of a generated channel (games, sports), or from the age gate."""
    game = dig(header, "interactiveTabbedHeaderRenderer")
    topics = (
        dig(each, "topicChannelDetailsRenderer") for each in dicts(dig(header, "carouselHeaderRenderer", "contents"))
    )
    topic = next((each for each in topics if isinstance(each, dict)), None)
    gate = age_gate(data)
    subscribers = node_text(dig(topic, "subtitle"))
    return {
        "username": "",
        "display_name": node_text(dig(game, "title"))
        or node_text(dig(topic, "title"))
        or node_text(dig(gate, "channelTitle")),
        "biography": node_text(dig(game, "description")).strip(),
        "image": _largest_url(dig(game, "boxArt"))
        or _largest_url(dig(topic, "avatar"))
        or _largest_url(dig(gate, "avatar")),
        "banner_image": _largest_url(dig(game, "banner")),
        "subscriber_count_text": subscribers if stated_count(subscribers, SUBSCRIBERS) is not None else "",
        "subtitle": subscribers if re.search(r"\d", subscribers) else "",
        "content_count": None,
        "verified": None,  # none of these headers has a place for the badge
    }


def age_gate(data: Any) -> dict[str, Any] | None:
    """Return the age gate that replaces the content of an age-restricted channel, None without a gate."""
    tabs = dig(data, "contents", "twoColumnBrowseResultsRenderer", "tabs")
    contents = dig(tabs, 0, "tabRenderer", "content", "sectionListRenderer", "contents")
    gates = (each.get("channelAgeGateRenderer") for each in dicts(contents))
    return next((gate for gate in gates if isinstance(gate, dict)), None)


def _largest_url(image: Any) -> str:
    """Return the URL of an image's largest size, which is listed last."""
    return text(dig(image, "thumbnails", -1, "url")) or text(dig(image, "sources", -1, "url"))


# The about panel

_OLDER_PANEL = "channelAboutFullMetadataRenderer"
"""Key of the about panel in the layout until 2023. There the panel is the only row in a separate tab."""


def panel_of(data: Any) -> dict[str, Any]:
    """Return a response's about panel in the current layout or in the layout until 2023; {} without a panel.

    The current layout is not searched for in the page's contents: shelves there have the panels of other channels.
    """
    actions = [dig(data, "onResponseReceivedEndpoints"), dig(data, "onResponseReceivedActions")]
    tabs = dicts(dig(data, "contents", "twoColumnBrowseResultsRenderer", "tabs"))
    panels = (
        *find_all(actions, "aboutChannelViewModel"),
        *(row.get(_OLDER_PANEL) for tab in tabs for _, row in rows_of(dig(tab, "tabRenderer", "content"))),
        dig(data, "aboutChannelViewModel"),
    )
    return next((panel for panel in panels if isinstance(panel, dict)), {})


def about_of(panel: dict[str, Any]) -> dict[str, Any]:
    """Return the channel's fields that the about panel has. Missing fields are left out."""
    joined = stated_day(node_text(panel.get("joinedDateText")))
    subscribers = node_text(panel.get("subscriberCountText"))
    about = {
        "external_links": list(dict.fromkeys(_links(panel))),
        "location": node_text(panel.get("country")),
        "total_views": stated_count(node_text(panel.get("viewCountText")), VIEWS),
        "content_count": stated_count(node_text(panel.get("videoCountText")), VIDEOS),
        "subscriber_count_text": subscribers,
        "follower_count": stated_count(subscribers, SUBSCRIBERS),
        **(creation(joined) if joined else {}),
    }
    return {key: value for key, value in about.items() if value not in (None, "", [])}


def creation(moment: datetime) -> dict[str, Any]:
    """Return both fields of a channel's creation date from one time.

    If they came from two sources, they could disagree near midnight.
    """
    return {
        "account_creation_date": int(moment.timestamp()),
        "account_creation_date_text": moment.astimezone(UTC).date().isoformat(),
    }


def _links(panel: dict[str, Any]) -> Iterator[str]:
    for each in dicts(panel.get("links")):
        link = dig(each, "channelExternalLinkViewModel", "link")
        target = dig(link, "commandRuns", 0, "onTap", "innertubeCommand", "urlEndpoint", "url")
        shown = node_text(link).strip()
        yield from filter(None, [unwrapped(text(target)) or (f"https://{shown}" if shown else "")])
    for each in dicts(panel.get("primaryLinks")):
        yield from filter(None, [unwrapped(text(dig(each, "navigationEndpoint", "urlEndpoint", "url")))])


def unwrapped(url: str) -> str:
    """Return the URL that a link leads to, without the platform's redirect, because the redirect's token expires.

    >>> unwrapped("https://www.youtube.com/redirect?event=x&redir_token=y&q=https%3A%2F%2Fa.example%2Fb%3Fc%3Dd")
    'https://a.example/b?c=d'
    >>> unwrapped("https://music.youtube.com/channel/UC1"), unwrapped("")
    ('https://music.youtube.com/channel/UC1', '')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.path == "/redirect":
        return parse_qs(parts.query).get("q", [""])[0]
    return url if parts.scheme in {"http", "https"} else ""
