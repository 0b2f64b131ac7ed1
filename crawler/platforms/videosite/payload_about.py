"""Video site: the contract of a channel's about panel."""

from __future__ import annotations

from crawler.reading.declaration import Contract, sometimes

_PANEL = "aboutChannelRenderer.metadata.aboutChannelViewModel"
_ADDED = f"appendContinuationItemsAction.continuationItems[].{_PANEL}"
_SHOWN = (
    "showEngagementPanelEndpoint.engagementPanel.engagementPanelSectionListRenderer.content.sectionListRenderer"
    f".contents[].itemSectionRenderer.contents[].{_PANEL}"
)


class Answer(Contract, nulls=False):
    """An object in a JSON response. No object of the 66 recorded responses contains null: an empty value has no key."""


class Link(Answer):
    """A link in the panel. Its URL usually leads through the platform's redirect; its text has no scheme."""

    url: str | None = sometimes("commandRuns[0].onTap.innertubeCommand.urlEndpoint.url")
    text: str | None = sometimes("content")


class Panel(Answer, one_of=True):
    """A channel's about panel.

    Only one recorded response has a panel. At least five are needed to declare a key as present in all responses.
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
    """A response that may have the about panel: of the panel's API call, or of the page on which it is open.

    The panel is not read from the page's contents: shelves there have the panels of other channels.
    """

    panels: list[Panel] = sometimes(
        *(f"onResponseReceivedEndpoints[].{_ADDED}", f"onResponseReceivedEndpoints[].{_SHOWN}"),
        f"onResponseReceivedActions[].{_ADDED}",
    )
