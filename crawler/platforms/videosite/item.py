"""Video site: reads the items in a channel's lists, in each JSON format that the platform has used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from crawler.platforms.videosite import PLATFORM
from crawler.platforms.videosite.schema import VIDEO_ID
from crawler.reading.json import Step, dicts, dig
from crawler.reading.values import clock_seconds, count, stated_count, text

ORIGIN = PLATFORM.origin
VIEWS = "views?"
Path = tuple[Step, ...]

_ID = re.compile(VIDEO_ID)
# "#" and "@" start a tag or a handle, unless they are part of a word, a URL or an e-mail address.
ENGLISH = re.compile(r"\b(?:views?|watching|waiting|ago|streamed|premier\w+|scheduled|play)\b", re.IGNORECASE)
"""Matches words in the texts that state numbers, if the page is in English."""
_HASHTAG = re.compile(r"(?<![\w&/#])#(\w+)")
_ACCESSIBLE_VIEWS = re.compile(
    r"((?:\d[\d,.]*(?: thousand| lakh| million| crore| billion)?|\bno) views?)\b", re.IGNORECASE
)
_MENTION = re.compile(r"(?<![\w./@-])@(\w[\w.\-·]{1,28}\w)")
# A lock-up (``lockupViewModel``) with another content type is a list of videos. Only other tabs contain such rows.
_VIDEO_KINDS = {"", "LOCKUP_CONTENT_TYPE_VIDEO", "LOCKUP_CONTENT_TYPE_SHORT", "LOCKUP_CONTENT_TYPE_SHORTS"}
_SECTIONS = {
    "richGridRenderer": "contents",
    "gridRenderer": "items",
    "playlistVideoListRenderer": "contents",
    "sectionListRenderer": "contents",
    "itemSectionRenderer": "contents",
}
"""Maps each container in a tab to the key of its rows. Shelves are omitted: they contain duplicates or other items."""


def node_text(node: Any) -> str:
    """Return the text of a JSON node: the node is a string, or has ``simpleText``, ``content`` or ``runs``.

    >>> [node_text(node) for node in ("a", {"simpleText": "b"}, {"runs": [{"text": "c"}, {"text": "d"}]}, None)]
    ['a', 'b', 'cd', '']
    """
    if isinstance(node, dict):
        simple = text(node.get("simpleText")) or text(node.get("content"))
        return simple or "".join(text(run.get("text")) for run in dicts(node.get("runs")))
    return node if isinstance(node, str) else ""


def post(video: str, *, kind: str, **known: Any) -> dict[str, Any]:
    """Build an item from its known fields. All other fields are null or empty. ``record()`` adds the author."""
    title = known.get("caption", "")
    picture = known.pop("thumbnail_image", "")
    texts = f"{title}\n{known.pop('description', '')}"
    return {
        "age_restriction_status": None,
        "author_id": None,
        "author_name": "",
        "author_username": "",
        "caption": title,
        "comment_count": None,
        "content_code": video,
        "content_id": video,
        "content_language": None,
        "content_link": f"{ORIGIN}/shorts/{video}" if kind == "short" else f"{ORIGIN}/watch?v={video}",
        "content_type": kind,
        "first_comment": None,
        "hashtags": list(dict.fromkeys(_HASHTAG.findall(texts))),
        "images": [],
        "like_count": None,
        "media_links": dict.fromkeys(("high", "low", "medium", "watermarked")),
        "mentions": list(dict.fromkeys(_MENTION.findall(texts))),
        "published_date": None,
        "slideshow_status": False,
        "subtitles": None,
        "thumbnail_image": f"https:{picture}" if picture.startswith("//") else picture,
        "transcript": None,
        "video_duration_seconds": None,
        "video_link": None,
        "view_count": None,
        **known,
    }


def is_video_id(value: object) -> bool:
    """Return whether a value is a valid item id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def rows_of(content: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each row in a tab's list with its path, in the platform's order. Yield nothing if the tab has no list."""
    waiting: list[tuple[Path, Any]] = [((), content)]
    while waiting:
        path, each = waiting.pop(0)
        inner = [key for key in _SECTIONS if isinstance(dig(each, key), dict)]
        if path and not inner:
            yield path, each
        lists = [(key, dig(each, key, _SECTIONS[key])) for key in inner]
        rows = [
            ((*path, key, _SECTIONS[key], index), row)
            for key, listed in lists
            if isinstance(listed, list)
            for index, row in enumerate(listed)
            if isinstance(row, dict)
        ]
        waiting[:0] = rows


def read_row(row: dict[str, Any], tab: str) -> tuple[dict[str, Any] | None, Path | None]:
    """Return the item in a row, and None.

    If the item has no valid id, return None and the path of the id. If the row is not an item, return two Nones.
    """
    content = dig(row, "richItemRenderer", "content")
    path: Path = ("richItemRenderer", "content") if isinstance(content, dict) else ()
    holder = content if isinstance(content, dict) else row
    for name, (id_path, reader) in _READERS.items():
        shape = holder.get(name)
        if isinstance(shape, dict) and (name != "lockupViewModel" or text(shape.get("contentType")) in _VIDEO_KINDS):
            video = dig(shape, *id_path)
            if not is_video_id(video):
                return None, (*path, name, *id_path)
            return reader(video, shape, tab), None
    return None, None


OTHER_ROWS = frozenset(
    {
        *("adSlotRenderer", "backstagePostThreadRenderer", "channelAboutFullMetadataRenderer", "channelRenderer"),
        *("channelAgeGateRenderer", "channelVideoPlayerRenderer", "continuationItemRenderer"),
        *("continuationItemViewModel", "gridChannelRenderer", "gridPlaylistRenderer", "gridShowRenderer"),
        *("horizontalCardListRenderer", "messageRenderer", "playlistRenderer", "postRenderer", "radioRenderer"),
        *("recognitionShelfRenderer", "reelShelfRenderer", "richSectionRenderer", "shelfRenderer"),
        *("sharedPostRenderer", "showRenderer"),
    }
)
"""Formats of rows that are not items: advertisements, shelves, lists, posts, messages, links to the next page."""


def is_unrecognised(row: dict[str, Any]) -> bool:
    """Whether a row has an unknown format, so that it may be an item."""
    content = dig(row, "richItemRenderer", "content")
    formats = content if isinstance(content, dict) else row
    return not (formats.keys() & (OTHER_ROWS | _READERS.keys()))


def stated_texts(row: dict[str, Any]) -> list[str]:
    """Return the texts in a row that state a number, such as a number of views or an age."""
    content = dig(row, "richItemRenderer", "content")
    shapes = [each for each in (content if isinstance(content, dict) else row).values() if isinstance(each, dict)]
    texts: list[str] = []
    for shape in shapes:
        rows = dig(shape, "metadata", "lockupMetadataViewModel", "metadata", "contentMetadataViewModel", "metadataRows")
        texts += [node_text(part.get("text")) for each in dicts(rows) for part in dicts(each.get("metadataParts"))]
        texts += [node_text(shape.get(key)) for key in ("viewCountText", "publishedTimeText", "videoInfo")]
        texts += [node_text(dig(shape, "overlayMetadata", "secondaryText")), text(shape.get("accessibilityText"))]
    return [each for each in texts if re.search(r"\d", each)]


def token_of(row: dict[str, Any]) -> str:
    """Return the token for the next page if the row has one, else ""."""
    found = (dig(row, *path, "continuationCommand", "token") for path in _TOKENS)
    return next((token for token in found if isinstance(token, str) and token), "")


_TOKENS: tuple[Path, ...] = (
    ("continuationItemRenderer", "continuationEndpoint"),
    ("continuationItemViewModel", "continuationCommand", "innertubeCommand"),
    ("continuationItemRenderer", "button", "buttonRenderer", "command"),
    ("continuationItemRenderer", "continuationEndpoint", "commandExecutorCommand", "commands", -1),
)


def _kind(tab: str, url: object, *styles: object, streamed: bool = False) -> str:
    """Return the content type from an item's link, styles and tab.

    If the tab is unknown, an item that is ``streamed`` has the content type "live".
    """
    if text(url).startswith("/shorts/") or "SHORTS" in styles or tab == "shorts":
        return "short"
    return "live" if tab == "streams" or (not tab and streamed) else "video"


def _url_in(endpoint: Any) -> Any:
    return dig(endpoint, "commandMetadata", "webCommandMetadata", "url")


def _lockup(video: str, shape: dict[str, Any], tab: str) -> dict[str, Any]:
    """Read an item in the format of video and live tabs since 2026.

    Only its text shows whether a part of a metadata row is the number of views.
    """
    about = dig(shape, "metadata", "lockupMetadataViewModel")
    rows = dicts(dig(about, "metadata", "contentMetadataViewModel", "metadataRows"))
    parts = [node_text(part.get("text")) for row in reversed(rows) for part in dicts(row.get("metadataParts"))]
    image = dig(shape, "contentImage", "thumbnailViewModel")
    badges = list(_badges(dig(image, "overlays")))
    link = _url_in(dig(shape, "rendererContext", "commandContext", "onTap", "innertubeCommand"))
    return post(
        video,
        kind=_kind(tab, link, *badges, streamed=any(part.startswith("Streamed ") for part in parts)),
        caption=node_text(dig(about, "title")),
        thumbnail_image=text(dig(image, "image", "sources", -1, "url")),
        video_duration_seconds=_first(map(clock_seconds, badges)),
        view_count=_first(stated_count(part, VIEWS) for part in parts),
    )


def _badges(overlays: Any) -> Iterator[str]:
    """Yield the texts of the badges on an item's picture. The badges are in overlays with different names."""
    for overlay in dicts(overlays):
        lists = (each for shape in overlay.values() if isinstance(shape, dict) for each in shape.values())
        for badge in (badge for each in lists for badge in dicts(each)):
            yield text(dig(badge, "thumbnailBadgeViewModel", "text"))


def _video(video: str, shape: dict[str, Any], tab: str) -> dict[str, Any]:
    """Read the older formats, which grids, rich grids and playlists use."""
    overlays = [each.get("thumbnailOverlayTimeStatusRenderer") for each in dicts(shape.get("thumbnailOverlays"))]
    lengths = [shape.get("lengthText"), *(dig(each, "text") for each in overlays)]
    info = node_text(shape.get("videoInfo")).split("•")
    views = [node_text(shape.get("viewCountText")), *info, node_text(shape.get("shortViewCountText"))]
    return post(
        video,
        kind=_kind(tab, _url_in(shape.get("navigationEndpoint")), *(dig(each, "style") for each in overlays)),
        caption=node_text(shape.get("title")),
        published_date=count(dig(shape, "upcomingEventData", "startTime")) or None,
        thumbnail_image=text(dig(shape, "thumbnail", "thumbnails", -1, "url")),
        video_duration_seconds=_first(clock_seconds(node_text(each)) for each in lengths),
        view_count=_first(stated_count(each, VIEWS) for each in views),
    )


def _short(video: str, shape: dict[str, Any], _tab: str) -> dict[str, Any]:
    """Read the format of shorts since 2024. In playlists, only the end of the screen reader text has the views."""
    accessible = _ACCESSIBLE_VIEWS.findall(text(shape.get("accessibilityText")))
    views = [node_text(dig(shape, "overlayMetadata", "secondaryText")), *accessible[-1:]]
    return post(
        video,
        kind="short",
        caption=node_text(dig(shape, "overlayMetadata", "primaryText")),
        thumbnail_image=text(_source(shape)),
        view_count=_first(stated_count(each, VIEWS) for each in views),
    )


def _source(shape: dict[str, Any]) -> Any:
    image = dig(shape, "thumbnailViewModel", "thumbnailViewModel", "image") or dig(shape, "thumbnail")
    return dig(image, "sources", 0, "url")


def _reel(video: str, shape: dict[str, Any], _tab: str) -> dict[str, Any]:
    """Read the format of shorts before 2024."""
    return post(
        video,
        kind="short",
        caption=node_text(shape.get("headline")),
        thumbnail_image=text(dig(shape, "thumbnail", "thumbnails", 0, "url")),
        view_count=stated_count(node_text(shape.get("viewCountText")), VIEWS),
    )


def _first(values: Any) -> Any:
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), None)


_READERS: dict[str, tuple[Path, Callable[[str, dict[str, Any], str], dict[str, Any]]]] = {
    "lockupViewModel": (("contentId",), _lockup),
    "videoRenderer": (("videoId",), _video),
    "gridVideoRenderer": (("videoId",), _video),
    "playlistVideoRenderer": (("videoId",), _video),
    "shortsLockupViewModel": (("onTap", "innertubeCommand", "reelWatchEndpoint", "videoId"), _short),
    "reelItemRenderer": (("videoId",), _reel),
}
"""Maps each format to the path of its id and to its reader. Topic and event channels still use older formats."""
