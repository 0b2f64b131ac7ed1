"""Video site: the contracts of the responses about single videos, and of the response that resolves a URL."""

from __future__ import annotations

from crawler.platforms.videosite.payload_about import Answer
from crawler.platforms.videosite.payload_rows import Text
from crawler.reading.declaration import always, sometimes


class Metadata(Answer):
    """A video's metadata. 6 of 6 recorded videos of 2026 have the keys that are declared ``always``.

    Numbers are texts. ``viewCount`` is 0 before a stream starts, and ``lengthSeconds`` is 0 while it is live.
    """

    id: str | None = sometimes("externalVideoId")
    """The video's id once more. Other projects read pages without it."""
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


class Owner(Answer):
    """A channel that a video belongs to."""

    id: str | None = sometimes("browseId")
    url: str | None = sometimes("canonicalBaseUrl")


class JointOwner(Answer):
    """A channel in the dialog that lists the owners of a collaboration."""

    name: str | None = sometimes("title.content")
    channel: Owner | None = sometimes("leadingAccessory.avatarViewModel.endpoint.innertubeCommand.browseEndpoint")


_DIALOG = (
    "navigationEndpoint.showDialogCommand.panelLoadingStrategy.inlineContent.dialogViewModel.customContent.listViewModel"
    ".listItems[].listItemViewModel"
)
_SECTION = "videoSecondaryInfoRenderer"
_VIEWS = "videoPrimaryInfoRenderer.viewCount.videoViewCountRenderer"


class Section(Answer):
    """A section of a video's page: title and views, or description and owner. Other sections are not read."""

    title: Text | None = sometimes("videoPrimaryInfoRenderer.title")
    views: Text | None = sometimes(f"{_VIEWS}.viewCount")
    is_live: bool | None = sometimes(f"{_VIEWS}.isLive")
    updated_video: str | None = sometimes(
        "videoPrimaryInfoRenderer.updatedMetadataEndpoint.updatedMetadataEndpoint.videoId"
    )
    description: str | None = sometimes(f"{_SECTION}.attributedDescription.content")
    owner_name: Text | None = sometimes(f"{_SECTION}.owner.videoOwnerRenderer.title")
    owner: Owner | None = sometimes(f"{_SECTION}.owner.videoOwnerRenderer.navigationEndpoint.browseEndpoint")
    joint_name: str | None = sometimes(f"{_SECTION}.owner.videoOwnerRenderer.attributedTitle.content")
    """The names of the owners of a collaboration."""
    owners: list[JointOwner] = sometimes(f"{_SECTION}.owner.videoOwnerRenderer.{_DIALOG}")
    """The owners of a collaboration. The first one is the channel that published the video."""


class SidePanel(Answer):
    """A panel next to a video, such as the comments."""

    name: str | None = sometimes("panelIdentifier")
    info: Text | None = sometimes("header.engagementPanelTitleHeaderRenderer.contextualInfo")


SECTIONS_PATH = "contents.twoColumnWatchNextResults.results.results.contents[]"


class WatchPage(Answer):
    """The data of a video's page, except the player's data."""

    id: str | None = sometimes("currentVideoEndpoint.watchEndpoint.videoId")
    sections: list[Section] = sometimes(SECTIONS_PATH)
    panels: list[SidePanel] = sometimes("engagementPanels[].engagementPanelSectionListRenderer")


class Endpoint(Answer, one_of=True):
    """The destination of one of the platform's URLs."""

    channel: str | None = sometimes("browseEndpoint.browseId")
    url: str | None = sometimes("urlEndpoint.url")
    video: str | None = sometimes("watchEndpoint.videoId", "reelWatchEndpoint.videoId")
    playlist: str | None = sometimes("watchEndpoint.playlistId")

    @property
    def is_empty(self) -> bool:
        """Whether the response states no destination. For an unknown URL, it has status 404 instead."""
        return not (self.channel or self.url or self.video or self.playlist)


class Resolved(Answer):
    """The response with the destination of a URL."""

    endpoint: Endpoint | None = sometimes("endpoint")


class Failure(Answer):
    """A response that only states an error."""

    code: int | str | None = sometimes("error.code")
