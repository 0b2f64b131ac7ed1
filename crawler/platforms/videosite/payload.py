"""Video site: the contracts of a channel's page, its next pages and playlists, and of single videos."""

from __future__ import annotations

from crawler.platforms.videosite.payload_rows import Answer, LeftOut, PanelHolder, Row, Text
from crawler.reading.contract import always, filled, sometimes
from crawler.reading.unread import Unread

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
        return (self.url or "").partition("?")[0].rstrip("/").rpartition("/")[2]


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
