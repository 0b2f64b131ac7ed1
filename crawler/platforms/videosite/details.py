"""Video site: page objects for responses that complete a record, such as Atom feeds, or that resolve a URL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import attrs
from lxml import etree
from web_poet import field

from crawler.errors import TargetNotFound, TargetRestricted, UpstreamBlocked, UpstreamError, UpstreamRateLimited, quoted
from crawler.platforms.page import missing_error
from crawler.platforms.videosite.base import CHANNEL_MARK, VideositePage
from crawler.platforms.videosite.payload import Endpoint, Metadata, Panel, PanelHolder, Player, Resolved
from crawler.platforms.videosite.record import about_of, blank, creation, first, handle_in, is_video_id, post
from crawler.platforms.videosite.urls import CHANNEL_ID
from crawler.reading.contract import MAX_NAMES, Contract, Unread, always, filled, identity, often, sometimes
from crawler.reading.documents import is_json
from crawler.reading.values import count, text, unix_time

ATOM = "http://www.w3.org/2005/Atom"
_PREFIXES = {
    ATOM: "",
    "http://www.youtube.com/xml/schemas/2015": "yt:",
    "http://search.yahoo.com/mrss/": "media:",
}
_ENTRY = f"{{{ATOM}}}entry"
MAX_BYTES = 500_000
"""Maximum size of a feed. A feed has 15 entries, with at most 5,000 characters of description each."""
_GROUP = "media:group/media:"


class Entry(Contract, nulls=False):
    """An entry of a feed: one video."""

    id: str = identity("yt:videoId")
    url: str = identity("link:alternate@href")
    channel: str | None = often("yt:channelId")
    title: str | None = filled("title")
    published: str | None = filled("published")
    description: str | None = always(f"{_GROUP}description")
    """Not ``filled``, although all 30 recorded entries have a text: all videos of a channel may lack a description."""
    image: str | None = filled(f"{_GROUP}thumbnail@url")
    likes: str | None = often(f"{_GROUP}community/media:starRating@count")
    views: str | None = often(f"{_GROUP}community/media:statistics@views")


class Feed(Contract):
    """The Atom feed of a channel or of a playlist. Both have the same format."""

    url: str | None = sometimes("link:self@href")
    channel: str | None = sometimes("yt:channelId")
    title: str | None = sometimes("title")
    author: str | None = sometimes("author/name")
    author_url: str | None = sometimes("author/uri")
    published: str | None = sometimes("published")
    entries: list[Entry] = sometimes("entry[]")


def feed_root(body: bytes) -> Any:
    """Return a feed's root element, or None if the response is not an Atom feed.

    XML that is larger than ``MAX_BYTES`` or not well-formed is not read: libxml2 needs seconds to recover from 2 MB of
    errors. libxml2's limits of depth (256) and of the expansion of entities apply.
    """
    if len(body) > MAX_BYTES:
        return None
    try:
        root = etree.fromstring(body.strip(), etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return None
    return root if root.tag == f"{{{ATOM}}}feed" else None


def plain_feed(root: Any) -> dict[str, Any]:
    """Return a feed as plain data: the feed's own values by name, and for each entry a dict of its values."""
    data = _values(each for each in root if each.tag != _ENTRY)
    return {**data, "entry": [_values(each) for each in root.iterchildren(_ENTRY)]}


def unknown_parts(root: Any) -> list[str]:
    """Return the names of the root's child elements that have children, but are neither entries nor the author."""
    return [_name(each.tag) for each in root if len(each) and each.tag not in {_ENTRY, f"{{{ATOM}}}author"}]


def _values(elements: Iterable[Any]) -> dict[str, str]:
    """Return the texts and attributes of elements and their descendants, by path: the first value for each path."""
    found: dict[str, str] = {}
    waiting = [(each, "") for each in elements]
    for element, parent in waiting:
        path = f"{parent}{_name(element.tag)}"
        attributes = element.items()
        if attributes:
            relation = element.get("rel")
            path = f"{path}:{relation}" if relation else path
            for name, value in attributes:
                found.setdefault(f"{path}@{name}", value)
        if len(element):
            waiting += [(each, f"{path}/") for each in element]
        else:
            found.setdefault(path, element.text or "")
    return found


