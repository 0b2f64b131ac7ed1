"""Video site: the contracts of a channel's page, its next pages and playlists, and of single videos."""

from __future__ import annotations

from crawler.platforms.videosite.payload_rows import Answer, LeftOut, PanelHolder, Row, Text
from crawler.reading.contract import always, sometimes
from crawler.reading.unread import Unread

_HEADER = "header.pageHeaderRenderer.content.pageHeaderViewModel"
_METADATA = "metadata.channelMetadataRenderer"
_COLUMNS = "contents.twoColumnBrowseResultsRenderer"
_PANEL_REQUEST = (
    "onTap.innertubeCommand.showEngagementPanelEndpoint.engagementPanel.engagementPanelSectionListRenderer.content"
    ".sectionListRenderer.contents[0].itemSectionRenderer.contents[0].continuationItemRenderer.continuationEndpoint"
    ".continuationCommand.token"
)
BADGE_PATH = f"{_HEADER}.title.dynamicTextViewModel.text.attachmentRuns[]"
BANNER_PATH = f"{_HEADER}.banner"
BANNER_MARK = b'"imageBannerViewModel"'
_ICON = "element.type.imageType.image.sources[].clientResource.imageName"


class Tracked(Answer):
    """A value from the request that the response repeats, such as the requested id."""

    key: str | None = sometimes("key")
    value: str | int | float | bool | None = sometimes("value")


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
    """A tab of a channel, identified by its URL: the titles of tabs are translated, and the order of tabs varies."""

    url: str | None = always("endpoint.commandMetadata.webCommandMetadata.url")
    params: str | None = always("endpoint.browseEndpoint.params")
    selected: bool | None = sometimes("selected")
    content: Row | None = sometimes("content")

    @property
    def name(self) -> str:
        """The end of the tab's URL, such as ``videos``."""
        return (self.url or "").partition("?")[0].rstrip("/").rpartition("/")[2]


class UnnamedTab(Tab):
    """A tab on a page that is not an ordinary channel's. Such a tab may have no URL."""

    url: str | None = sometimes("endpoint.commandMetadata.webCommandMetadata.url")
    params: str | None = sometimes("endpoint.browseEndpoint.params")


class TabEntry(Answer, one_of=True):
    """An entry in the list of a channel's tabs."""

    tab: Tab | None = sometimes("tabRenderer")
    search: LeftOut | None = sometimes("expandableTabRenderer")


class Attachment(Answer):
    """An icon after the channel's name: the badge of a verified channel or of an artist."""

    icons: list[str] = always(_ICON)


class HeaderLine(Answer):
    """A line of texts in the header: handle and pronouns, or numbers of subscribers and videos."""

    parts: list[str] = always("metadataParts[].text.content")


class Banner(Answer):
    """The banner of the header. For channels without a banner, the key is absent."""

    image: str | None = always("imageBannerViewModel.image.sources[-1].url")


class Page(Response, PanelHolder):
    """The common part of a channel's pages and of other pages."""

    moved_to: list[str] = sometimes(
        "onResponseReceivedActions[].navigateAction.endpoint.browseEndpoint.browseId",
    )
    canonical_url: str | None = sometimes("microformat.microformatDataRenderer.urlCanonical")


