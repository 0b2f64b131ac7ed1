"""Video site: converts the rows of a channel's lists to items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from crawler.platforms.model import empty
from crawler.platforms.videosite import PLATFORM
from crawler.platforms.videosite.link import VIDEO_ID
from crawler.platforms.videosite.payload import Lockup, Owner, PlaylistVideo, Short
from crawler.platforms.videosite.schema import ContentItem
from crawler.reading.json import Step
from crawler.reading.values import clock_seconds, hashtags, mentions, stated_count

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
    streamed = not tab and any(part.startswith("Streamed ") for part in parts)
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
        for text in texts:
            stated = stated_count(text, things)
            if stated is not None:
                return stated
    return None


def first(values: Iterable[Any]) -> Any:
    """Return the first value that is not None. If there is no such value, return None."""
    return next((value for value in values if value is not None), None)
