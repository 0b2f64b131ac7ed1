"""Video site: page objects for the responses that complete a record, and for the channel that a URL leads to."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

import attrs
from parsel import Selector
from web_poet import field

from crawler.errors import TargetNotFound, TargetRestricted, UpstreamBlocked, UpstreamError, UpstreamRateLimited
from crawler.platforms.page import missing_error
from crawler.platforms.videosite.base import CHANNEL_MARK, VideositePage
from crawler.platforms.videosite.item import VIEWS, Path, is_video_id, node_text, post
from crawler.platforms.videosite.profile import (
    about_of,
    blank,
    creation,
    first,
    handle_in,
    panel_of,
)
from crawler.platforms.videosite.schema import CHANNEL_ID
from crawler.reading.json import assigned_block, dicts, dig, find_all
from crawler.reading.values import count, stated_count, text, unix_time

ATOM = "http://www.w3.org/2005/Atom"
_NAMESPACES = {
    "a": ATOM,
    "yt": "http://www.youtube.com/xml/schemas/2015",
    "media": "http://search.yahoo.com/mrss/",
}
PLAYER = "ytInitialPlayerResponse"
BOT = re.compile(r"\b(?:ro)?bot\b", re.IGNORECASE)
"""Matches the player's demand to prove that the visitor is not a bot."""
COMMENT_PANELS = ("engagement-panel-comments", "comment-item-section")
"""Beginnings of the names of the panel with a video's comments: the current name, and the name until 2023."""


STATED = {
    "joinedDateText": "account_creation_date",
    "subscriberCountText": "follower_count",
    "videoCountText": "content_count",
    "viewCountText": "total_views",
}
"""Texts in the about panel that state a number or a date, and the fields that are read from them."""


@attrs.define(slots=False)
class AboutPage(VideositePage):
    """A channel's about panel, from its API call or from the page that contains it. ``page_params`` has ``channel``."""

    source: ClassVar[str] = "about"

    @classmethod
    def recognise(cls, body: str) -> bool:
        about = '"aboutChannelViewModel"' in body or '"channelAboutFullMetadataRenderer"' in body
        return about and not CHANNEL_MARK.search(body)

    def validate_input(self) -> None:
        """Raise an error unless the response has the channel's about panel.

        Raises:
            ExtractionFailed: the response has no panel, or another channel's panel.
        """
        super().validate_input()
        if not self._panel:
            path = ("onResponseReceivedEndpoints", 0, "appendContinuationItemsAction")
            raise missing_error("The response has no about panel.", path, reason="no_about_panel")
        requested = text(self.page_params.get("channel"))
        if requested and self.channel and self.channel != requested:
            message = f"The panel belongs to another channel: {self.channel}, requested was {requested}."
            raise missing_error(message, ("aboutChannelViewModel", "channelId"), reason="wrong_echo")
        unread = [key for key, name in STATED.items() if node_text(self._panel.get(key)) and name not in self.about]
        if unread:
            self.skip_language("The about panel", ("aboutChannelViewModel", unread[0]))

    @field
    def channel(self) -> str:
        return text(self._panel.get("channelId"))

    @field
    def about(self) -> dict[str, Any]:
        return about_of(self._panel)

    @field
    def profile(self) -> dict[str, Any]:
        """The channel, with the fields in the panel. It is for a panel that was saved without the channel's page."""
        handle = handle_in(text(self._panel.get("canonicalChannelUrl")))
        return {**blank(self.channel, handle=handle), "biography": node_text(self._panel.get("description"))}

    @cached_property
    def _panel(self) -> dict[str, Any]:
        return panel_of(self.data)


