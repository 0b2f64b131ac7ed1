"""Video site: converts the rows of a channel's lists to items, builds the channel's profile from the headers of the
different pages and from the about panel, and merges them into a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from crawler.platforms.model import empty
from crawler.platforms.page import mismatch_error
from crawler.platforms.requests import encode_cursor, is_used, page_mark, with_used
from crawler.platforms.videosite import PLATFORM
from crawler.platforms.videosite.payload import (
    AgeGate,
    ChannelHeader,
    ChannelMetadata,
    Game,
    Header,
    Link,
    Lockup,
    Owner,
    Page,
    Panel,
    PlaylistVideo,
    Short,
    Topic,
    flat,
)
from crawler.platforms.videosite.schema import CURSOR_KIND, TABS, ContentItem, Profile
from crawler.platforms.videosite.urls import CHANNEL_ID, VIDEO_ID
from crawler.reading.contract import EMPTY
from crawler.reading.documents import Step, dig
from crawler.reading.values import (
    absolute_url,
    clock_seconds,
    count,
    hashtags,
    mentions,
    stated_count,
    stated_day,
    text,
)

Item = dict[str, Any]
Path = tuple[Step, ...]

ORIGIN = PLATFORM.origin
VIEWS = "(?:views?|plays?)"
"""The platform's words for views. "plays" is used on buttons of shorts, and may come into use in lists."""

ENGLISH = re.compile(r"\b(?:views?|watching|waiting|ago|streamed|premier\w+|scheduled|play)\b", re.IGNORECASE)
"""Matches the words that accompany numbers on English pages."""
_ANNOUNCED = re.compile(r"\b(?:watching|waiting|premieres|scheduled)\b", re.IGNORECASE)
"""Matches words in rows of live and announced items, which have no number of views."""
_AGE = re.compile(r"\b(?:ago|streamed|premiered)\b", re.IGNORECASE)
_ACCESSIBLE_VIEWS = re.compile(
    r"(?<=, )(?:\d[\d,.]{0,25}(?: thousand| lakh| million| crore| billion)?|no) views?(?=\s*(?:[-–]|$))", re.IGNORECASE
)
"""Matches the number of views between the title and "- play Short". The title may contain such a number, too."""


def post(
    video: str, *, kind: str, caption: str = "", description: str = "", thumbnail_image: str | None = "", **known: Any
) -> Item:
    """Build an item from its known fields. All other fields are null or empty; ``record()`` adds the author."""
    texts = f"{caption}\n{description}"
    picture = thumbnail_image or ""
    return {
        **empty(ContentItem),
        "caption": caption,
        "content_code": video,
        "content_id": video,
        "content_link": f"{ORIGIN}/shorts/{video}" if kind == "short" else f"{ORIGIN}/watch?v={video}",
        "content_type": kind,
        "hashtags": hashtags(texts),
        "mentions": mentions(texts),
        "slideshow_status": False,
        "thumbnail_image": f"https:{picture}" if picture.startswith("//") else picture,
        **known,
    }


def is_video_id(value: object) -> bool:
    """Whether a value is a valid item id."""
    return isinstance(value, str) and VIDEO_ID.matches(value)


def item_of(shape: Lockup | Short | PlaylistVideo, tab: str) -> Item:
    """Convert an item. ``tab``: the name of the tab that contains the item, such as ``streams``; "" if unknown."""
    if isinstance(shape, Lockup):
        return _lockup(shape, tab)
    return _short(shape) if isinstance(shape, Short) else _older_video(shape, tab)


@lru_cache(maxsize=100)  # the rows of a playlist link to the same channel
def handle_in(url: str) -> str:
    """Return the handle in a URL or in a text like "@name", without "@"; "" if there is none.

    >>> handle_in("http://www.youtube.com/@a.b"), handle_in("@a"), handle_in("http://www.youtube.com/channel/UC1")
    ('a.b', 'a', '')
    """
    path = unquote(url.partition("?")[0]) if "/" in url else url
    last = path.rpartition("/")[2].strip()
    return last.removeprefix("@") if last.startswith("@") else ""


