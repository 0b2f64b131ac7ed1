"""Microblog: converts users and posts in any format to the data model's profile fields and posts.

A field is None if the format lacks it. Contradictions between values, which contracts cannot express, are collected.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from crawler.platforms.microblog import PLATFORM
from crawler.platforms.microblog.payload import ApiPost, Article, Holder, Link, Media, Note, Post, User, Withheld
from crawler.platforms.microblog.schema import Demographics
from crawler.reading.contract import Cause, Unread, join, values
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

    >>> id_seconds("2098678373753225483"), id_seconds("29700859247"), id_seconds("29700859246")
    (1789198890, 1288834981, None)
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


def _expanded(raw: str, links: Sequence[Link]) -> list[Replacement]:
    """Return the edits that expand links. A link that is not at its stated position is searched for."""
    found = []
    for link in links:
        if link.short and link.destination and link.short in raw:
            stated = max(link.start or 0, 0)
            position = stated if raw.startswith(link.short, stated) else raw.index(link.short)
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
    elsewhere = {link.short for link in links if link.destination and not _MEDIA_PAGE.search(link.destination)}
    media = [link for link in at_end if link[1] not in elsewhere]
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


ORIGIN = PLATFORM.origin
FIELDS = tuple(Demographics.model_fields)
"""The data model's profile fields. The fields have the names of the keys in the platform's oldest format, which embeds
still have."""
COUNTS = tuple(name for name in FIELDS if name.endswith("_count"))
OMITTED_WHEN_EMPTY = ("profile_banner_url", "url")

REPOST_MARK = "RT @"
Part = User | Post | Media | Note | Link


class Contradictions:
    """Counts the contradictions in the posts or users of one payload, by the path of the missing value."""

    def __init__(self, path: str) -> None:
        """``path``: the path of the posts or users in the payload."""
        self._path = path
        self._found: Counter[tuple[str, Cause, bool]] = Counter()
        self._rows = 0

    def row(self) -> None:
        """Count a post or user."""
        self._rows += 1

    def add(
        self, part: Part, name: str, cause: Cause = "contradiction", *, inside: str = "", loses_row: bool = False
    ) -> None:
        """Count a missing or unusable value, by its attribute's name.

        ``inside``: the path from the post or user to the part that lacks the value. ``loses_row``: whether the post is
        left out.
        """
        parent = join(self._path, inside) if inside else self._path
        path = join(parent, path_of(part, name))
        self._found[path, cause, loses_row] += 1

    def unread(self) -> list[Unread]:
        """Return the unread parts, with one entry for each path and cause."""
        return [
            Unread(path, cause, rows, max(rows, self._rows), loses_rows=lost)
            for (path, cause, lost), rows in self._found.items()
        ]


def media_name(post: Post) -> str:
    """Return the name of the declared value that contains a post's media."""
    return "media_list" if isinstance(post, ApiPost) else "media"


def path_of(part: Part, name: str) -> str:
    """Return the first declared path of an attribute, or its name if the format has no such value (notes in embeds)."""
    # The strict pass creates instances of subclasses of the contracts.
    kind = next(each for each in type(part).__mro__ if each.__module__.startswith("crawler.platforms"))
    return next((each.paths[0] for each in values(kind) if each.name == name), name)


# Users


def profile(user: User, contradictions: Contradictions) -> dict[str, Any]:
    """Return the data model's profile fields of a user. A field is None if the payload's format lacks it."""
    found: dict[str, Any] = {name: getattr(user, name) for name in FIELDS}
    for name in COUNTS:
        found[name] = number(user, name, contradictions)
    if user.created_at is not None and seconds(user.created_at) is None:  # not in the platform's date format
        found["created_at"] = date_text(user.created_at)
        if found["created_at"] is None:
            contradictions.add(user, "created_at", "type")
    if not user.url and user.listed_urls:
        found["url"] = user.listed_urls[0]
    if user.omits_empty:
        found.update({name: "" for name in OMITTED_WHEN_EMPTY if found[name] is None})
    if user.verified_type is None and (user.verified, user.is_blue_verified) != (None, None):
        found["verified_type"] = ""
    for name in ("name", "description", "location"):
        found[name] = None if found[name] is None else html.unescape(found[name]).strip()
    contradictions.row()
    for name in user.contradictions:
        contradictions.add(user, name)
        found[name] = None
    return found


def number(row: Any, name: str, contradictions: Contradictions) -> int | None:
    """Return a count of a user or post as an integer. If the value is not a count, return None and report the value."""
    value = getattr(row, name)
    if value is None or (type(value) is int and value >= 0):  # the usual case
        return value
    found = count(value)
    if found is None:
        contradictions.add(row, name, "type")
    return found