@attrs.define(slots=False)
class FeedPage(VideositePage):
    """An Atom feed: the newest 15 items and exact counts. ``page_params``: ``channel``, ``tab`` for a playlist."""

    source: ClassVar[str] = "feed"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return "<feed" in body[:1_000] and ATOM in body[:1_000]

    def validate_input(self) -> None:
        """Raise an error unless the response is the channel's feed.

        Raises:
            UpstreamError: the request failed. Status 404 counts as a failure, because existing channels with live
                streams temporarily have no feed.
            ExtractionFailed: the response is not a feed, or is another channel's feed, or has only entries that were
                not understood.
        """
        if self.response.status in {404, 410}:
            raise UpstreamError("The channel has no feed.", upstream_status=self.response.status, reason="no_feed")
        self.raise_for_failures()
        self._raise_for_blocks()
        if self._feed is None:
            raise missing_error("The response is not an Atom feed.", ("feed",), reason="no_data_block")
        requested = text(self.page_params.get("channel"))
        if requested and self.channel and self.channel != requested:
            message = f"The feed belongs to another channel: {self.channel}, requested was {requested}."
            raise missing_error(message, ("feed", "yt:channelId"), reason="wrong_echo")
        unread = [index for index, each in enumerate(self._entries) if self._post(each) is None]
        renamed = [
            each for each in self._feed if len(each) and each.tag not in {f"{{{ATOM}}}entry", f"{{{ATOM}}}author"}
        ]
        if unread or renamed:
            paths: list[Path] = [("feed", "entry", index) for index in unread[:10]] or [("feed", "entry")]
            error = missing_error("Entries of the feed have no video id or no link.", *paths, reason="blind")
            if len(unread) == len(self._entries):
                raise error
            self.skip(error)

    @field
    def channel(self) -> str:
        ids = [self._one("yt:channelId"), self._one("a:author/a:uri").rpartition("/")[2]]
        ids += [text(each.text) for each in self._all("a:entry/yt:channelId")]
        # The channel id at the top of the feed lacks the prefix "UC", which all channel ids have.
        prefixed = (each if each.startswith("UC") else f"UC{each}" for each in ids)
        return next((each for each in prefixed if re.fullmatch(CHANNEL_ID, each)), "")

    @field
    def profile(self) -> dict[str, Any]:
        return blank(self.channel, name=self._one("a:author/a:name") or self._one("a:title"))

    @field
    def created(self) -> dict[str, Any]:
        """Both fields of the channel's creation date; {} for a playlist's feed, which has the playlist's date."""
        moment = unix_time(self._one("a:published"))
        is_channels = "playlist_id=" not in self._one("a:link[@rel='self']/@href")
        return creation(datetime.fromtimestamp(moment, UTC)) if moment and is_channels else {}

    @field
    def posts(self) -> list[dict[str, Any]]:
        found = map(self._post, self._entries)
        return list({each["content_id"]: each for each in found if each is not None}.values())

    @cached_property
    def _entries(self) -> list[Any]:
        return self._all("a:entry")

    def _post(self, entry: Any) -> dict[str, Any] | None:
        """Return an entry's item, or None if it lacks a video's id or link. A link with ``/shorts/`` is a short's."""
        video = self._one("yt:videoId", entry)
        link = self._one("a:link[@rel='alternate']/@href", entry)
        if not is_video_id(video) or not link:
            return None
        likes = count(self._one("media:group/media:community/media:starRating/@count", entry))
        short = "/shorts/" in link
        return post(
            video,
            kind="short" if short else "live" if self.requested_tab == "streams" else "video",
            caption=self._one("a:title", entry),
            description=self._one("media:group/media:description", entry),
            like_count=likes or None,  # the platform also states 0 if likes are hidden
            published_date=unix_time(self._one("a:published", entry)),
            thumbnail_image=self._one("media:group/media:thumbnail/@url", entry),
            view_count=count(self._one("media:group/media:community/media:statistics/@views", entry)),
        )

    @cached_property
    def _feed(self) -> Any:
        """The feed's root element, or None if the response is not a feed."""
        body = self._body.strip()
        root = Selector(body=body, type="xml").root if body.startswith(b"<") else None
        return root if getattr(root, "tag", None) == f"{{{ATOM}}}feed" else None

    def _all(self, path: str) -> list[Any]:
        return [] if self._feed is None else self._feed.findall(path, _NAMESPACES)

    def _one(self, path: str, node: Any = None) -> str:
        """Return the text or attribute of the first element at a path below a node, by default below the feed."""
        element_path, _, name = path.partition("/@")
        parent = self._feed if node is None else node
        found = None if parent is None else parent.find(element_path, _NAMESPACES)
        return "" if found is None else text(found.get(name) if name else found.text)