def stated_texts(shape: Lockup | Short | PlaylistVideo) -> list[str]:
    """Return the texts of an item that may state a number, such as a number of views or an age."""
    if isinstance(shape, Lockup):
        return shape.parts
    if isinstance(shape, Short):
        return [text for text in (shape.views, shape.accessible) if text]
    return [str(text) for text in (shape.views, shape.published, shape.info) if text]


def gaps(shape: Lockup | Short | PlaylistVideo, item: Item) -> Iterator[tuple[str, list[str]]]:
    """Yield what a row lacks although all recorded rows of its kind have it, or states in an unknown format.

    Each row has a picture, a length or a word in its place, and, unless it is of a kind without one, a number of views.
    A row that links to its owner has the owner's name. Yields the paths, each with the texts that may be the value.
    """
    if not item["thumbnail_image"]:
        yield shape.image_path, []
    if item["video_duration_seconds"] is None and not shape.is_untimed:
        yield shape.length_path, shape.lengths
    if isinstance(shape, Lockup) and shape.channel and not shape.channel_name:
        yield shape.owner_path, []
    is_counted = item["view_count"] is not None or shape.hides_views
    if shape.is_only_rounded or not (is_counted or any(map(_ANNOUNCED.search, stated_texts(shape)))):
        texts = (text for text in stated_texts(shape) if re.search(r"\d", text) and not _AGE.search(text))
        yield shape.views_path, [*texts]


def _author(name: str | None, channel: Owner | None) -> Item:
    """Return the fields of an item's author, if the row links to its owner. ``name``: the text of the link."""
    if channel is None:
        return {}
    return {"author_id": channel.id, "author_name": name or "", "author_username": handle_in(channel.url or "")}


def _kind(tab: str, url: str | None, *styles: str | None, streamed: bool = False) -> str:
    """Return the content type from an item's link, its labels (``styles``) and its tab.

    ``streamed``: whether the item's text begins with "Streamed". Such an item is "live" if the tab is unknown.
    """
    if tab == "shorts" or "SHORTS" in styles or (url or "").startswith("/shorts/"):
        return "short"
    return "live" if tab == "streams" or (not tab and streamed) else "video"


def _lockup(shape: Lockup, tab: str) -> Item:
    parts, badges = shape.parts, shape.badges
    streamed = any(part.startswith("Streamed ") for part in parts)
    return post(
        shape.id,
        kind=_kind(tab, shape.url, *badges, streamed=streamed),
        caption=shape.title or "",
        thumbnail_image=shape.image,
        video_duration_seconds=first(map(clock_seconds, badges)),
        view_count=_views(parts),
        **_author(shape.channel_name, shape.channel),
    )


def _older_video(shape: PlaylistVideo, tab: str) -> Item:
    views = [str(each or "") for each in (shape.views, shape.short_views)]
    owner = next((each for each in shape.bylines if each.channel), None)
    return post(
        shape.id,
        kind=_kind(tab, shape.url, *(each.style for each in shape.statuses)),
        caption=str(shape.title or ""),
        thumbnail_image=shape.image,
        video_duration_seconds=first(map(clock_seconds, shape.lengths)),
        view_count=_views([views[0], *str(shape.info or "").split("•"), views[1]]),
        **(_author(owner.name, owner.channel) if owner else {}),
    )


def _short(shape: Short) -> Item:
    """Convert a short. In playlists, the number of views is only at the end of the text for screen readers."""
    views = [shape.views] if shape.views else _ACCESSIBLE_VIEWS.findall(shape.accessible or "")[-1:]
    return post(
        shape.id,
        kind="short",
        caption=shape.title or "",
        thumbnail_image=shape.image,
        view_count=_views(views),
    )


def _views(texts: list[str]) -> int | None:
    """Return the number of views in the texts: the number next to the word "views", or else a number alone."""
    for things in (VIEWS, ""):
        for each in texts:
            stated = stated_count(each, things)
            if stated is not None:
                return stated
    return None


