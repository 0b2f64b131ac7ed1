"""Video site: the contracts of the about panel, and of the rows in a channel's lists in each format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from crawler.reading.contract import Contract, NonEmpty, always, identity, often, sometimes, values

_PANEL = "aboutChannelRenderer.metadata.aboutChannelViewModel"
_ADDED = f"appendContinuationItemsAction.continuationItems[].{_PANEL}"
_SHOWN = (
    "showEngagementPanelEndpoint.engagementPanel.engagementPanelSectionListRenderer.content.sectionListRenderer"
    f".contents[].itemSectionRenderer.contents[].{_PANEL}"
)


class Answer(Contract, nulls=False):
    """An object in a JSON response. No object of the 66 recorded responses contains null: an empty value has no key."""


class Link(Answer):
    """A link in the panel. Its URL usually contains the platform's redirect; its text is the URL without a scheme."""

    url: str | None = sometimes("commandRuns[0].onTap.innertubeCommand.urlEndpoint.url")
    text: str | None = sometimes("content")


class Panel(Answer, one_of=True):
    """A channel's about panel.

    Only one recorded response contains a panel; to declare a key as ``always``, at least five are needed.
    """

    channel: str | None = sometimes("channelId")
    channel_url: str | None = sometimes("canonicalChannelUrl")
    description: str | None = sometimes("description")
    country: str | None = sometimes("country")
    joined: str | None = sometimes("joinedDateText.content")
    subscribers: str | None = sometimes("subscriberCountText")
    videos: str | None = sometimes("videoCountText")
    views: str | None = sometimes("viewCountText")
    links: list[Link] = sometimes("links[].channelExternalLinkViewModel.link")


class PanelHolder(Answer):
    """A response that may contain the about panel: from the panel's API call, or a channel's page with the panel open.

    The panel is not read from the page's contents, because the shelves there contain the panels of other channels.
    """

    panels: list[Panel] = sometimes(
        *(f"onResponseReceivedEndpoints[].{_ADDED}", f"onResponseReceivedEndpoints[].{_SHOWN}"),
        f"onResponseReceivedActions[].{_ADDED}",
    )


_URL = "commandMetadata.webCommandMetadata.url"
_TAP = "onTap.innertubeCommand"
_ABOUT = "metadata.lockupMetadataViewModel"
_OVERLAYS = "contentImage.thumbnailViewModel.overlays[]"
_NEXT = "continuationCommand.token"


class Text(Answer, one_of=True):
    """A text as the older formats contain it: whole, or in parts (``runs``)."""

    simple: str | None = sometimes("simpleText")
    content: str | None = sometimes("content")
    runs: list[str] = sometimes("runs[].text")

    def __str__(self) -> str:
        return self.simple or self.content or "".join(self.runs)


