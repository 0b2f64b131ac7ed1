"""Video site: builds a channel's profile from the headers of the different pages, and from the about panel."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from crawler.platforms.model import empty
from crawler.platforms.videosite.item import ORIGIN, VIEWS, handle_in
from crawler.platforms.videosite.link import CHANNEL_ID
from crawler.platforms.videosite.payload import (
    AgeGate,
    ChannelHeader,
    ChannelMetadata,
    Game,
    Header,
    Link,
    Page,
    Panel,
    Topic,
    flat,
)
from crawler.platforms.videosite.schema import Profile
from crawler.reading.contract import EMPTY
from crawler.reading.json import dig
from crawler.reading.values import absolute_url, count, stated_count, stated_day, text

SUBSCRIBERS, VIDEOS = "subscribers?", "videos?"
_VIDEOS_WORD = re.compile(r"\bv[ií]d[eé]os?\b", re.IGNORECASE)
"""Matches the word "videos" in several languages, which follows the number of videos."""
_FOLLOWERS = "userInteractionCount"
BADGES = {"CHECK_CIRCLE_FILLED", "AUDIO_BADGE"}
"""Icons that mark a channel as verified or as an artist. The icons' labels are not used, because they are
translated."""


def blank(channel: str = "", *, handle: str = "", name: str = "") -> dict[str, Any]:
    """Build a channel with at most an id, a handle and a name. All other fields except ``privacy_status`` are empty."""
    return {
        **empty(Profile),
        "display_name": name,
        "privacy_status": "public",
        "profile_id": channel,
        "profile_link": link_of(handle, channel),
        "username": handle,
    }


def profile_of(page: Page, person: Any, channel: str) -> dict[str, Any]:
    """Build the channel from its id, from a page's data and from the page's linked data (``person``).

    Each field has the first value that is not empty: of the metadata, of the header or the age gate, of the linked
    data, and of the page's other parts.
    """
    header, gate = page.header, age_gate(page)
    known: dict[str, Any] = {}
    for source in (
        _of_metadata(page.metadata) if page.metadata else {},
        _of_channel_header(header.channel) if header and header.channel else {},
        _of_game(header.game) if header and header.game else {},
        _of_topic(header.topics[0]) if header and header.topics else {},
        {"display_name": gate.title, "profile_image": absolute_url(ORIGIN, gate.image)} if gate else {},
        _of_person(person) if person else {},
        {"available_country_codes": page.countries, "is_family_safe": page.safe},
    ):
        for key, value in source.items():
            if value not in EMPTY:
                known.setdefault(key, value)
    countries = sorted(set(known.get("available_country_codes", ())))
    return {**blank(channel, handle=known.get("username", "")), **known, "available_country_codes": countries}


def _of_metadata(metadata: ChannelMetadata) -> dict[str, Any]:
    url = metadata.vanity_url or ""
    return {
        "available_country_codes": metadata.countries,
        "biography": (metadata.biography or "").strip(),
        "display_name": metadata.name,
        "is_family_safe": metadata.safe,
        "keywords": metadata.keywords,
        "profile_image": absolute_url(ORIGIN, metadata.image),
        "profile_link": _legacy_link(url),
        "username": handle_in(url),
    }


def _of_channel_header(header: ChannelHeader) -> dict[str, Any]:
    """Return the fields in the header of an ordinary channel.

    The header of a destination has no place for a badge. Without its title, or with a badge in the spoken title only,
    it is unknown whether the channel has a badge.
    """
    handle, subscribers, videos = _header_texts(header)
    is_verified = any(BADGES.intersection(each.icons) for each in header.attachments)
    is_known = header.lines and header.title and (header.attachments or not header.spoken_title)
    return {
        "banner_image": absolute_url(ORIGIN, header.banner and header.banner.image),
        "content_count": stated_count(videos, VIDEOS),
        "display_name": header.title,
        "follower_count": stated_count(subscribers, SUBSCRIBERS),
        "subscriber_count_text": subscribers,
        "username": handle_in(handle),
        "verification_status": is_verified if is_known else None,
    }


def _of_game(game: Game) -> dict[str, Any]:
    return {
        "banner_image": absolute_url(ORIGIN, game.banner),
        "biography": str(game.description or "").strip(),
        "display_name": str(game.title or ""),
        "profile_image": absolute_url(ORIGIN, game.image),
    }


def _of_topic(topic: Topic) -> dict[str, Any]:
    subtitle = str(topic.subtitle or "")
    subscribers = stated_count(subtitle, SUBSCRIBERS)
    return {
        "display_name": str(topic.title or ""),
        "follower_count": subscribers,
        "profile_image": absolute_url(ORIGIN, topic.image),
        "subscriber_count_text": "" if subscribers is None else subtitle,
    }


def _of_person(person: Any) -> dict[str, Any]:
    """Return the fields in the page's linked data."""
    return {
        "biography": text(dig(person, "description")).strip(),
        "display_name": text(dig(person, "name")),
        "follower_count": count(dig(person, "interactionStatistic", 0, _FOLLOWERS)),
        "profile_image": absolute_url(ORIGIN, dig(person, "image")),
        "username": handle_in(text(dig(person, "alternateName"))),
    }