@lru_cache(maxsize=100)
def _name(tag: object) -> str:
    """Return an element's name with the feed's usual prefix, by its tag.

    Comments and processing instructions have no name: their tags are functions.
    """
    if not isinstance(tag, str):
        return "…"
    space, _, name = tag.removeprefix("{").rpartition("}")
    return f"{_PREFIXES.get(space, '…:')}{name}"


BOT = re.compile(r"\b(?:ro)?bot\b", re.IGNORECASE)
"""Matches the player's message that the visitor must prove not to be a bot."""
LOGIN_REQUIRED = "LOGIN_REQUIRED"
FOR_SOME = re.compile(r"\b(?:private|age|inappropriate)\b", re.IGNORECASE)
"""Matches the player's message about a video that only some accounts may see (captures 4785bd7d669f, b1c27da93149)."""


@attrs.define(slots=False)
class AboutPage(VideositePage):
    """A channel's about panel, from its API call or the page that contains it. ``page_params``: ``channel``."""

    source: ClassVar[str] = "about"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return '"aboutChannelViewModel"' in body and not CHANNEL_MARK.search(body)

    def validate_input(self) -> None:
        """Raise an error unless the response contains the channel's about panel.

        Raises:
            ExtractionFailed: the response contains no panel, or another channel's panel.
        """
        super().validate_input()
        requested = text(self.page_params.get("channel"))
        if requested and self.channel and self.channel != requested:
            message = f"The panel belongs to another channel: {self.channel}, requested was {requested}."
            raise missing_error(message, ("aboutChannelViewModel", "channelId"), reason="wrong_echo")
        panel = self._panel
        stated = {
            "account_creation_date": panel.joined,
            "follower_count": panel.subscribers,
            "content_count": panel.videos,
            "total_views": panel.views,
        }
        if any(value and name not in self.about for name, value in stated.items()):
            self.skip_language("The about panel", ("aboutChannelViewModel",))

    @field
    def channel(self) -> str:
        return self._panel.channel or ""

    @field
    def about(self) -> dict[str, Any]:
        return about_of(self._panel)

    @field
    def profile(self) -> dict[str, Any]:
        """The channel, with the fields in the panel, for a panel that was saved without the channel's page."""
        handle = handle_in(self._panel.channel_url or "")
        return {**blank(self.channel, handle=handle), "biography": self._panel.description or ""}

    @cached_property
    def _panel(self) -> Panel:
        panels = self.read_data(PanelHolder).panels
        if not panels:
            path = ("onResponseReceivedEndpoints", "appendContinuationItemsAction", "continuationItems")
            raise missing_error("The response contains no about panel.", path, reason="no_about_panel")
        return panels[0]


