"""The page headers of the simulated video site's channels, and the token for the about panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.sandbox.videosite.about import redirect, subscribers, videos
from crawler.sandbox.videosite.parts import (
    SIGN_IN,
    Node,
    accessibility_label,
    button,
    command,
    context,
    images,
    linked,
    logged,
    mark,
    posted,
    runs,
    simple,
    uuid,
    view_button,
)

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel

_COLOR = {"styleRunColorMapExtension": {"colorMap": [{"key": "USER_INTERFACE_THEME_LIGHT", "value": 4_294_967_295}]}}
_BANNERS = ((1060, 175), (1138, 188), (1707, 283), (2120, 351), (2276, 377), (2560, 424))
_BADGES = {"verified": "CHECK_CIRCLE_FILLED", "artist": "AUDIO_BADGE"}


def header(channel: Channel, *, heavy: bool) -> Node:
    """Build the visible header of a channel's page."""
    return {
        "pageHeaderRenderer": {
            "pageTitle": channel.name,
            "content": {"pageHeaderViewModel": _page(channel, heavy=heavy)},
        }
    }


def _page(channel: Channel, *, heavy: bool) -> Node:
    node: Node = {
        "title": {
            "dynamicTextViewModel": {
                "text": _title(channel),
                "maxLines": 2,
                "rendererContext": context("title", spec=True),
            }
        },
        "image": {"decoratedAvatarViewModel": {"avatar": {"avatarViewModel": _avatar(channel)}}},
        "metadata": {
            "contentMetadataViewModel": {
                "metadataRows": _rows(channel),
                "delimiter": "•",
                "rendererContext": context("rows", spec=True),
            }
        },
        "description": {"descriptionPreviewViewModel": _description(channel)},
        "rendererContext": context("header", spec=True),
    }
    if channel.badge:
        node["title"]["dynamicTextViewModel"]["rendererContext"]["accessibilityContext"] = {
            "label": f"{channel.name}, verified"
        }
    if channel.links:
        node["attribution"] = {"attributionViewModel": _attribution(channel)}
    if channel.banner:
        node["banner"] = {
            "imageBannerViewModel": {
                "image": {"sources": images(channel.banner, *_BANNERS)},
                "style": "IMAGE_BANNER_STYLE_INSET",
                "rendererContext": context("banner", spec=True),
            }
        }
    if heavy:
        node["actions"] = {"flexibleActionsViewModel": _actions(channel)}
    return node


def _title(channel: Channel) -> Node:
    text: Node = {"content": channel.name}
    if channel.badge:
        text["styleRuns"] = [{"startIndex": 0, "styleRunExtensions": _COLOR}]
        text["attachmentRuns"] = [
            _attached({"clientResource": {"imageName": picture}, "width": 16, "height": 16})
            for picture in ("SPARK", _BADGES[channel.badge])
        ]
    return text


def _attached(source: Node) -> Node:
    size = {"value": 14, "unit": "DIMENSION_UNIT_POINT"}
    layout = {"height": size, "width": size, "margin": {"left": size}}
    element = {"type": {"imageType": {"image": {"sources": [source]}}}, "properties": {"layoutProperties": layout}}
    return {"startIndex": 1, "length": 0, "element": element, "alignment": "ALIGNMENT_VERTICAL_CENTER"}


def _avatar(channel: Channel) -> Node:
    picture = {
        "sources": images(channel.avatar, (72, 72), (160, 160)),
        "processor": {"borderImageProcessor": {"circular": True}},
    }
    return {"image": picture, "avatarImageSize": "AVATAR_SIZE_XL", "loggingDirectives": logged("avatar")}


def _rows(channel: Channel) -> list[Node]:
    styled = {"styleRuns": [{"weightLabel": "FONT_WEIGHT_MEDIUM", "styleRunExtensions": _COLOR}]}
    copied = {"innertubeCommand": command("copy", copyTextEndpoint={"text": f"https://youtube.com/{channel.path}"})}
    rows: list[Node] = []
    if channel.handle:
        shown = {"text": {"content": f"@{channel.handle}"} | styled, "enableTruncation": True, "onLongPress": copied}
        more = [{"text": {"content": "they/them"}, "tooltip": "Pronouns"}] if channel.pronouns else []
        rows.append({"metadataParts": [shown, *more]})
    words, _ = subscribers(channel)
    figures: list[Node] = [{"text": {"content": words}, "accessibilityLabel": words}] if words else []
    count, _ = videos(channel)
    figures.append({"text": {"content": count, "styleRuns": [{"startIndex": 0, "length": len(count)}]}})
    rows.append({"metadataParts": figures})
    return rows


def about_token(channel: Channel) -> str:
    """Return the token for a channel's about panel, which all links to the panel contain."""
    return f"about-{channel.id}"