def channel_ids(page: Page, person: Any) -> list[str]:
    """Return the ids of the channel that a page belongs to, as its parts state them, without repetitions.

    All parts of a page state the same id.
    """
    topics = [each.id for each in page.header.topics] if page.header else []
    urls = [(url or "").rpartition("/")[2] for url in (page.canonical_url, text(dig(person, "url")))]
    stated = (page.metadata and page.metadata.id, urls[0], *topics, urls[1], page.browse_id)
    return list(dict.fromkeys(each for each in stated if each and CHANNEL_ID.matches(each)))


def link_of(handle: str, channel: str) -> str:
    """Return the channel's URL: with its handle if it has one, else with its id. "" if both are unknown."""
    return f"{ORIGIN}/@{quote(handle)}" if handle else f"{ORIGIN}/channel/{channel}" if channel else ""


def _legacy_link(url: str) -> str:
    """Return the URL of a channel that has a legacy name instead of a handle, "" for other URLs."""
    path = urlsplit(url).path
    return f"{ORIGIN}{path}" if re.fullmatch(r"/(?:c|user)/[^/]+", path) else ""


def _header_texts(header: ChannelHeader) -> tuple[str, str, str]:
    """Return the handle, and the texts with the numbers of subscribers and of videos. "" for a missing text.

    The texts are recognised by their words, because the lines have no fixed positions.
    """
    lines = [line.parts for line in header.lines]
    parts = [part for line in lines for part in line]
    handles = [part for part in parts if part.startswith("@")]
    videos = [part for part in parts if _VIDEOS_WORD.search(part)]
    named = [part for part in parts if stated_count(part, SUBSCRIBERS) is not None]
    # If no text has the English label "subscribers", use the other text in the line with the number of videos.
    candidates = [line for line in lines if handles[:1] != line[:1] and set(line) & set(videos)]
    subscribers = named or [part for line in candidates for part in line if part not in videos]
    return tuple("".join(found[:1]) for found in (handles, subscribers, videos))  # type: ignore[return-value]  # three


def has_unread_numbers(header: Header | None) -> bool:
    """Whether the header has a text about subscribers or items that was not read, such as in an unknown language."""
    if header is None or header.channel is None:
        subtitles = [str(each.subtitle or "") for each in header.topics] if header else []
        return any(re.search(r"\d", each) and stated_count(each, SUBSCRIBERS) is None for each in subtitles)
    _, subscribers, videos = _header_texts(header.channel)
    is_read = stated_count(subscribers, SUBSCRIBERS) is not None
    if is_read and stated_count(videos, VIDEOS) is not None:
        return False  # another number in the header, such as a number of listeners, is not a field of the record
    is_worded = bool(subscribers) and not is_read  # "Keine Abonnenten"
    texts = (part for line in header.channel.lines for part in line.parts)
    numbers = (part for part in texts if "@" not in part and re.search(r"\d", part))
    return is_worded or any(stated_count(each, f"(?:{SUBSCRIBERS}|{VIDEOS})") is None for each in numbers)


def age_gate(page: Page) -> AgeGate | None:
    """Return the age gate that replaces the content of an age-restricted channel, None if there is none."""
    contents = [each.content for each in page.tabs if each.content] if page.header is None else []
    gates = (placed.row.age_gate for content in contents[:1] for placed in flat(content))
    return next((gate for gate in gates if gate is not None), None)


# The about panel


def about_of(panel: Panel) -> dict[str, Any]:
    """Return the channel's fields in the about panel. Fields that the panel lacks are left out."""
    joined = stated_day(panel.joined or "")
    about = {
        "external_links": list(dict.fromkeys(filter(None, map(_link, panel.links)))),
        "location": panel.country or "",
        "total_views": stated_count(panel.views, VIEWS),
        "content_count": stated_count(panel.videos, VIDEOS),
        "subscriber_count_text": panel.subscribers or "",
        "follower_count": stated_count(panel.subscribers, SUBSCRIBERS),
        **(creation(joined) if joined else {}),
    }
    return {key: value for key, value in about.items() if value not in (None, "", [])}


def creation(moment: datetime) -> dict[str, Any]:
    """Return both fields of a channel's creation date from the same time.

    If the two fields were taken from two sources, they could disagree near midnight.
    """
    return {
        "account_creation_date": int(moment.timestamp()),
        "account_creation_date_text": moment.astimezone(UTC).date().isoformat(),
    }


def _link(link: Link) -> str:
    shown = (link.text or "").strip()
    return unwrapped(link.url or "") or (f"https://{shown}" if shown else "")


def unwrapped(url: str) -> str:
    """Return a link's URL without the platform's redirect, whose token expires. If it is not an HTTP URL, return "".

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
