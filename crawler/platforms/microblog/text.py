"""Microblog: pure functions that convert dates, the text of posts, and lists of video files."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from crawler.platforms.microblog.payload import Link, Media
from crawler.reading.values import MONTHS, count

_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} [+-]\d{4} \d{4}", re.ASCII)
_MONTH_NUMBERS = {name: f"{number:02}" for number, name in enumerate(MONTHS, start=1)}

_EPOCH_MS = 1_288_834_974_657
"""The time, in Unix milliseconds, from which the time stamps in post ids are counted."""
_FIRST_TIMED_ID = 29_700_859_247
"""The first post id that contains a time stamp. Older ids are sequence numbers."""

PLATFORM_MS = range(1_142_899_200_000, 4_102_444_800_000)
"""The Unix milliseconds from the platform's first post, 2006-03-21, to 2100. Times in Unix seconds are smaller."""

LONGEST_CUT = 270
"""Minimum number of characters of a text that may be only the beginning of a longer text. Such beginnings have up to
280 characters, not counting links."""

_LAST_LINK = re.compile(r"(https?://t\.co/[A-Za-z0-9_]+)\s*")
_LINK = re.compile(r"https?://t\.co/[A-Za-z0-9]++(?!…|\.\.)")  # a cut link is not listed
_HASHTAG = re.compile(r"(?<!\S)[#＃](\w++)(?!\S*[#＃]|://)")
"""Matches a word that is a hashtag if it contains a letter. A mark is matched only after a space: whether a mark after
another character begins a hashtag depends on the script."""
_LINK_ONLY = re.compile(r"https?://\S+")
_MEDIA_PAGE = re.compile(r"/status/\d+/(?:photo|video)/\d+$", re.ASCII)

Replacement = tuple[int, int, str]


def seconds(value: object) -> int | None:
    """Convert a date in the platform's format to Unix seconds. For any other value, return None.

    >>> seconds("Sat Dec 14 04:35:55 +0000 2013"), seconds("2013-12-14"), seconds(None)
    (1386995755, None, None)
    """
    if not isinstance(value, str) or not _DATE.fullmatch(value) or value[4:7] not in _MONTH_NUMBERS:
        return None
    day = f"{value[26:]}-{_MONTH_NUMBERS[value[4:7]]}-{value[8:10]}"
    try:
        return int(datetime.fromisoformat(f"{day}T{value[11:19]}{value[20:25]}").timestamp())
    except ValueError:
        return None


def date_text(value: object) -> str | None:
    """Convert Unix milliseconds (also as text) or an ISO 8601 date to the platform's date format.

    A date without an offset is read as UTC. For any other value, return None.

    >>> date_text(1386995755000), date_text("2013-12-14T04:35:55.000Z"), date_text("soon")
    ('Sat Dec 14 04:35:55 +0000 2013', 'Sat Dec 14 04:35:55 +0000 2013', None)
    >>> date_text("1386995755000"), date_text(1386995755), date_text("1386995755")
    ('Sat Dec 14 04:35:55 +0000 2013', None, None)
    """
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    if isinstance(value, int) and value not in PLATFORM_MS:
        return None
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        elif isinstance(value, int) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value // 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment.ctime()[:8]}{moment:%d %H:%M:%S} +0000 {moment.year:04}"  # ctime does not depend on the locale


def id_seconds(post_id: str) -> int | None:
    """Return the Unix seconds from the time stamp in a post's id, or None for an older id without a time stamp.

    >>> id_seconds("2098678373753225483"), id_seconds("20")
    (1789198890, None)
    """
    number = int(post_id) if post_id.isascii() and post_id.isdecimal() and len(post_id) < 20 else 0
    return ((number >> 22) + _EPOCH_MS) // 1000 if number >= _FIRST_TIMED_ID else None


def moment(created_at: str | int | None, post_id: str) -> int | None:
    """Return when a post was published, in Unix seconds: from its date, or else from its id, or else None."""
    milliseconds = count(created_at)
    if milliseconds is not None and milliseconds in PLATFORM_MS:
        return milliseconds // 1000
    written = seconds(created_at)
    return id_seconds(post_id) if written is None else written


def caption(raw: str, links: Sequence[Link], *, escaped: bool, has_media: bool, shown_end: int | None = None) -> str:
    """Expand the shortened links in a post's text, and remove the links to the post's media at its end.

    Args:
        raw: the text. Positions in ``links`` and ``shown_end`` count code points, with HTML entities not yet replaced.
        links: the links in the payload, with their destinations.
        escaped: whether the text contains HTML entities.
        has_media: whether the post shows photos or videos, which may be those of another post.
        shown_end: the position at which the displayed text ends, if the payload states it.
    """
    replacements = [*_expanded(raw, links), *_dropped(raw, links, has_media=has_media, shown_end=shown_end)]
    if not replacements:  # most texts
        return html.unescape(raw) if escaped else raw
    parts, end = [], 0
    for start, stop, replacement in sorted(replacements):
        if start >= end:
            parts += [raw[end:start], replacement]
            end = stop
    parts.append(raw[end:])
    # Only the platform's text is unescaped: an expanded URL may contain an ampersand of its own.
    return "".join(html.unescape(part) if escaped and n % 2 == 0 else part for n, part in enumerate(parts))