@attrs.define(slots=False)
class FeedPage(VideositePage):
    """An Atom feed: the newest 15 items with exact counts. ``page_params``: ``channel``; for a playlist, ``tab``."""

    source: ClassVar[str] = "feed"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return "<feed" in body[:1_000] and ATOM in body[:1_000]

    def validate_input(self) -> None:
        """Raise an error unless the response is the channel's feed.

        Raises:
            UpstreamError: the request failed. Status 404 counts as a failure, because existing channels with live
                streams temporarily have no feed.
            ExtractionFailed: the response is not a feed, or is another channel's feed, or none of its entries could be
                read.
        """
        if self.response.status in {404, 410}:
            self.raise_for_walls()
            raise UpstreamError("The channel has no feed.", reason="no_feed")
        self.raise_for_failures()
        if self._root is None:
            self.raise_for_walls()
            self.raise_for_missing_page()
            raise missing_error("The response is not an Atom feed.", ("feed",), reason="no_data_block")
        requested = text(self.page_params.get("channel"))
        if requested and self.channel and self.channel != requested:
            message = f"The feed belongs to another channel: {self.channel}, requested was {requested}."
            raise missing_error(message, ("feed", "yt:channelId"), reason="wrong_echo")
        invalid = sum(not is_video_id(each.id) for each in self._entries)
        if invalid:
            self.unread.append(Unread("entry[].yt:videoId", "type", invalid, len(self._entries), loses_rows=True))
        if names := unknown_parts(self._root):
            count_unknown, count_all = len(names), len(names) + len(self._entries)
            self.unread.append(
                Unread("…unknown", "unknown", count_unknown, count_all, loses_rows=True, names=(*names[:MAX_NAMES],))
            )
        lost = [each for each in self.unread if each.loses_rows]
        if lost and not self.posts:
            message = f"No entry of the feed could be read: {'; '.join(map(str, lost))}."
            raise missing_error(message, ("feed", "entry"), reason="blind")

    @field
    def channel(self) -> str:
        ids = [self._feed.channel, (self._feed.author_url or "").rpartition("/")[2]]
        ids += [each.channel for each in self._entries]
        # At the top of the feed, the channel's id lacks the prefix "UC" of all channel ids.
        prefixed = (each if each.startswith("UC") else f"UC{each}" for each in ids if each)
        return next((each for each in prefixed if CHANNEL_ID.matches(each)), "")

    @field
    def profile(self) -> dict[str, Any]:
        return blank(self.channel, name=self._feed.author or self._feed.title or "")

    @field
    def created(self) -> dict[str, Any]:
        """Both fields of the channel's creation date; {} for a playlist's feed, which contains the playlist's date."""
        moment = unix_time(self._feed.published)
        is_channels = "playlist_id=" not in (self._feed.url or "")
        return creation(datetime.fromtimestamp(moment, UTC)) if moment and is_channels else {}

    @field
    def posts(self) -> list[dict[str, Any]]:
        found = (self._post(each) for each in self._entries if is_video_id(each.id))
        return list({each["content_id"]: each for each in found}.values())

    def _post(self, entry: Entry) -> dict[str, Any]:
        """Convert an entry. An entry whose link contains ``/shorts/`` is a short."""
        short = "/shorts/" in entry.url
        return post(
            entry.id,
            kind="short" if short else "live" if self.requested_tab == "streams" else "video",
            caption=entry.title or "",
            description=entry.description or "",
            like_count=count(entry.likes) or None,  # 0 may mean that likes are hidden
            published_date=unix_time(entry.published),
            thumbnail_image=entry.image,
            view_count=count(entry.views),
        )

    @cached_property
    def _root(self) -> Any:
        return feed_root(self._body)

    @cached_property
    def _feed(self) -> Feed:
        return self.plain_payload(Feed, plain_feed(self._root))

    @property
    def _entries(self) -> list[Entry]:
        return self._feed.entries