def first(values: Iterable[Any]) -> Any:
    """Return the first value that is not None. If there is no such value, return None."""
    return next((value for value in values if value is not None), None)


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
        "profile_link": f"{ORIGIN}/@{quote(handle)}" if handle else f"{ORIGIN}/channel/{channel}" if channel else "",
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


ENRICHED_FIELDS = ("published_date", "like_count", "video_duration_seconds")
"""Fields of an item that are taken from the enrichment if the list lacks them."""

MAX_ROUNDING = 1.1
"""Maximum ratio of an exact number of views to its rounded form: "1M" is shown for up to 1,099,999 views."""
MAX_GROWTH, SMALL_GROWTH = 0.05, 10
"""Maximum increase of a number of views between two sources: as a share, and as an absolute number in addition."""

ABOUT_FIELDS: Item = {
    "account_creation_date": None,
    "account_creation_date_text": "",
    "external_links": [],
    "location": "",
    "total_views": None,
}
"""The channel's fields that belong to the about panel, with their empty values."""


def record(profile: Item, posts: list[Item], enrichments: list[Item], *, cursor: str = "", more: bool = False) -> Item:
    """Build the record of a channel (``profile``) and the items in its list (``posts``).

    ``enrichments``: items from the feed and from video metadata, which complete the posts with the same ids. Of several
    values for a field, the first is used. ``more``: whether the list continues, although the token for its next page
    could not be read.
    """
    known: dict[str, list[Item]] = {}
    for each in enrichments:
        known.setdefault(each["content_id"], []).append(each)
    author = {
        "author_id": profile["profile_id"] or None,
        "author_name": profile["display_name"],
        "author_username": profile["username"],
    }
    completed = [_completed(post, known.get(post["content_id"], [])) for post in posts]
    posts = [post if post["author_id"] not in (None, author["author_id"]) else post | author for post in completed]
    return {"pagination": {"cursor": cursor, "has_more": more or bool(cursor)}, "posts": posts, "profile": profile}


def without_about(profile: Item) -> Item:
    """Return the channel with the fields that belong to the about panel emptied."""
    return {**profile, **ABOUT_FIELDS}


def unenriched(posts: list[Item], enrichments: list[Item]) -> list[str]:
    """Return the ids of the posts for which there is no enrichment."""
    known = {each["content_id"] for each in enrichments}
    return [post["content_id"] for post in posts if post["content_id"] not in known]


def _completed(post: Item, enrichments: list[Item]) -> Item:
    completed = dict(post)
    for source in enrichments:
        for key in ENRICHED_FIELDS:
            if completed[key] is None:
                completed[key] = source[key]
        completed["caption"] = completed["caption"] or source["caption"]
        for key in ("hashtags", "mentions"):
            completed[key] = list(dict.fromkeys(completed[key] + source[key]))
    # For shorts, the number in a list counts each start of playback, but other sources count viewers.
    if post["content_type"] != "short":
        views = [source["view_count"] for source in enrichments]
        completed["view_count"] = next(
            (each for each in views if _is_plausible(each, post["view_count"])), post["view_count"]
        )
    return completed


def _is_plausible(exact: int | None, stated: int | None) -> bool:
    """Whether an exact number of views is consistent with the number in the list (``stated``).

    The list's number is rounded down to two or three digits. If the list has no number, every exact number is
    consistent. Other sources may count views differently, and the Atom feeds sometimes state 1 view for every video.
    """
    if exact is None or stated is None:
        return exact is not None
    return stated * (1 - MAX_GROWTH) - 1 <= exact <= stated * MAX_ROUNDING * (1 + MAX_GROWTH) + SMALL_GROWTH