def unlisted_links(text: str, links: Sequence[Link], media: Sequence[Media]) -> list[re.Match[str]]:
    """Return the shortened links in a post's text that neither its links nor its media list.

    In all 4,794 recorded posts, and in their notes, each such link is listed (captures 8bf3576c7485, e992000b9ff4). In
    the web client's payloads, media do not have their link, which is the same for all media of a post.

    >>> photo = Media(kind="photo")
    >>> [each[0] for each in unlisted_links("a https://t.co/abc", [Link(short="https://t.co/abc")], [])]
    []
    >>> [each[0] for each in unlisted_links("a https://t.co/abc https://t.co/def", [], [photo])]
    ['https://t.co/def']
    >>> unlisted_links("RT @harbor: The boats are back https://t.co/a…", [], [])
    []
    """
    if "//t.co/" not in text:  # most texts
        return []
    known = {each.short for each in links} | {each.short for each in media}
    found = [each for each in _LINK.finditer(text) if each[0] not in known]
    return found[1:] if None in known else found


def lacks_hashtags(text: str, hashtags: Sequence[str]) -> bool:
    """Whether a post's text contains a hashtag, but the post's list of hashtags is empty.

    All 107 recorded texts with a hashtag have a list of hashtags (captures 8bf3576c7485, e992000b9ff4).

    >>> lacks_hashtags("a #boat", []), lacks_hashtags("C#7 #1 #a#b", []), lacks_hashtags("#a", ["a"])
    (True, False, False)
    >>> lacks_hashtags("ชา น้ำ#ชา ・#港 #① #½ #हिन्दी#क https://a.example/#/b", [])
    False
    """
    has_mark = "#" in text or "＃" in text
    return has_mark and not hashtags and any(any(map(str.isalpha, word)) for word in _HASHTAG.findall(text))


def is_cut(shown: str) -> bool:
    """Whether the displayed text of a post is only the beginning of a longer text.

    All 16 recorded texts of this kind have a note with the whole text, and none of the 1,385 posts without a note has
    such a text, except reposts (captures 341926ad1a2f, d8fcad0db39f). But most cut texts do not end with "…".

    >>> is_cut("word " * 54 + "…"), is_cut("word…"), is_cut("word " * 54)
    (True, False, False)
    """
    return len(shown) >= LONGEST_CUT and shown.rstrip().endswith("…")


def is_link_only(raw: str) -> bool:
    """Whether a text consists of a single link.

    >>> is_link_only(" https://t.co/a "), is_link_only("see https://t.co/a")
    (True, False)
    """
    return bool(_LINK_ONLY.fullmatch(raw.strip()))


def _expanded(raw: str, links: Sequence[Link]) -> list[Replacement]:
    found = []
    for link in links:
        position = _position(raw, link.short or "", link.start)
        if link.short and link.destination and position is not None:
            found.append((position, position + len(link.short), link.destination))
    return found


def _dropped(raw: str, links: Sequence[Link], *, has_media: bool, shown_end: int | None) -> list[Replacement]:
    """Return the edits that remove the links to media at the end of a text.

    Payloads list such a link in different ways or not at all. Therefore such a link is recognised by its position: it
    is at the end of the text, it begins after the displayed part, and its destination is a media page or not listed. If
    the whole text is displayed, as for another post's video, only the last link of a post with media is removed.
    """
    at_end = _links_at_end(raw)
    if not at_end:
        return []
    destinations = {link.short: link.destination or "" for link in links}
    media = [link for link in at_end if _is_media(destinations.get(link[1], ""))]
    if shown_end is not None and 0 <= shown_end < len(raw.rstrip()):
        media = [link for link in media if link.start() >= shown_end]
    else:
        media = [link for link in media if has_media and link.end() == len(raw)]
    return [(len(raw[: link.start()].rstrip()), link.end(1), "") for link in media]


def _links_at_end(raw: str) -> list[re.Match[str]]:
    """Return the shortened links at the end of a text, with only white space between and after them."""
    found: list[re.Match[str]] = []
    end = len(raw)
    while (mark := raw.rfind("://t.co/", 0, end)) >= 0:
        link = _LAST_LINK.fullmatch(raw, max(raw.rfind("http", 0, mark), 0), end)
        if link is None:
            break
        found.append(link)
        end = link.start()
    return found


def _is_media(destination: str) -> bool:
    return not destination or bool(_MEDIA_PAGE.search(destination))


def _position(raw: str, short: str, stated: int | None) -> int | None:
    """Return a link's position in a text: the stated position if correct, else the first occurrence, or None."""
    if not short:
        return None
    if stated is not None and stated >= 0 and raw.startswith(short, stated):
        return stated
    position = raw.find(short)
    return position if position >= 0 else None


def qualities(media: Sequence[Media]) -> dict[str, str | None]:
    """Choose video files by bitrate, from the first video or animation in a post."""
    files = next((each.files for each in media if each.files), ())
    urls = [each.url for each in sorted(files, key=lambda file: file.bitrate or 0) if each.is_video and each.url]
    return {
        "high": urls[-1] if urls else None,
        "low": urls[0] if len(urls) > 1 else None,
        "medium": urls[(len(urls) - 1) // 2] if len(urls) > 2 else None,
        "watermarked": None,
    }