def _opened(channel: Channel) -> Node:
    close = command(
        "close",
        changeEngagementPanelVisibilityAction={
            "targetId": uuid(channel.id),
            "visibility": "ENGAGEMENT_PANEL_VISIBILITY_HIDDEN",
        },
    )
    shut = button(
        "STYLE_DEFAULT",
        "close",
        icon={"iconType": "CLOSE"},
        accessibility={"label": "Close"},
        accessibilityData=accessibility_label("Close")["accessibility"],
        command=close,
    )
    next_page = {"token": about_token(channel), "request": "CONTINUATION_REQUEST_TYPE_BROWSE"}
    next_command = command("about", web=posted("browse"), continuationCommand=next_page)
    item = {
        "continuationItemRenderer": {
            "trigger": "CONTINUATION_TRIGGER_ON_ITEM_SHOWN",
            "continuationEndpoint": next_command,
        }
    }
    named = {"surface": "ENGAGEMENT_PANEL_SURFACE_BROWSE", "tag": uuid(channel.id)}
    section = {
        "contents": [item],
        "trackingParams": mark("section"),
        "sectionIdentifier": uuid("s"),
        "targetId": uuid("s"),
    }
    panel = {
        "header": {
            "engagementPanelTitleHeaderRenderer": {
                "title": simple(channel.name),
                "visibilityButton": shut,
                "trackingParams": mark("title"),
            }
        },
        "content": {
            "sectionListRenderer": {
                "contents": [{"itemSectionRenderer": section}],
                "trackingParams": mark("list"),
                "scrollPaneStyle": {"scrollable": True},
            }
        },
        "targetId": uuid(channel.id),
        "identifier": named,
    }
    popup = {"engagementPanelPopupPresentationConfig": {"popupType": "PANEL_POPUP_TYPE_DIALOG"}}
    return command(
        "panel",
        showEngagementPanelEndpoint={
            "engagementPanel": {"engagementPanelSectionListRenderer": panel},
            "identifier": named,
            "engagementPanelPresentationConfigs": popup,
        },
    )


def _description(channel: Channel) -> Node:
    first = channel.description.partition("\n")[0]
    return {
        "description": {"content": first},
        "maxLines": 2,
        "truncationText": {"content": "...more", "styleRuns": [{"startIndex": 0, "length": 7, "weight": 500}]},
        "alwaysShowTruncationText": True,
        "rendererContext": {
            **context("description", spec=True),
            "accessibilityContext": {"label": f"Description. {first}"},
            "commandContext": {"onTap": {"innertubeCommand": _opened(channel)}},
        },
    }


def _attribution(channel: Channel) -> Node:
    shown = channel.links[0].removeprefix("https://")
    url = redirect(channel.links[0], "channel_header")
    tapped = command(
        "link", web=linked(url, "UNKNOWN", 83_769, api=False), urlEndpoint={"url": url, "target": "TARGET_NEW_WINDOW"}
    )
    run = {
        "startIndex": 0,
        "length": len(shown),
        "onTap": {"innertubeCommand": tapped},
        "loggingDirectives": logged("link"),
    }
    icon = {"customImageSource": {"youtubeIconSource": {"clientResource": {"icon": "LINK"}}}}
    text = {
        "content": shown,
        "commandRuns": [run],
        "styleRuns": [{"weightLabel": "FONT_WEIGHT_NORMAL", "styleRunExtensions": _COLOR}],
        "attachmentRuns": [_attached(icon)],
    }
    node: Node = {"text": text, "rendererContext": context("attribution", spec=True)}
    if len(channel.links) > 1:
        words = f"and {len(channel.links) - 1} more links"
        run = {
            "startIndex": 0,
            "length": len(words),
            "onTap": {"innertubeCommand": _opened(channel)},
            "loggingDirectives": logged("more"),
        }
        style = {"fontName": "", "fontSize": 0, "weightLabel": "FONT_WEIGHT_MEDIUM"}
        node["suffix"] = {"content": words, "commandRuns": [run], "styleRuns": [style]}
    return node


def _signed_in(channel: Channel, words: str) -> Node:
    following = command(
        "next",
        web=linked(f"{channel.path}/videos"),
        browseEndpoint={"browseId": channel.id, "params": "EgZ2aWRlb3M%3D", "canonicalBaseUrl": channel.path},
    )
    endpoint = {
        "nextEndpoint": following,
        "continueAction": mark("continue", size=60),
        "idamTag": "66429",
        "hack": True,
    }
    signed = command("sign", web=linked(SIGN_IN, "UNKNOWN", 83_769, api=False), signInEndpoint=endpoint)
    dialog = {
        "title": simple(f"Want to {words} this channel?") | runs("Want to join this channel?"),
        "content": simple("Sign in to go on.") | runs("Sign in to go on."),
        "button": button("STYLE_MONO_FILLED", "sign", text=simple("Sign in"), navigationEndpoint=signed),
    }
    modal = {"modal": {"modalWithTitleAndButtonRenderer": dialog}}
    return command("subscribe", web={"ignoreNavigation": True}, modalEndpoint=modal)


def _actions(channel: Channel) -> Node:
    on_tap = {"innertubeCommand": _signed_in(channel, "subscribe to")}
    subscribe = view_button(
        "MONO",
        "FILLED",
        "DEFAULT",
        "subscribe",
        title="Subscribe",
        onTap=on_tap,
        accessibilityText="Subscribe",
        isFullWidth=False,
    )
    event = {
        "flowType": "SPONSORSHIPS",
        "flowEventNamespace": "SPONSORSHIPS",
        "flowEventType": 1,
        "flowEventMetadata": {"sponsorshipsPurchaseContext": {"joinMethod": "BUTTON"}},
    }
    join = view_button(
        *("MONO", "OUTLINE", "DEFAULT", "join"),
        title="Join",
        onTap=on_tap,
        iconName="JOIN",
        accessibilityId="sponsor-button",
        targetId="sponsorships-button",
        onVisible={"innertubeCommand": command("join", logFlowLoggingEventCommand=event)},
        loggingDirectives=logged("join", spec=True),
    )
    return {
        "actionsRows": [{"actions": [subscribe, join]}],
        "justifyContent": "FLEXIBLE_ACTIONS_JUSTIFY_CONTENT_START",
        "minimumRowHeight": 44,
        "rendererContext": context("actions", spec=True),
    }