@attrs.define(slots=False)
class VideoPage(VideositePage):
    """A video's metadata, from the player's API call or the video's page. ``page_params`` has ``video``."""

    source: ClassVar[str] = "video"

    @classmethod
    def recognise(cls, body: str) -> bool:
        player = '"playabilityStatus"' in body and body.lstrip().startswith("{") and not CHANNEL_MARK.search(body)
        return player or '"playerMicroformatRenderer"' in body or f"{PLAYER} = {{" in body

    def validate_input(self) -> None:
        """Raise an error unless the response has the video's metadata. An unplayable video may have metadata, too.

        Raises:
            UpstreamBlocked, UpstreamRateLimited, TargetNotFound, TargetRestricted: see ``_raise_for_unavailable``.
            ExtractionFailed: the response has no metadata, or another video's metadata.
        """
        super().validate_input()
        if not self._micro:
            self._raise_for_unavailable()
            raise missing_error(
                "The response has no video metadata.",
                ("microformat", "playerMicroformatRenderer"),
                reason="no_metadata",
            )
        requested = text(self.page_params.get("video"))
        if not is_video_id(self._video) or (requested and requested != self._video):
            message = f"The metadata belong to another video: {self._video!r}, requested was {requested!r}."
            raise missing_error(message, ("videoDetails", "videoId"), reason="wrong_echo")

    def _raise_for_unavailable(self) -> None:
        """Raise the error that the player states as the reason why the video cannot be played.

        Raises:
            UpstreamBlocked: the player demands a check whether the visitor is a bot.
            UpstreamRateLimited: the player asks to try again later.
            TargetNotFound: the video does not exist or was removed.
            TargetRestricted: the video is private, for adults or members, or not available in this region.
        """
        status = text(dig(self.data, "playabilityStatus", "status"))
        message = text(dig(self.data, "playabilityStatus", "reason"))
        reported = f"The platform reported: {message or status}"
        if BOT.search(message):
            raise UpstreamBlocked(reported, reason="bot_check")
        if "try again later" in message:
            raise UpstreamRateLimited(reported, reason="rate_limited")
        if status == "ERROR":
            raise TargetNotFound(reported, reason="unavailable")
        if status and status != "OK":
            raise TargetRestricted(reported, reason=status.lower())

    @field
    def posts(self) -> list[dict[str, Any]]:
        micro = self._micro
        short = "/shorts/" in text(micro.get("canonicalUrl")) or micro.get("isShortsEligible") is True
        live = micro.get("liveBroadcastDetails")
        upcoming = dig(live, "isLiveNow") is False and not dig(live, "endTimestamp")
        dates = (dig(live, "startTimestamp") if upcoming else None, micro.get("publishDate"), micro.get("uploadDate"))
        return [
            post(
                self._video,
                kind="short" if short else "live" if isinstance(live, dict) else "video",
                caption=node_text(micro.get("title")),
                description=node_text(micro.get("description")),
                like_count=count(micro.get("likeCount")),
                published_date=first(*map(unix_time, dates)),
                thumbnail_image=text(dig(micro, "thumbnail", "thumbnails", -1, "url")),
                video_duration_seconds=count(micro.get("lengthSeconds")) or None,  # 0 while the stream is live
                view_count=None if upcoming else count(micro.get("viewCount")),  # 0 before the stream starts
            )
        ]

    @field
    def profile(self) -> dict[str, Any]:
        channel = text(self._micro.get("externalChannelId"))
        handle = handle_in(text(self._micro.get("ownerProfileUrl")))
        return blank(channel, handle=handle, name=text(self._micro.get("ownerChannelName")))

    @cached_property
    def _block(self) -> bytes | None:
        """The JSON text of the player's data. A video's page contains the player's data and the page's own data."""
        player = assigned_block(self._body, PLAYER)
        return super()._block if player is None else player

    @cached_property
    def _micro(self) -> dict[str, Any]:
        micro = dig(self.data, "microformat", "playerMicroformatRenderer")
        return micro if isinstance(micro, dict) else {}

    @property
    def _video(self) -> str:
        return text(dig(self.data, "videoDetails", "videoId")) or text(self._micro.get("externalVideoId"))