@attrs.define(slots=False)
class VideoPage(VideositePage):
    """A video's metadata, from the player's API call. ``page_params`` contains ``video``."""

    source: ClassVar[str] = "video"

    @classmethod
    def recognise(cls, body: str) -> bool:
        is_player = '"playabilityStatus"' in body or '"playerMicroformatRenderer"' in body
        return is_player and is_json(body) and not CHANNEL_MARK.search(body)

    def validate_input(self) -> None:
        """Raise an error unless the response contains the video's metadata.

        Even the response for a video that cannot be played may contain its metadata.

        Raises:
            UpstreamBlocked, UpstreamRateLimited, TargetNotFound, TargetRestricted: see ``_raise_for_unavailable``.
            UpstreamError: the request failed.
            ExtractionFailed: the response contains no metadata, or another video's metadata.
        """
        super().validate_input()
        if self._player.metadata is None:
            self._raise_for_unavailable()
            path = ("microformat", "playerMicroformatRenderer")
            raise missing_error("The response contains no video metadata.", path, reason="no_metadata")
        requested = text(self.page_params.get("video"))
        if not is_video_id(self._video) or (requested and requested != self._video):
            message = f"The metadata belong to another video: {self._video!r}, requested was {requested!r}."
            raise missing_error(message, ("videoDetails", "videoId"), reason="wrong_echo")
        if not count(self._metadata.seconds) and self._metadata.live is None:
            # All recorded videos state a length or a live broadcast; only those that are or were announced or live
            # have a length of 0, or none.
            self.unread.append(Unread("microformat.playerMicroformatRenderer.lengthSeconds", "missing"))
        live = self._metadata.live
        if live is not None and (live.is_now is None or live.start is None):
            # All recorded broadcasts state both. Without them, an announced video is like a finished one.
            name = "isLiveNow" if live.is_now is None else "startTimestamp"
            self.unread.append(Unread(f"microformat.playerMicroformatRenderer.liveBroadcastDetails.{name}", "missing"))
        if self._metadata.published and unix_time(self._metadata.published) is None:
            # In all recorded responses, the time has a UTC offset. Without an offset, the date is null.
            self.unread.append(Unread("microformat.playerMicroformatRenderer.publishDate", "type"))

    def _raise_for_unavailable(self) -> None:
        """Raise an error for the reason, stated by the player, why the video cannot be played.

        Raises:
            UpstreamBlocked: the player demands a proof that the visitor is not a bot, or a login for an unknown reason.
            UpstreamRateLimited: the player's message contains "try again later".
            TargetNotFound: the video does not exist or was removed.
            TargetRestricted: the video is private, for adults or members, or not available in this region.
        """
        status = self._player.status or ""
        message = self._player.reason or " ".join(self._player.messages)
        reported = f"The platform reported: {message or status}"
        mark = quoted(message or status, "playabilityStatus", "reason" if message else "status")
        if BOT.search(message):
            raise UpstreamBlocked(reported, reason="bot_check", details=mark)
        if "try again later" in message:
            raise UpstreamRateLimited(reported, reason="rate_limited", details=mark)
        if status == "ERROR":
            raise TargetNotFound(reported, reason="unavailable", details=mark)
        if status == LOGIN_REQUIRED and not FOR_SOME.search(message):
            raise UpstreamBlocked(reported, reason="login_wall", details=mark)
        if status and status != "OK":
            raise TargetRestricted(reported, reason=status.lower(), details=mark)

    @field
    def posts(self) -> list[dict[str, Any]]:
        data = self._metadata
        live = data.live
        short = data.is_short is True or "/shorts/" in (data.url or "")
        upcoming = live is not None and live.is_now is False and not live.end
        dates = (live.start if live and upcoming else None, data.published, data.uploaded)
        return [
            post(
                self._video,
                kind="short" if short else "live" if live else "video",
                caption=str(data.title or ""),
                description=str(data.description or ""),
                like_count=count(data.likes),
                published_date=first(map(unix_time, dates)),
                thumbnail_image=data.image,
                video_duration_seconds=count(data.seconds) or None,  # 0 while the stream is live
                view_count=None if upcoming else count(data.views),  # 0 before the stream starts
            )
        ]

    @field
    def profile(self) -> dict[str, Any]:
        data = self._metadata
        return blank(data.channel or "", handle=handle_in(data.channel_url or ""), name=data.channel_name or "")

    @cached_property
    def _player(self) -> Player:
        return self.read_data(Player)

    @property
    def _metadata(self) -> Metadata:
        assert self._player.metadata is not None  # see validate_input()
        return self._player.metadata

    @property
    def _video(self) -> str:
        return self._player.id or self._metadata.id or ""


@attrs.define(slots=False)
class ResolvePage(VideositePage):
    """The API response that resolves one of the platform's URLs to a channel or to another URL."""

    source: ClassVar[str] = "resolve"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return '"resolveUrlCommandMetadata"' in body

    def validate_input(self) -> None:
        """Raise an error unless the resolved URL leads to a channel or to another URL.

        Raises:
            TargetNotFound: the resolved URL is unknown, or leads to a page that is not a channel.
            ExtractionFailed: the ``endpoint`` object in the response is missing or of an unknown kind.
        """
        super().validate_input()
        if self._endpoint is None or self._endpoint.is_empty:
            raise missing_error("The response contains no endpoint of a known kind.", ("endpoint",), reason="blind")
        if not self.channel and not self.url:
            other = self._endpoint.video or self._endpoint.playlist or self._endpoint.channel or ""
            message = f"The address leads to another page than a channel: {other}."
            raise TargetNotFound(message, details=quoted(other, "endpoint"), reason="wrong_page_kind")

    @field
    def channel(self) -> str:
        found = (self._endpoint and self._endpoint.channel) or ""
        return found if CHANNEL_ID.matches(found) else ""

    @field
    def url(self) -> str:
        return (self._endpoint and self._endpoint.url) or ""

    @field
    def profile(self) -> dict[str, Any]:
        return blank(self.channel)

    @cached_property
    def _endpoint(self) -> Endpoint | None:
        return self.read_data(Resolved).endpoint
