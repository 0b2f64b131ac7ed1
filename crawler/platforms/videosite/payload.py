"""Video site: the contracts of a channel's page, its next pages and playlists, of single videos, of the about panel,
and of the rows in a channel's lists in each format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from crawler.reading.contract import Contract, NonEmpty, Unread, always, filled, identity, often, sometimes, values

_PANEL = "aboutChannelRenderer.metadata.aboutChannelViewModel"
_ADDED = f"appendContinuationItemsAction.continuationItems[].{_PANEL}"
_SHOWN = (
    "showEngagementPanelEndpoint.engagementPanel.engagementPanelSectionListRenderer.content.sectionListRenderer"
    f".contents[].itemSectionRenderer.contents[].{_PANEL}"
)


class Answer(Contract, nulls=False):
    """An object in a JSON response. No object of the recorded responses contains null: an empty value has no key."""


class Link(Answer):
    """A link in the panel. Its URL usually contains the platform's redirect; its text is the URL without a scheme."""

    url: str | None = often("commandRuns[0].onTap.innertubeCommand.urlEndpoint.url")
    text: str | None = often("content")


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
_LINES = f"{_ABOUT}.metadata.contentMetadataViewModel.metadataRows[]"
_OVERLAYS = "contentImage.thumbnailViewModel.overlays[]"
_BADGE = "thumbnailBottomOverlayViewModel.badges[].thumbnailBadgeViewModel.text"
_NEXT = "continuationCommand.token"
_DIGIT = re.compile(r"\d")


class Text(Answer, one_of=True):
    """A text as the older formats contain it: whole, or in parts (``runs``)."""

    simple: str | None = sometimes("simpleText")
    content: str | None = sometimes("content")
    runs: list[str] = sometimes("runs[].text")

    def __str__(self) -> str:
        return self.simple or self.content or "".join(self.runs)


class Owner(Answer):
    """A channel that a row links to as the owner of its video."""

    id: str | None = often("browseId")
    url: str | None = often("canonicalBaseUrl")


