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
    """A response that may contain the about panel: that of the panel's API call, or the page on which it is open.

    The panel is not read from the page's contents, because shelves there contain the panels of other channels.
    """

    panels: list[Panel] = sometimes(
        *(f"onResponseReceivedEndpoints[].{_ADDED}", f"onResponseReceivedEndpoints[].{_SHOWN}"),
        f"onResponseReceivedActions[].{_ADDED}",
    )