def merged(profiles: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge profiles field by field. For each field, the first profile with a value wins."""
    return {name: next((each[name] for each in profiles if each.get(name) is not None), None) for name in FIELDS}


# Posts


def readable(post: Post | Withheld | None) -> Post | None:
    """Return a post, or None if the platform withholds it or its author."""
    return post if isinstance(post, Post) and isinstance(post.author, User) else None


def handle_of(post: Post | None) -> str:
    """Return the handle of a post's author, "" if the platform withholds the post or its author."""
    return (post and isinstance(post.author, User) and post.author.screen_name) or ""


def record(post: Post, contradictions: Contradictions) -> dict[str, Any] | None:
    """Convert a post in the timeline to the data model, or return None if the post cannot be read.

    A post whose text begins with "RT @" is a repost: of the 2,509 posts in recorded timelines, 541 have such a text,
    and the same 541 contain a reposted post (captures 341926ad1a2f, e992000b9ff4). If the reposted post is missing, the
    post is not returned, because it would look like the profile's own post.
    """
    is_repost = post.reposted_result is not None
    if post.text.startswith(REPOST_MARK) and not is_repost:
        contradictions.row()
        contradictions.add(post, "reposted_result", loses_row=True)
        return None
    original = _inner(post.reposted_result)
    quoted = None if is_repost else _inner(post.quoted_result)
    shown = original or post
    reposted_post = _common(original, contradictions) if original else None
    found = _common(post, contradictions, reposted_post)
    if found is None:
        return None
    media = post.media or shown.media
    files = qualities(media)
    note = shown.note
    found.update(
        hashtags=list(dict.fromkeys([*shown.hashtags, *(note.hashtags if note else ())])),
        in_reply_to_handle=post.reply_handle or None,
        in_reply_to_post_id=post.reply_id or None,
        is_quote=not is_repost and (post.quoted_result is not None or bool(post.quoted_id)),
        is_reply=bool(post.reply_id),
        is_repost=is_repost,
        profile_picture_url=_author(post).profile_image_url_https or "",
        quoted_post=quoted and _common(quoted, contradictions),
        reposted_post=reposted_post,
        save_count=number(post, "bookmarks", contradictions),
        thumbnail_url=_thumbnail(media, shown),
        video_url=files["high"],
        video_urls_by_quality=files,
    )
    del found["creator_name"]
    if is_repost:
        # On a repost, these counts are placeholders of 0. Only the number of reposts is real: it is the original
        # post's.
        found.update(comment_count=None, like_count=None, save_count=None, view_count=found["view_count"] or None)
    return found


def _common(
    post: Post, contradictions: Contradictions, reposted: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the fields of both a ``Post`` and an ``InnerPost``, or None if the time of the post cannot be read.

    ``reposted``: the fields of the reposted post, which contain the whole text.
    """
    contradictions.row()
    time = moment(post.created_at, post.id)
    if time is None:
        contradictions.add(post, "created_at", "type", loses_row=True)
        return None
    for name in post.contradictions:
        contradictions.add(post, name)
    _find_unlisted(post, contradictions)
    for each in post.media:
        for name in each.contradictions:
            contradictions.add(each, name, inside=path_of(post, media_name(post)))
    handle = handle_of(post)
    return {
        "caption": reposted["caption"] if reposted else _caption(post),
        "comment_count": number(post, "replies", contradictions),
        "creator_handle": handle,
        "creator_name": html.unescape(_author(post).name or ""),
        "like_count": number(post, "likes", contradictions),
        "post_id": post.id,
        "post_url": f"{ORIGIN}/{handle}/status/{post.id}",
        "share_count": number(post, "reposts", contradictions),
        "upload_timestamp": time,
        "view_count": number(post, "views", contradictions),
    }


def _find_unlisted(post: Post, contradictions: Contradictions) -> None:
    """Report links and hashtags of the text that the post's lists lack. The texts of reposts, which may be cut, are not
    checked.

    A link after the displayed part of the text leads to the post's media: 668 of 668 recorded links there.
    """
    if post.reposted_result is not None:
        return
    note, end = post.note, post.shown_end
    links = [*post.links, *(note.links if note else ())]
    unlisted = unlisted_links(post.text, links, post.media)
    is_media = bool(unlisted) and end is not None and unlisted[0].start() >= end
    if unlisted:
        contradictions.add(post, media_name(post) if is_media else "links")
    if note and unlisted_links(note.text, links, post.media):
        contradictions.add(note, "links", inside=path_of(post, "note"))
    hashtags = [*post.hashtags, *(note.hashtags if note else ())]
    if lacks_hashtags(note.text if note else post.text, hashtags):
        contradictions.add(post, "hashtags")
    if is_cut(post.text[:end]) and note is None and post.is_expandable is None:
        contradictions.add(post, "note")
    for link in links:
        for name in link.contradictions:
            contradictions.add(link, name, inside=path_of(post, "links"))


def _caption(post: Post) -> str:
    """Return a post's text. If the post is only the link to an article, return the article's title and text."""
    article = _article_of(post)
    if article:
        return "\n\n".join(filter(None, (article.title, article.text))) or post.text
    note, raw, end = post.note, post.text, post.shown_end
    if note:
        return caption(note.text, note.links, escaped=False, has_media=bool(post.media))
    return caption(raw, post.links, escaped=True, has_media=bool(post.media), shown_end=end)


def _article_of(post: Post) -> Article | None:
    """Return the article that a post consists of. Return None for other posts, which may only link to an article."""
    return post.article if post.article and _LINK_ONLY.fullmatch(post.text.strip()) else None


def _author(post: Post) -> User:
    assert isinstance(post.author, User)
    return post.author


def _inner(holder: Holder | Post | None) -> Post | None:
    """Return the quoted or reposted post, or None if it is deleted or hidden."""
    return readable(holder.post) if holder else None


def _thumbnail(media: Sequence[Media], shown: Post) -> str | None:
    """Return the URL of the first photo or video cover, else of the article's cover, else None."""
    article = None if media else _article_of(shown)
    urls = [*(each.image for each in media), article.cover.url if article and article.cover else None]
    return next(filter(None, urls), None)