def cursor_after(  # noqa: PLR0913  # the arguments are the position in a list
    profile: Item, *, username: str, kind: str, tabs: list[str], token: str, seen: list[int]
) -> str:
    """Return the cursor for the next page, a ``Continuation``; "" after the last tab.

    If there is a ``token`` that was not used before, the next page continues the first of the ``tabs``. Otherwise the
    next page is the first page of the second tab.

    ``tabs`` are the tabs that are still to be read, the current tab first. ``username`` and ``kind`` are the params
    ``username`` and ``type``. ``seen`` are the checksums of used tokens, and of pages up to this one.
    """
    if is_used(token, seen):
        token = ""  # the platform repeated a token: following it would never end
    if not token:
        tabs = tabs[1:]
    if not tabs or not profile["profile_id"]:
        return ""
    names = {username.removeprefix("@").lower(), profile["username"].lower(), profile["profile_id"].lower()}
    payload = {
        "channel": profile["profile_id"],
        "names": sorted(names - {""}),
        "type": kind,
        "tabs": tabs,
        "token": token,
        "seen": with_used(seen, token) if token else [],
    }
    return encode_cursor(CURSOR_KIND, payload)


def joined_record(parts: dict[str, Item], params: Mapping[str, Any]) -> Item:
    """Build the record from saved responses. ``parts`` maps the kind of each response to its data.

    The items are those of a continuation page if one was saved, else of a playlist, else of the channel's page. The
    param ``without_about`` empties the fields that belong to the about panel.

    Raises:
        ExtractionFailed: the responses belong to different channels.
    """
    listing = next((parts[kind] for kind in ("continuation", "playlist", "channel") if kind in parts), None)
    enrichments = [post for kind in ("video", "feed") for post in parts.get(kind, {}).get("posts", [])]
    profile = dict(next(parts[kind]["profile"] for kind in _PROFILES if kind in parts))
    ids = {profile["profile_id"], *(part["channel"] for part in parts.values() if part.get("channel"))} - {""}
    if len(ids) > 1:
        message = f"The files belong to different channels: {', '.join(sorted(ids))}."
        raise mismatch_error(message, ["profile", "profile_id"], min(ids))
    if params.get("include_about") and not profile["external_links"]:
        profile["external_links"] = parts.get("channel", {}).get("links", [])
    if "about" in parts:
        # The panel contains only the day of the channel's creation, the feed the exact time.
        profile |= parts["about"]["about"] | parts.get("feed", {}).get("created", {})
    if params.get("without_about"):
        profile = without_about(profile)
    profile["profile_id"] = profile["profile_id"] or next(iter(ids), "")
    if "channel" not in parts:  # a response that was saved alone may contain only the channel's handle or only its id
        profile["display_name"] = profile["display_name"] or profile["username"] or profile["profile_id"]
    if listing is None:  # all responses are about one video
        posts = list({post["content_id"]: post for post in reversed(enrichments)}.values())[::-1]
        return record(profile, posts, enrichments)
    posts = _labelled(parts, listing)
    more = listing["more"] and not listing["continuation"]
    return record(profile, posts, enrichments, cursor=_saved_cursor(profile, parts, listing, params), more=more)


def _labelled(parts: dict[str, Item], listing: Item) -> list[Item]:
    """Return the list's items. If the saved channel page shows the tab of live streams, label its videos as live."""
    is_live = parts.get("channel", {}).get("tab") == TABS["live"]
    relabelled = {"content_type": "live"} if is_live else {}
    return [post | relabelled if post["content_type"] == "video" else post for post in listing["posts"]]


def _saved_cursor(profile: Item, parts: dict[str, Item], listing: Item, params: Mapping[str, Any]) -> str:
    page = parts.get("channel", {})
    kinds = {name: kind for kind, name in TABS.items()}
    types = {post["content_type"] for post in listing["posts"]}
    tab = params.get("tab") or page.get("tab") or (TABS[types.pop()] if len(types) == 1 else TABS["video"])
    is_all = params.get("type") == "all"
    if tab not in kinds:
        return ""
    tabs = [each for each in TABS.values() if each == tab or (is_all and each in page.get("tabs", ()))]
    return cursor_after(
        profile,
        username=params.get("username", ""),
        kind="all" if is_all else kinds[tab],
        tabs=tabs[tabs.index(tab) :],
        token=listing["continuation"],
        seen=with_used([], page_mark(each["content_id"] for each in listing["posts"])),
    )


_PROFILES = ("channel", "about", "feed", "video", "resolve", "continuation", "playlist")
"""Kinds of responses (``source``) that contain data of the channel, the most complete first."""