class Channel(Page):
    """The page of an ordinary channel, with any tab open.

    14 of 14 whole recorded pages since 2026-01 have the keys that are declared ``always``.
    """

    id: str | None = always(f"{_METADATA}.externalId")
    name: str | None = always(f"{_METADATA}.title")
    biography: str | None = always(f"{_METADATA}.description")
    vanity_url: str | None = always(f"{_METADATA}.vanityChannelUrl")
    keywords: str | None = always(f"{_METADATA}.keywords")
    safe: bool | None = always(f"{_METADATA}.isFamilySafe")
    countries: list[str] = always(f"{_METADATA}.availableCountryCodes[]")
    image: str | None = always(f"{_METADATA}.avatar.thumbnails[-1].url")
    title: str | None = always(f"{_HEADER}.title.dynamicTextViewModel.text.content")
    spoken_title: str | None = sometimes(
        f"{_HEADER}.title.dynamicTextViewModel.rendererContext.accessibilityContext.label"
    )
    """The name followed by the badge in words. Only channels with a badge have this text."""
    attachments: list[Attachment] = sometimes(BADGE_PATH)
    lines: list[HeaderLine] = always(f"{_HEADER}.metadata.contentMetadataViewModel.metadataRows[]")
    banner: Banner | None = sometimes(BANNER_PATH)
    about_token: str | None = always(
        f"{_HEADER}.description.descriptionPreviewViewModel.rendererContext.commandContext.{_PANEL_REQUEST}",
        f"{_HEADER}.attribution.attributionViewModel.suffix.commandRuns[0].{_PANEL_REQUEST}",
    )
    """The token of this channel's about panel. The token is read from the header only, because shelves contain other
    channels' tokens."""
    entries: list[TabEntry] = always(f"{_COLUMNS}.tabs[]")

    @property
    def tabs(self) -> list[Tab]:
        """The channel's tabs, without the tab that searches in the channel."""
        return [each.tab for each in self.entries if each.tab is not None]

    def contradictions(self, block: bytes) -> list[Unread]:
        """Return the parts of the header that could not be read. ``block``: the JSON text of the page.

        On all recorded pages since 2024-07, exactly the channels with a badge have the text for screen readers
        (``spoken_title``). For channels without a banner, both the key ``banner`` and the text ``imageBannerViewModel``
        are absent.
        """
        badge = [Unread(BADGE_PATH, "contradiction")] if self.spoken_title and not self.attachments else []
        return badge + ([Unread(BANNER_PATH, "missing")] if self.banner is None and BANNER_MARK in block else [])


class Game(Answer):
    """The header of a generated channel of a game."""

    title: Text | None = sometimes("title")
    description: Text | None = sometimes("description")
    image: str | None = sometimes("boxArt.thumbnails[-1].url")
    banner: str | None = sometimes("banner.thumbnails[-1].url")


class Topic(Answer):
    """The header of a generated channel of a topic, such as sports."""

    title: Text | None = sometimes("title")
    subtitle: Text | None = sometimes("subtitle")
    image: str | None = sometimes("avatar.thumbnails[-1].url")
    id: str | None = sometimes("subscribeButton.subscribeButtonRenderer.channelId")


class OtherChannel(Page):
    """The page of a generated channel, or of an age-restricted channel, which has no header.

    4 of 4 recorded pages have tabs.
    """

    game: Game | None = sometimes("header.interactiveTabbedHeaderRenderer")
    topics: list[Topic] = sometimes("header.carouselHeaderRenderer.contents[].topicChannelDetailsRenderer")
    countries: list[str] = sometimes("microformat.microformatDataRenderer.availableCountries[]")
    safe: bool | None = sometimes("microformat.microformatDataRenderer.familySafe")
    tabs: list[UnnamedTab] = always(f"{_COLUMNS}.tabs[].tabRenderer")


class OtherPage(Page):
    """A page that does not belong to a channel, or a response without a page."""

    contents: dict[str, object] | None = sometimes("contents")


_CHANNEL_MARKS = (b'"channelMetadataRenderer"', b'"pageHeaderRenderer"')
_OTHER_CHANNEL_MARKS = (
    b'"interactiveTabbedHeaderRenderer"',
    b'"carouselHeaderRenderer"',
    b'"channelAgeGateRenderer"',
)


def page_kind(block: bytes) -> type[Channel | OtherChannel | OtherPage]:
    """Return the contract of a page's data, by the keys in its JSON text (``block``)."""
    if any(mark in block for mark in _CHANNEL_MARKS):
        return Channel
    return OtherChannel if any(mark in block for mark in _OTHER_CHANNEL_MARKS) else OtherPage


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
    id: str | None = sometimes(f"{_METADATA}.externalId")
    name: str | None = sometimes(f"{_METADATA}.title")
    vanity_url: str | None = sometimes(f"{_METADATA}.vanityChannelUrl")
    tabs: list[UnnamedTab] = sometimes(f"{_COLUMNS}.tabs[].tabRenderer")


class Metadata(Answer):
    """A video's metadata. 6 of 6 recorded videos of 2026 have the keys that are declared ``always``.

    Numbers are texts. ``viewCount`` is 0 before a stream starts, and ``lengthSeconds`` is 0 while a stream is live.
    """

    id: str | None = sometimes("externalVideoId")
    """The video's id, which ``Player.id`` contains, too. Other projects read pages without this key."""
    channel: str | None = always("externalChannelId")
    channel_name: str | None = always("ownerChannelName")
    channel_url: str | None = always("ownerProfileUrl")
    url: str | None = always("canonicalUrl")
    title: Text | None = always("title")
    description: Text | None = sometimes("description")
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