class Lockup(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_VIDEO")):
    """A video, or a live stream, in the format since 2026.

    433 of 433 recorded rows, on 13 whole pages of seven channels, have the keys that are declared ``always``. According
    to the tests of other projects, rows without ``metadataRows`` occur.
    """

    id_path: ClassVar = "lockupViewModel.contentId"
    id: str = identity("contentId")
    title: str | None = always(f"{_ABOUT}.title.content", often=True)
    parts: list[str] = often(
        f"{_ABOUT}.metadata.contentMetadataViewModel.metadataRows[].metadataParts[].text.content",
    )
    """The texts below the title, such as the number of views and the age. A line with badges has no texts."""
    image: str | None = always("contentImage.thumbnailViewModel.image.sources[-1].url", often=True)
    badges: list[str] = often(
        f"{_OVERLAYS}.thumbnailBottomOverlayViewModel.badges[].thumbnailBadgeViewModel.text",
        f"{_OVERLAYS}.thumbnailOverlayBadgeViewModel.thumbnailBadges[].thumbnailBadgeViewModel.text",
    )
    """The texts on the picture: the length, or a mark that the item is live. The second path, used in 2025, is
    documented by other projects."""
    url: str | None = always(f"rendererContext.commandContext.{_TAP}.{_URL}")
    playlist: str | None = sometimes(f"rendererContext.commandContext.{_TAP}.watchEndpoint.playlistId")


class Playlist(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_PLAYLIST")):
    """A row that shows a playlist. Such rows are left out of the record."""


class Podcast(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_PODCAST")):
    """A row that shows a podcast. Such rows are left out of the record."""


class Album(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_ALBUM")):
    """A row that shows an album. Such rows are left out of the record."""


class Short(Answer):
    """A short.

    In playlists, a short's number of views is only in its text for screen readers. All 110 shorts on three whole pages,
    recorded since 2026-01, have the ``always`` keys.
    """

    id_path: ClassVar = f"shortsLockupViewModel.{_TAP}.reelWatchEndpoint.videoId"
    id: str = identity(f"{_TAP}.reelWatchEndpoint.videoId")
    title: str | None = always("overlayMetadata.primaryText.content", often=True)
    views: str | None = sometimes("overlayMetadata.secondaryText.content")
    accessible: str | None = always("accessibilityText")
    image: str | None = always("thumbnailViewModel.thumbnailViewModel.image.sources[0].url", often=True)
    playlist: str | None = sometimes(f"{_TAP}.reelWatchEndpoint.playlistId")


class TimeStatus(Answer):
    """The label on the picture of an item in the older format: its length, or a mark that it is live or a short."""

    style: str | None = always("style")
    text: Text | None = always("text")


class PlaylistVideo(Answer):
    """A video in a playlist, in the older format. No recorded page contains such a row."""

    id_path: ClassVar = "videoId"
    id: str = identity("videoId")
    title: Text | None = sometimes("title")
    image: str | None = sometimes("thumbnail.thumbnails[-1].url")
    url: str | None = sometimes(f"navigationEndpoint.{_URL}")
    views: Text | None = sometimes("viewCountText")
    short_views: Text | None = sometimes("shortViewCountText")
    length: Text | None = sometimes("lengthText")
    published: Text | None = sometimes("publishedTimeText")
    info: Text | None = sometimes("videoInfo")
    statuses: list[TimeStatus] = sometimes("thumbnailOverlays[].thumbnailOverlayTimeStatusRenderer")
    playlist: str | None = sometimes("playlistId")


class Video(PlaylistVideo):
    """A video in the formats before 2026, which are still used for topic channels.

    148 of 148 recorded rows of 2026 have the keys that are declared ``always``.
    """

    title: Text | None = always("title")
    image: str | None = always("thumbnail.thumbnails[-1].url")
    url: str | None = always(f"navigationEndpoint.{_URL}")
    views: Text | None = often("viewCountText")
    statuses: list[TimeStatus] = often("thumbnailOverlays[].thumbnailOverlayTimeStatusRenderer")


class NextPage(Answer):
    """The row with the token for the next page of a list. The format of this row changed in 2026."""

    token: NonEmpty = identity(
        f"continuationEndpoint.{_NEXT}",
        f"continuationCommand.innertubeCommand.{_NEXT}",
        f"continuationEndpoint.commandExecutorCommand.commands[-1].{_NEXT}",
        f"button.buttonRenderer.command.{_NEXT}",
    )


class NextPageModel(Answer):
    """The row with the token for the next page, in the newer format, which playlists use since 2026-06."""

    token: NonEmpty = identity(f"continuationCommand.innertubeCommand.{_NEXT}", f"continuationEndpoint.{_NEXT}")


class AgeGate(Answer):
    """The age gate, which an age-restricted channel shows instead of its items."""

    title: str | None = sometimes("channelTitle")
    image: str | None = sometimes("avatar.thumbnails[-1].url")


class LeftOut(Answer):
    """A row that is known not to be an item, and is left out."""


class Formats(Answer, one_of=True):
    """A row of a list, with one attribute for each known format. A row of another format is left out and reported."""

    lockup: Lockup | Playlist | Podcast | Album | None = sometimes("lockupViewModel")
    short: Short | None = sometimes("shortsLockupViewModel")
    video: Video | None = sometimes("videoRenderer")
    grid_video: Video | None = sometimes("gridVideoRenderer")
    playlist_video: PlaylistVideo | None = sometimes("playlistVideoRenderer")
    next_page: NextPage | None = sometimes("continuationItemRenderer")
    next_page_model: NextPageModel | None = sometimes("continuationItemViewModel")
    age_gate: AgeGate | None = sometimes("channelAgeGateRenderer")
    message: LeftOut | None = sometimes("messageRenderer")
    """A message instead of items, which means that the list is empty."""
    advert: LeftOut | None = sometimes("adSlotRenderer")
    shelf: LeftOut | None = sometimes(
        *("richSectionRenderer", "shelfRenderer", "reelShelfRenderer"),
        *("horizontalCardListRenderer", "recognitionShelfRenderer", "channelVideoPlayerRenderer"),
    )
    """Shelves, which repeat items of the list or contain other items."""
    list_of_videos: LeftOut | None = sometimes(
        *("playlistRenderer", "gridPlaylistRenderer", "gridShowRenderer", "radioRenderer", "showRenderer"),
    )
    post: LeftOut | None = sometimes("backstagePostThreadRenderer", "postRenderer", "sharedPostRenderer")
    channel: LeftOut | None = sometimes("channelRenderer", "gridChannelRenderer")

    @property
    def item(self) -> Lockup | Short | PlaylistVideo | None:
        """The item, None if the row is not an item."""
        if isinstance(self.lockup, Lockup):
            return self.lockup
        return self.short or self.video or self.grid_video or self.playlist_video

    @property
    def token(self) -> str:
        """The token for the list's next page, "" if the row contains no token."""
        link = self.next_page or self.next_page_model
        return "" if link is None else link.token

    @property
    def is_blank(self) -> bool:
        """Whether no attribute of the row is set. No recorded row is empty."""
        return not any(getattr(self, each.name) for each in values(Formats))

    @property
    def is_empty_list(self) -> bool:
        """Whether the row may occur in a list without items: a message, an age gate, or the row for the next page."""
        return bool(self.message or self.next_page or self.next_page_model or self.age_gate)


class Row(Formats):
    """A row of a list, or of a part of the page that contains lists."""

    wrapped: Formats | None = sometimes("richItemRenderer.content")
    rows: Rows | None = sometimes("richGridRenderer", "itemSectionRenderer", "sectionListRenderer")
    playlist: Rows | None = sometimes("playlistVideoListRenderer")
    grid: Grid | None = sometimes("gridRenderer")


class Rows(Answer):
    """A list, or a part of a page that contains lists."""

    rows: list[Row] = always("contents[]")


class Grid(Answer):
    """A list in the oldest format."""

    rows: list[Row] = always("items[]")


class Placed(NamedTuple):
    """A row, and the list that directly contains it."""

    row: Formats
    parent: object


def flat(row: Row) -> Iterator[Placed]:
    """Yield the innermost rows inside a row, in the platform's order."""
    waiting: list[tuple[Row, object]] = [(row, None)]
    while waiting:
        each, parent = waiting.pop()
        inner = each.rows or each.playlist or each.grid
        if inner is not None:
            waiting += [(one, inner) for one in reversed(inner.rows)]
        elif parent is not None:
            yield Placed(each.wrapped or each, parent)
