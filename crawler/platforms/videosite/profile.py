"""Video site: builds a channel's profile from the headers of the different pages, and from the about panel."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from crawler.platforms.model import empty
from crawler.platforms.videosite.item import ORIGIN, VIEWS, first
from crawler.platforms.videosite.payload import Channel, OtherChannel, OtherPage
from crawler.platforms.videosite.payload_rows import AgeGate, Link, Panel, flat
from crawler.platforms.videosite.schema import CHANNEL_ID, Profile
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


def profile_of(page: Channel | OtherChannel | OtherPage, person: Any) -> dict[str, Any]:
    """Build the channel from a page's data and from the page's linked data (``person``)."""
    if isinstance(page, Channel):
        return _channel(page, person)
    if isinstance(page, OtherChannel):
        return _other_channel(page)
    return _person(person, channel_id(page, person))


def _channel(page: Channel, person: Any) -> dict[str, Any]:
    url = page.vanity_url or ""
    handle, subscribers, videos = _header_texts(page)
    name = handle_in(url) or handle_in(handle)
    channel = channel_id(page, person)
    return {
        **blank(channel, handle=name),
        "available_country_codes": sorted(set(page.countries)),
        "banner_image": absolute_url(ORIGIN, page.banner and page.banner.image),
        "biography": page.biography or "",
        "content_count": stated_count(videos, VIDEOS),
        "display_name": page.name or page.title or "",
        "follower_count": first(
            (stated_count(subscribers, SUBSCRIBERS), count(dig(person, "interactionStatistic", 0, _FOLLOWERS)))
        ),
        "is_family_safe": page.safe,
        "keywords": page.keywords or "",
        "profile_image": absolute_url(ORIGIN, page.image),
        "profile_link": _legacy_link(url) or link_of(name, channel),
        "subscriber_count_text": subscribers,
        "verification_status": any(BADGES.intersection(each.icons) for each in page.attachments),
    }


def _other_channel(page: OtherChannel) -> dict[str, Any]:
    """Build a generated channel (games, sports) or an age-restricted channel. Pages of such channels show no badges."""
    game, topic, gate = page.game, next(iter(page.topics), None), age_gate(page)
    subtitle = _subtitle(page)
    subscribers = stated_count(subtitle, SUBSCRIBERS)
    name = str(game.title or "") if game else str(topic.title or "") if topic else (gate and gate.title)
    image = next((each.image for each in (game, topic, gate) if each is not None), None)
    return {
        **blank(channel_id(page), name=name or ""),
        "available_country_codes": sorted(set(page.countries)),
        "banner_image": absolute_url(ORIGIN, game and game.banner),
        "biography": str(game.description or "").strip() if game else "",
        "follower_count": subscribers,
        "is_family_safe": page.safe,
        "profile_image": absolute_url(ORIGIN, image),
        "subscriber_count_text": "" if subscribers is None else subtitle,
    }


def _person(person: Any, channel: str) -> dict[str, Any]:
    """Build the channel from the page's linked data alone."""
    return {
        **blank(channel, handle=handle_in(text(dig(person, "alternateName"))), name=text(dig(person, "name"))),
        "biography": text(dig(person, "description")),
        "follower_count": count(dig(person, "interactionStatistic", 0, _FOLLOWERS)),
        "profile_image": absolute_url(ORIGIN, dig(person, "image")),
    }


def channel_id(page: Channel | OtherChannel | OtherPage, person: Any = None) -> str:
    """Return the id of the channel that a response belongs to, "" if the response contains none."""
    stated = [page.id] if isinstance(page, Channel) else []
    topics = [each.id for each in page.topics] if isinstance(page, OtherChannel) else []
    urls = [(url or "").rpartition("/")[2] for url in (page.canonical_url, text(dig(person, "url")))]
    candidates = (*stated, urls[0], *topics, urls[1], page.browse_id)
    return next((each for each in candidates if each and re.fullmatch(CHANNEL_ID, each)), "")


def handle_in(url: str) -> str:
    """Return the handle in a URL or in a text like "@name", without "@"; "" if there is none.

    >>> handle_in("http://www.youtube.com/@a.b"), handle_in("@a"), handle_in("http://www.youtube.com/channel/UC1")
    ('a.b', 'a', '')
    """
    path = unquote(url.partition("?")[0]) if "/" in url else url
    last = path.rpartition("/")[2].strip()
    return last.removeprefix("@") if last.startswith("@") else ""


def link_of(handle: str, channel: str) -> str:
    """Return the channel's URL: with its handle if it has one, else with its id. "" if both are unknown."""
    return f"{ORIGIN}/@{quote(handle)}" if handle else f"{ORIGIN}/channel/{channel}" if channel else ""


def _legacy_link(url: str) -> str:
    """Return the URL of a channel that has a legacy name instead of a handle, "" for other URLs."""
    path = urlsplit(url).path
    return f"{ORIGIN}{path}" if re.fullmatch(r"/(?:c|user)/[^/]+", path) else ""


def _header_texts(page: Channel) -> tuple[str, str, str]:
    """Return the handle, and the texts with the numbers of subscribers and of videos. "" for a missing text.

    The texts are recognised by their words, because the lines have no fixed positions.
    """
    lines = [line.parts for line in page.lines]
    parts = [part for line in lines for part in line]
    handles = [part for part in parts if part.startswith("@")]
    videos = [part for part in parts if _VIDEOS_WORD.search(part)]
    named = [part for part in parts if stated_count(part, SUBSCRIBERS) is not None]
    # If no text has the English label "subscribers", use the other text in the line with the number of videos.
    candidates = [line for line in lines if handles[:1] != line[:1] and set(line) & set(videos)]
    subscribers = named or [part for line in candidates for part in line if part not in videos]
    return tuple("".join(found[:1]) for found in (handles, subscribers, videos))  # type: ignore[return-value]  # three


def _subtitle(page: OtherChannel) -> str:
    return next((str(each.subtitle or "") for each in page.topics), "")


def has_unread_numbers(page: Channel | OtherChannel | OtherPage) -> bool:
    """Whether the header has a text about subscribers or items that was not read, such as in an unknown language."""
    if isinstance(page, OtherPage):
        return False
    if isinstance(page, OtherChannel):
        subtitle = _subtitle(page)
        return bool(re.search(r"\d", subtitle)) and stated_count(subtitle, SUBSCRIBERS) is None
    _, subscribers, videos = _header_texts(page)
    is_read = stated_count(subscribers, SUBSCRIBERS) is not None
    if is_read and stated_count(videos, VIDEOS) is not None:
        return False  # another number in the header, such as a number of listeners, is not a field of the record
    is_worded = bool(subscribers) and not is_read  # "Keine Abonnenten"
    numbers = (part for line in page.lines for part in line.parts if "@" not in part and re.search(r"\d", part))
    return is_worded or any(stated_count(each, f"(?:{SUBSCRIBERS}|{VIDEOS})") is None for each in numbers)


def age_gate(page: Channel | OtherChannel | OtherPage) -> AgeGate | None:
    """Return the age gate that replaces the content of an age-restricted channel, None if there is none."""
    contents = [each.content for each in page.tabs if each.content] if isinstance(page, OtherChannel) else []
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