class Lockup(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_VIDEO")):
    """A video, or a live stream, in the format since 2026.

    693 of 693 recorded rows of lists have a picture and a label on it: the length, or LIVE. The 3 of them that state no
    number of views and are not live are for members or Premium users. According to the tests of other projects, rows
    without ``metadataRows`` occur.
    """

    id_path: ClassVar = "lockupViewModel.contentId"
    image_path: ClassVar = "lockupViewModel.contentImage.thumbnailViewModel.image.sources[-1].url"
    length_path: ClassVar = f"lockupViewModel.{_OVERLAYS}.{_BADGE}"
    views_path: ClassVar = f"lockupViewModel.{_LINES}.metadataParts[].text.content"
    owner_path: ClassVar = f"lockupViewModel.{_LINES[:-2]}[0].metadataParts[0].text.content"
    is_only_rounded: ClassVar = False

    id: str = identity("contentId")
    title: str | None = always(f"{_ABOUT}.title.content", often=True)
    parts: list[str] = often(f"{_LINES}.metadataParts[].text.content")
    """The texts below the title: in playlists the owner, then the number of views and the age. A line with badges has
    no texts."""
    channel: Owner | None = sometimes(
        f"{_LINES[:-2]}[0].metadataParts[0].text.commandRuns[0].onTap.innertubeCommand.browseEndpoint"
    )
    """The channel to which the first text below the title links. Rows in a channel's own tab have no such link."""
    channel_name: str | None = often(owner_path.removeprefix("lockupViewModel."))
    """The first text below the title: the owner's name, if it links to the owner."""
    marks: list[str] = sometimes(f"{_LINES}.badges[].badgeViewModel.badgeStyle")
    image: str | None = always("contentImage.thumbnailViewModel.image.sources[-1].url", often=True)
    badges: list[str] = often(
        f"{_OVERLAYS}.{_BADGE}",
        f"{_OVERLAYS}.thumbnailOverlayBadgeViewModel.thumbnailBadges[].thumbnailBadgeViewModel.text",
    )
    """The texts on the picture: the length, or a mark that the item is live. The second path, used in 2025, is
    documented by other projects."""
    url: str | None = filled(f"rendererContext.commandContext.{_TAP}.{_URL}")
    playlist: str | None = sometimes(f"rendererContext.commandContext.{_TAP}.watchEndpoint.playlistId")

    @property
    def lengths(self) -> list[str]:
        """The texts that may be the length."""
        return self.badges

    @property
    def is_untimed(self) -> bool:
        """Whether the picture's label is a word, such as LIVE, instead of a length."""
        return any(text and not _DIGIT.search(text) for text in self.badges)

    @property
    def hides_views(self) -> bool:
        """Whether the row is of a kind that has no number of views."""
        return self.is_untimed or bool({"BADGE_MEMBERS_ONLY", "BADGE_PREMIUM"}.intersection(self.marks))


class Playlist(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_PLAYLIST")):
    """A row that shows a playlist. Such rows are left out of the record."""


class Podcast(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_PODCAST")):
    """A row that shows a podcast. Such rows are left out of the record."""


class Album(Answer, tag=("contentType", "LOCKUP_CONTENT_TYPE_ALBUM")):
    """A row that shows an album. Such rows are left out of the record."""


class Short(Answer):
    """A short.

    In playlists, a short's number of views is only in its text for screen readers. All 146 shorts recorded since 2026
    have the ``always`` keys and a number of views. Until autumn 2025, the picture was at the second path (recorded in
    60 shorts of 2024-10).
    """

    id_path: ClassVar = f"shortsLockupViewModel.{_TAP}.reelWatchEndpoint.videoId"
    image_path: ClassVar = "shortsLockupViewModel.thumbnailViewModel.thumbnailViewModel.image.sources[0].url"
    length_path: ClassVar = ""
    views_path: ClassVar = "shortsLockupViewModel.overlayMetadata.secondaryText.content"
    lengths: ClassVar[list[str]] = []
    is_untimed: ClassVar = True
    hides_views: ClassVar = False
    is_only_rounded: ClassVar = False

    id: str = identity(f"{_TAP}.reelWatchEndpoint.videoId")
    title: str | None = always("overlayMetadata.primaryText.content", often=True)
    views: str | None = sometimes("overlayMetadata.secondaryText.content")
    accessible: str | None = filled("accessibilityText")
    image: str | None = always(
        "thumbnailViewModel.thumbnailViewModel.image.sources[0].url", "thumbnail.sources[0].url", often=True
    )
    playlist: str | None = sometimes(f"{_TAP}.reelWatchEndpoint.playlistId")


class TimeStatus(Answer):
    """The label on the picture of an item in the older format: its length, or a mark that it is live or a short."""

    style: str | None = filled("style")
    text: Text | None = filled("text")


class Byline(Answer):
    """The name of a video's owner, with a link to the channel. For several owners, there is no link to one channel."""

    name: str | None = often("text")
    channel: Owner | None = sometimes("navigationEndpoint.browseEndpoint")


class PlaylistVideo(Answer):
    """A video in a playlist, in the format before 2026-07.

    All 100 recorded rows, on one page, have a picture, a length, and a number of views in ``videoInfo``.
    """

    id_path: ClassVar = "videoId"
    image_path: ClassVar = "thumbnail.thumbnails[-1].url"
    length_path: ClassVar = "thumbnailOverlays[].thumbnailOverlayTimeStatusRenderer"
    views_path: ClassVar = "viewCountText"

    id: str = identity("videoId")
    title: Text | None = often("title")
    image: str | None = often("thumbnail.thumbnails[-1].url")
    url: str | None = often(f"navigationEndpoint.{_URL}")
    views: Text | None = sometimes("viewCountText")
    short_views: Text | None = sometimes("shortViewCountText")
    length: Text | None = sometimes("lengthText")
    published: Text | None = sometimes("publishedTimeText")
    info: Text | None = sometimes("videoInfo")
    statuses: list[TimeStatus] = often("thumbnailOverlays[].thumbnailOverlayTimeStatusRenderer")
    marks: list[str] = sometimes("badges[].metadataBadgeRenderer.style")
    bylines: list[Byline] = sometimes("shortBylineText.runs[]")
    playlist: str | None = sometimes("playlistId")

    @property
    def lengths(self) -> list[str]:
        """The texts that may be the length."""
        return [str(text) for text in (self.length, *(each.text for each in self.statuses)) if text]

    @property
    def is_untimed(self) -> bool:
        """Whether the row has a label such as LIVE, UPCOMING or SHORTS instead of a length."""
        is_live = "BADGE_STYLE_TYPE_LIVE_NOW" in self.marks
        return is_live or any(each.style != "DEFAULT" for each in self.statuses)

    @property
    def hides_views(self) -> bool:
        """Whether the row is of a kind that may have no number of views: live, or with any badge (20 of 58 in 2022)."""
        return self.is_untimed or bool(self.marks)

    @property
    def is_only_rounded(self) -> bool:
        """Whether the row has lost its exact number of views: all recorded rows have both numbers or none."""
        return self.short_views is not None and self.views is None


class Video(PlaylistVideo):
    """A video in the formats before 2026-05, which are still used for topic channels.

    238 of 238 rows on whole pages of 2026 have the keys that are declared ``always``.
    """

    title: Text | None = filled("title")
    image: str | None = filled("thumbnail.thumbnails[-1].url")
    url: str | None = filled(f"navigationEndpoint.{_URL}")
    views: Text | None = often("viewCountText")


class NextPage(Answer):
    """The row with the token for the next page of a list.

    In the newer format, which playlists use since 2026-06, both the key of the row and the path of the token differ.
    """

    token: NonEmpty = identity(
        f"continuationEndpoint.{_NEXT}",
        f"continuationCommand.innertubeCommand.{_NEXT}",
        f"continuationEndpoint.commandExecutorCommand.commands[-1].{_NEXT}",
        f"button.buttonRenderer.command.{_NEXT}",
    )


class AgeGate(Answer):
    """The age gate, which an age-restricted channel shows instead of its items."""

    title: str | None = sometimes("channelTitle")
    image: str | None = sometimes("avatar.thumbnails[-1].url")


class Message(Answer):
    """A message in place of items."""

    text: Text | None = sometimes("text")


class LeftOut(Answer):
    """A row that is known not to be an item, and is left out."""


class Formats(Answer, one_of=True):
    """A row of a list, with one attribute for each known format. A row of another format is left out and reported."""

    lockup: Lockup | Playlist | Podcast | Album | None = sometimes("lockupViewModel")
    short: Short | None = sometimes("shortsLockupViewModel")
    video: Video | None = sometimes("videoRenderer", "gridVideoRenderer")
    playlist_video: PlaylistVideo | None = sometimes("playlistVideoRenderer")
    next_page: NextPage | None = sometimes("continuationItemRenderer", "continuationItemViewModel")
    age_gate: AgeGate | None = sometimes("channelAgeGateRenderer")
    message: Message | None = sometimes("messageRenderer")
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
        return self.short or self.video or self.playlist_video

    @property
    def token(self) -> str:
        """The token for the list's next page, "" if the row contains no token."""
        return self.next_page.token if self.next_page else ""

    @property
    def is_blank(self) -> bool:
        """Whether no attribute of the row is set. No recorded row is empty."""
        return not any(getattr(self, each.name) for each in values(Formats))

    @property
    def is_empty_list(self) -> bool:
        """Whether the row may occur in a list without items: a message, an age gate, or the row for the next page."""
        return bool(self.message or self.next_page or self.age_gate)


class Row(Formats):
    """A row of a list, or of a part of the page that contains lists."""

    wrapped: Formats | None = sometimes("richItemRenderer.content")
    rows: Rows | None = sometimes("richGridRenderer", "itemSectionRenderer")
    sections: Sections | None = sometimes("sectionListRenderer")
    playlist: Rows | None = sometimes("playlistVideoListRenderer")
    grid: Grid | None = sometimes("gridRenderer")


class Rows(Answer):
    """A list, or a part of a page that contains lists."""

    rows: list[Row] = filled("contents[]")


class Sections(Answer):
    """The sections of a tab. The tab of a generated channel has sections without content beside its list."""

    rows: list[Row] = sometimes("contents[]")


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
        inner = each.rows or each.playlist or each.grid or each.sections
        if inner is not None:
            waiting += [(one, inner) for one in reversed(inner.rows)]
        elif parent is not None:
            yield Placed(each.wrapped or each, parent)


_PANEL_REQUEST = (
    "onTap.innertubeCommand.showEngagementPanelEndpoint.engagementPanel.engagementPanelSectionListRenderer.content"
    ".sectionListRenderer.contents[0].itemSectionRenderer.contents[0].continuationItemRenderer.continuationEndpoint"
    ".continuationCommand.token"
)
METADATA_PATH = "metadata.channelMetadataRenderer"
MICROFORMAT_PATH = "microformat.microformatDataRenderer"
HEADER_PATH = "header.pageHeaderRenderer.content.pageHeaderViewModel"
TABS_PATH = "contents.twoColumnBrowseResultsRenderer.tabs[]"
ABOUT_PATH = f"description.descriptionPreviewViewModel.rendererContext.commandContext.{_PANEL_REQUEST}"
LINES_PATH = "metadata.contentMetadataViewModel.metadataRows[]"
BADGE_PATH = "title.dynamicTextViewModel.text.attachmentRuns[]"
URL_PATH, PARAMS_PATH = "endpoint.commandMetadata.webCommandMetadata.url", "endpoint.browseEndpoint.params"
BANNER_MARK = b'"imageBannerViewModel"'


class Tracked(Answer):
    """A value from the request that the response repeats, such as the requested id."""

    key: str | None = filled("key")
    value: str | int | float | bool | None = always("value")


class Alert(Answer):
    """A message above the page's content, or instead of it."""

    type: str | None = sometimes("type")
    text: Text | None = sometimes("text")


class Response(Answer):
    """The common part of responses with a channel's page and of responses with a page of a list."""

    tracked: list[Tracked] = sometimes("responseContext.serviceTrackingParams[].params[]")
    alerts: list[Alert] = sometimes("alerts[].alertRenderer")

    @property
    def browse_id(self) -> str:
        """The requested id, as the response repeats it: a channel's id, or "VL" followed by a playlist's id."""
        return next((str(each.value) for each in self.tracked if each.key == "browse_id"), "")

    @property
    def error(self) -> str | None:
        """The text of the first alert about an error, None if there is none."""
        return next((str(each.text or "") for each in self.alerts if each.type == "ERROR"), None)


class Tab(Answer):
    """A tab of a channel, identified by its URL: the titles of tabs are translated, and the order of tabs varies.

    All 217 recorded tabs of channels with metadata have a URL and params. On other pages, the only tab may lack both.
    """

    url: str | None = sometimes(URL_PATH)
    params: str | None = sometimes(PARAMS_PATH)
    selected: bool | None = sometimes("selected")
    content: Row | None = sometimes("content")

    @property
    def name(self) -> str:
        """The end of the tab's URL, such as ``videos``."""
        return (self.url or "").partition("?")[0].rpartition("/")[2]


class TabEntry(Answer, one_of=True):
    """An entry in the list of a page's tabs."""

    tab: Tab | None = sometimes("tabRenderer")
    search: LeftOut | None = sometimes("expandableTabRenderer")


class Contents(Answer):
    """The part of a page below its header."""

    entries: list[TabEntry] = sometimes(TABS_PATH.partition(".")[2])

    @property
    def tabs(self) -> list[Tab]:
        """The tabs, without the tab that searches in the channel."""
        return [each.tab for each in self.entries if each.tab is not None]


class ChannelMetadata(Answer):
    """A channel's metadata. 32 of 32 whole recorded pages since 2026-01 have the keys that are declared ``always``."""

    id: str | None = always("externalId")
    name: str | None = always("title")
    biography: str | None = always("description")
    vanity_url: str | None = always("vanityChannelUrl")
    keywords: str | None = always("keywords")
    safe: bool | None = always("isFamilySafe")
    countries: list[str] = always("availableCountryCodes[]")
    image: str | None = always("avatar.thumbnails[-1].url")


class Attachment(Answer):
    """An icon after the channel's name: the badge of a verified channel or of an artist."""

    icons: list[str] = always("element.type.imageType.image.sources[].clientResource.imageName")


class HeaderLine(Answer):
    """A line of texts in the header: handle and pronouns, or numbers of subscribers and videos."""

    parts: list[str] = always("metadataParts[].text.content")


class Banner(Answer):
    """The banner of the header. For channels without a banner, the key is absent."""

    image: str | None = always("imageBannerViewModel.image.sources[-1].url")


class ChannelHeader(Answer):
    """The header of an ordinary channel. The header of a generated destination, such as News, has only a title."""

    title: str | None = always("title.dynamicTextViewModel.text.content")
    spoken_title: str | None = sometimes("title.dynamicTextViewModel.rendererContext.accessibilityContext.label")
    """The name followed by the badge in words. Only channels with a badge have this text."""
    attachments: list[Attachment] = sometimes(BADGE_PATH)
    lines: list[HeaderLine] = sometimes(LINES_PATH)
    banner: Banner | None = sometimes("banner")
    about_token: str | None = sometimes(
        ABOUT_PATH,
        f"attribution.attributionViewModel.suffix.commandRuns[0].{_PANEL_REQUEST}",
    )
    """The token of this channel's about panel. The token is read from the header only, because shelves contain other
    channels' tokens."""


class Game(Answer):
    """The header of a generated channel of a game."""

    title: Text | None = sometimes("title")
    description: Text | None = sometimes("description")
    image: str | None = sometimes("boxArt.thumbnails[-1].url")
    banner: str | None = sometimes("banner.thumbnails[-1].url")


class Topic(Answer):
    """The header of a generated channel of a topic, such as sports or music."""

    title: Text | None = sometimes("title")
    subtitle: Text | None = sometimes("subtitle")
    image: str | None = sometimes("avatar.thumbnails[-1].url")
    id: str | None = sometimes("subscribeButton.subscribeButtonRenderer.channelId")


class Header(Answer, one_of=True):
    """The header of a page, with one attribute for each known format."""

    channel: ChannelHeader | None = sometimes(HEADER_PATH.partition(".")[2])
    game: Game | None = sometimes("interactiveTabbedHeaderRenderer")
    topics: list[Topic] = sometimes("carouselHeaderRenderer.contents[].topicChannelDetailsRenderer")
    of_alert: LeftOut | None = sometimes("c4TabbedHeaderRenderer")
    """The header above an alert that the channel does not exist. It has only a placeholder for the picture."""


class Page(Response, PanelHolder):
    """A channel's page, with any tab open, or another response with alerts or a redirect only.

    Header, metadata and tabs are read independently of each other: generated channels have any combination of them. An
    age-restricted channel has only a tab.
    """

    moved_to: list[str] = sometimes(
        "onResponseReceivedActions[].navigateAction.endpoint.browseEndpoint.browseId",
    )
    metadata: ChannelMetadata | None = sometimes(METADATA_PATH)
    header: Header | None = sometimes("header")
    contents: Contents | None = sometimes("contents")
    canonical_url: str | None = sometimes(f"{MICROFORMAT_PATH}.urlCanonical")
    countries: list[str] = sometimes(f"{MICROFORMAT_PATH}.availableCountries[]")
    safe: bool | None = sometimes(f"{MICROFORMAT_PATH}.familySafe")

    @property
    def channel_header(self) -> ChannelHeader | None:
        """The header, if it is that of an ordinary channel."""
        return self.header.channel if self.header else None

    @property
    def tabs(self) -> list[Tab]:
        """The tabs, without the tab that searches in the channel."""
        return self.contents.tabs if self.contents else []

    def contradictions(self, block: bytes) -> list[Unread]:
        """Return what is missing, as other parts of the page show. ``block``: the JSON text of the page.

        On all recorded pages since 2024-07: a page has metadata if it has a whole header, or a topic's header and a
        canonical URL, and a header if it has metadata; exactly the channels with a badge have the text for screen
        readers (``spoken_title``). For channels without a banner, both the key ``banner`` and the text
        ``imageBannerViewModel`` are absent. The 35 pages with metadata or a game's header, and no others, have a
        canonical URL, and beside it the countries and the mark for families.
        """
        header, is_channel = self.channel_header, self.metadata is not None
        is_whole = header is not None and bool(header.lines or header.about_token)
        present: dict[str, object] = {}
        if is_channel:
            present["header"] = self.header and (self.header.channel or self.header.game or self.header.topics)
            present[f"{TABS_PATH}.tabRenderer.{URL_PATH}"] = all(tab.url for tab in self.tabs)
            present[f"{TABS_PATH}.tabRenderer.{PARAMS_PATH}"] = all(tab.params for tab in self.tabs)
        if is_whole or (self.header is not None and self.header.topics and self.canonical_url):
            present[METADATA_PATH] = is_channel
        if is_channel or (self.header is not None and self.header.game) or self.canonical_url:
            present[f"{MICROFORMAT_PATH}.urlCanonical"] = self.canonical_url
            present[f"{MICROFORMAT_PATH}.availableCountries"] = self.countries
            present[f"{MICROFORMAT_PATH}.familySafe"] = self.safe is not None
        if header is not None and (is_channel or is_whole):
            present[f"{HEADER_PATH}.{LINES_PATH}"] = header.lines
            present[f"{HEADER_PATH}.{ABOUT_PATH}"] = header.about_token
            present[f"{HEADER_PATH}.banner"] = header.banner or BANNER_MARK not in block
        found = [Unread(path, "missing") for path, value in present.items() if not value]
        if header is not None and header.spoken_title and not header.attachments:
            found.append(Unread(f"{HEADER_PATH}.{BADGE_PATH}", "contradiction"))
        return found


class Addition(Answer):
    """The rows that a command adds to a list."""

    rows: list[Row] = always("continuationItems[]")


class Action(Answer):
    """A command for the page that shows the list. Only the two declared commands add rows."""

    addition: Addition | None = sometimes("appendContinuationItemsAction", "reloadContinuationItemsCommand")


class Continuation(Response):
    """A continuation page of a list. A playlist's response has this format, or contains the rows in its only tab."""

    actions: list[Action] = sometimes("onResponseReceivedActions[]")
    endpoints: list[Action] = sometimes("onResponseReceivedEndpoints[]")
    metadata: ChannelMetadata | None = sometimes(METADATA_PATH)
    contents: Contents | None = sometimes("contents")


class Metadata(Answer):
    """A video's metadata. 22 of 22 recorded videos of 2026 have the keys that are declared ``always``.

    Numbers are texts. ``viewCount`` is 0 before a stream starts, and ``lengthSeconds`` is 0 while a stream is live.
    """

    id: str | None = sometimes("externalVideoId")
    """The video's id, which ``Player.id`` contains, too. Other projects read pages without this key."""
    channel: str | None = always("externalChannelId")
    channel_name: str | None = always("ownerChannelName")
    channel_url: str | None = always("ownerProfileUrl")
    url: str | None = always("canonicalUrl")
    title: Text | None = always("title")
    description: Text | None = always("description")
    published: str | None = always("publishDate")
    uploaded: str | None = always("uploadDate")
    image: str | None = always("thumbnail.thumbnails[-1].url")
    views: str | int | None = always("viewCount")
    likes: str | int | None = sometimes("likeCount")
    seconds: str | int | None = sometimes("lengthSeconds")
    is_short: bool | None = always("isShortsEligible")
    live: Broadcast | None = sometimes("liveBroadcastDetails")


class Broadcast(Answer):
    """The start and the end of a live stream."""

    is_now: bool | None = sometimes("isLiveNow")
    start: str | None = sometimes("startTimestamp")
    end: str | None = sometimes("endTimestamp")


class Player(Answer):
    """The player's response. Even if the video cannot be played, it may contain the metadata."""

    id: str | None = sometimes("videoDetails.videoId")
    status: str | None = sometimes("playabilityStatus.status")
    reason: str | None = sometimes("playabilityStatus.reason")
    messages: list[str] = sometimes("playabilityStatus.messages[]")
    metadata: Metadata | None = sometimes("microformat.playerMicroformatRenderer")


class Endpoint(Answer, one_of=True):
    """The destination of one of the platform's URLs."""

    channel: str | None = sometimes("browseEndpoint.browseId")
    url: str | None = sometimes("urlEndpoint.url")
    video: str | None = sometimes("watchEndpoint.videoId", "reelWatchEndpoint.videoId")
    playlist: str | None = sometimes("watchEndpoint.playlistId")

    @property
    def is_empty(self) -> bool:
        """Whether the response states no known destination. The response for an unknown URL has status 404 instead."""
        return not (self.channel or self.url or self.video or self.playlist)


class Resolved(Answer):
    """The response with the destination of a URL."""

    endpoint: Endpoint | None = sometimes("endpoint")


class Failure(Answer):
    """A response that only states an error."""

    code: int | str | None = sometimes("error.code")