@attrs.define(slots=False)
class CommentsPage(VideositePage):
    """A video page's own data, without the player's data. Only this data has the number of comments.

    The spider does not request it. It is read only from saved responses.
    """

    source: ClassVar[str] = "comments"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return '"twoColumnWatchNextResults"' in body and '"playerMicroformatRenderer"' not in body

    def validate_input(self) -> None:
        """Raise an error unless the response has the data of a video's page.

        Raises:
            ExtractionFailed: the response has no part about the video, or no valid video id.
        """
        super().validate_input()
        columns = dig(self.data, "contents", "twoColumnWatchNextResults")
        if dig(columns, "secondaryResults") is not None and dig(columns, "results") is None:
            path = ("contents", "twoColumnWatchNextResults", "results")
            message = "The response has recommendations, but no part about the video itself."
            raise missing_error(message, path, reason="no_metadata")
        if not is_video_id(self._video):
            raise missing_error(
                "The response has no video id.", ("currentVideoEndpoint", "watchEndpoint"), reason="no_metadata"
            )

    @field
    def posts(self) -> list[dict[str, Any]]:
        primary = self._part("videoPrimaryInfoRenderer")
        views = dig(primary, "viewCount", "videoViewCountRenderer", "viewCount")
        return [
            post(
                self._video,
                kind="live" if dig(primary, "viewCount", "videoViewCountRenderer", "isLive") is True else "video",
                caption=node_text(self._part("videoPrimaryInfoRenderer").get("title")),
                description=node_text(self._part("videoSecondaryInfoRenderer").get("attributedDescription")),
                comment_count=self._comments,
                view_count=stated_count(node_text(views), VIEWS),
            )
        ]

    @field
    def profile(self) -> dict[str, Any]:
        owner = dig(self._part("videoSecondaryInfoRenderer"), "owner", "videoOwnerRenderer")
        # The owner of a collaboration is the first channel in a dialog.
        ids = (text(each) for each in find_all(owner, "browseId"))
        channel = next((each for each in ids if re.fullmatch(CHANNEL_ID, each)), "")
        handle = handle_in(text(next(find_all(owner, "canonicalBaseUrl"), "")))
        listed = next(find_all(owner, "listItemViewModel"), None)
        name = node_text(dig(owner, "title")) or node_text(dig(listed, "title"))
        return blank(channel, handle=handle, name=name or node_text(dig(owner, "attributedTitle")))

    @property
    def _comments(self) -> int | None:
        for each in dicts(dig(self.data, "engagementPanels")):
            panel = dig(each, "engagementPanelSectionListRenderer")
            if text(dig(panel, "panelIdentifier")).startswith(COMMENT_PANELS):
                info = dig(panel, "header", "engagementPanelTitleHeaderRenderer", "contextualInfo")
                return stated_count(node_text(info))
        return None

    @property
    def _video(self) -> str:
        current = text(dig(self.data, "currentVideoEndpoint", "watchEndpoint", "videoId"))
        # Scheduled streams have no such endpoint, but buttons with the video's id.
        return current or text(next(find_all(self._part("videoPrimaryInfoRenderer"), "videoId"), ""))

    def _part(self, name: str) -> dict[str, Any]:
        contents = dig(self.data, "contents", "twoColumnWatchNextResults", "results", "results", "contents")
        parts = (each.get(name) for each in dicts(contents))
        return next((part for part in parts if isinstance(part, dict)), {})


ENDPOINTS = ("browseEndpoint", "urlEndpoint", "watchEndpoint", "reelWatchEndpoint")


@attrs.define(slots=False)
class ResolvePage(VideositePage):
    """The API response that states which channel, or which other URL, one of the platform's URLs leads to."""

    source: ClassVar[str] = "resolve"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return '"resolveUrlCommandMetadata"' in body or ('"endpoint"' in body and "ResolveUrl_rid" in body)

    def validate_input(self) -> None:
        """Raise an error unless the resolved URL leads to a channel or to another URL.

        Raises:
            TargetNotFound: the resolved URL is unknown, or leads to a page that is not a channel.
            ExtractionFailed: the ``endpoint`` object in the response is missing or of an unknown kind.
        """
        super().validate_input()
        endpoint = dig(self.data, "endpoint")
        keys = ("browseId", "url", "videoId", "playlistId")
        if not any(True for kind in ENDPOINTS for key in keys if dig(endpoint, kind, key)):
            raise missing_error("The response has no endpoint of a known kind.", ("endpoint",), reason="blind")
        if not self.channel and not self.url:
            raise TargetNotFound("The address does not lead to a channel.", reason="wrong_page_kind")

    @field
    def channel(self) -> str:
        found = text(dig(self.data, "endpoint", "browseEndpoint", "browseId"))
        return found if re.fullmatch(CHANNEL_ID, found) else ""

    @field
    def url(self) -> str:
        return text(dig(self.data, "endpoint", "urlEndpoint", "url"))

    @field
    def profile(self) -> dict[str, Any]:
        return blank(self.channel)
