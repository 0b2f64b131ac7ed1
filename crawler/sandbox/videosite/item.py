"""Builds the rows for items in the simulated video site's lists, in all recent formats of the real site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.sandbox.videosite.parts import (
    QUIET,
    Node,
    accessibility_label,
    ago,
    button,
    clock,
    command,
    compact,
    context,
    edit,
    entry,
    images,
    mark,
    offline,
    posted,
    queue,
    runs,
    share,
    sheet,
    simple,
    view_button,
    watch,
)
from crawler.sandbox.videosite.short import short
from crawler.sandbox.videosite.world import NOW

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Channel, Item


def row(channel: Channel, item: Item, *, heavy: bool) -> Node:
    """Build an item's row in the list of its tab."""
    if item.tab == "shorts":
        shown = short(item, heavy=heavy)
        return {"richItemRenderer": {"content": shown, "trackingParams": mark("row", item.id)}}
    if channel.shape == "grid":
        return {"gridVideoRenderer": video(channel, item, heavy=heavy)}
    shown = (
        {"videoRenderer": video(channel, item, heavy=heavy)}
        if channel.shape == "rich"
        else lockup(channel, item, heavy=heavy)
    )
    return {"richItemRenderer": {"content": shown, "trackingParams": mark("row", item.id)}}


def listed_views(channel: Channel, item: Item, *, playlist: bool = False) -> tuple[str, int | None]:
    """Return the text about views or viewers in an item's row, and the number of views in that text.

    The text is "" if the list shows none. The number is None if the text is not about views.
    """
    if item.state == "live":
        return f"{item.views % 9_000 + 5:,} watching", None
    if item.state == "upcoming":
        return f"{item.views % 90 + 2} waiting", None
    if item.state in {"members", "premium", "hidden"}:
        return "", None
    if item.views == 0:
        return "No views", 0
    if channel.shape != "lockup" and item.tab != "shorts" and not playlist:
        return f"{item.views:,} view{'s' if item.views > 1 else ''}", item.views
    words, number = compact(item.views, lower=channel.lower)
    return f"{words} view{'s' if item.views > 1 else ''}", number


def length(item: Item) -> str:
    """Return the text on an item's thumbnail: the duration, "LIVE" or "Upcoming"."""
    return {"live": "LIVE", "upcoming": "Upcoming"}.get(item.state, clock(item.seconds))


def age(item: Item) -> str:
    """Return the item's age as lists show it, such as "3 weeks ago"."""
    words = ago(NOW - item.published)
    return f"Streamed {words}" if item.tab == "streams" else words


def lockup(channel: Channel, item: Item, *, heavy: bool) -> Node:
    """Build an item in the format that lists have used since 2026 (``lockupViewModel``)."""
    badge: Node = {
        "text": length(item),
        "badgeStyle": f"THUMBNAIL_OVERLAY_BADGE_STYLE_{'LIVE' if item.state == 'live' else 'DEFAULT'}",
        "animationActivationTargetId": item.id,
        "rendererContext": {"accessibilityContext": {"label": length(item)}},
    }
    if heavy:
        badge |= {
            "animationActivationEntityKey": mark(item.id, "player", size=38),
            "lottieData": {
                "url": "https://www.gstatic.com/youtube/img/lottie/audio_indicator/audio_indicator_v2.json",
                "settings": {"loop": True, "autoplay": True},
            },
            "animatedText": "Now playing",
            "animationActivationEntitySelectorType": "THUMBNAIL_BADGE_ANIMATION_ENTITY_SELECTOR_TYPE_PLAYER_STATE",
        }
    overlays: list[Node] = [{"thumbnailBottomOverlayViewModel": {"badges": [{"thumbnailBadgeViewModel": badge}]}}]
    about: Node = {
        "title": {"content": item.title},
        "metadata": {"contentMetadataViewModel": {"metadataRows": _rows(channel, item), "delimiter": " • "}},
    }
    if heavy:
        overlays += [_moving(item), _hover(item)]
        about["menuButton"] = _menu_button(item)
    tapped = watch(item.id, "tap")
    sources = images(item.picture, (168, 94), (336, 188))
    return {
        "lockupViewModel": {
            "contentImage": {"thumbnailViewModel": {"image": {"sources": sources}, "overlays": overlays}},
            "metadata": {"lockupMetadataViewModel": about},
            "contentId": item.id,
            "contentType": "LOCKUP_CONTENT_TYPE_VIDEO",
            "rendererContext": {
                **context("lockup", item.id),
                "accessibilityContext": {"label": f"{item.title} {length(item)}"},
                "commandContext": {"onTap": {"innertubeCommand": tapped}},
            },
        }
    }


def _rows(channel: Channel, item: Item) -> list[Node]:
    views, _ = listed_views(channel, item)
    starts = (
        f"Scheduled for {item.published}" if item.state == "upcoming" else "" if item.state == "live" else age(item)
    )
    parts = [{"text": {"content": part}} for part in (views, starts) if part]
    rows: list[Node] = (
        [{"metadataParts": [{"text": {"content": f"{channel.name} and 2 more"}}]}] if item.together else []
    )
    rows.append({"metadataParts": parts})
    if item.state == "members":
        rows.append(_badge_row("Members only", "BADGE_MEMBERS_ONLY", item))
    if item.charity:
        rows.append(_badge_row("Fundraiser", "BADGE_COMMERCE", item))
    return rows


def _badge_row(words: str, style: str, item: Item) -> Node:
    badge = {"badgeText": words, "badgeStyle": style, "trackingParams": mark(style, item.id)}
    return {"badges": [{"badgeViewModel": badge}]}


def _moving(item: Item) -> Node:
    url = f"https://i.ytimg.com/an_webp/{item.id}/mqdefault_6s.webp?du=3000&sqp={mark(item.id, 'webp')}"
    return {"animatedThumbnailOverlayViewModel": {"thumbnail": {"sources": images(url, (320, 180))}}}


def _hover(item: Item) -> Node:
    def toggle(icon: str, words: str, tapped: Node) -> Node:
        onto = {"innertubeCommand": tapped}
        return view_button(
            "OVERLAY_DARK", "TONAL", "COMPACT", icon, item.id, iconName=icon, onTap=onto, accessibilityText=words
        )

    later = {
        "defaultButtonViewModel": toggle("WATCH_LATER", "Watch Later", edit(item.id)),
        "toggledButtonViewModel": toggle("CHECK", "Added", edit(item.id, remove=True)),
        "isToggled": False,
        "trackingParams": mark("later", item.id),
    }
    add = command(item.id, "q", web=QUIET, signalServiceEndpoint=queue(item.id, "hover"))
    now = {
        "defaultButtonViewModel": toggle("ADD_TO_QUEUE_TAIL", "Add to queue", add),
        "toggledButtonViewModel": toggle("CHECK", "Added", edit(item.id, remove=True)),
        "isToggled": False,
        "trackingParams": mark("queue", item.id),
    }
    buttons = [{"toggleButtonViewModel": later}, {"toggleButtonViewModel": now}]
    return {"thumbnailHoverOverlayToggleActionsViewModel": {"buttons": buttons}}


def _menu_button(item: Item) -> Node:
    queued = command(item.id, "menu", web=QUIET, signalServiceEndpoint=queue(item.id, "menu"))
    download = {
        "downloadListItemViewModel": {
            "rendererContext": {
                **context("download", item.id),
                "commandContext": {"onTap": {"innertubeCommand": offline(item.id)}},
            }
        }
    }
    entries = [
        entry("Add to queue", "ADD_TO_QUEUE_TAIL", queued, item.id),
        download,
        entry("Share", "SHARE", share(item.id), item.id),
    ]
    opened = {"innertubeCommand": command(item.id, "more", **sheet(entries))}
    return view_button(
        "MONO", "TEXT", "DEFAULT", "more", item.id, iconName="MORE_VERT", onTap=opened, accessibilityText="More actions"
    )


def video(channel: Channel, item: Item, *, heavy: bool) -> Node:
    """Build an item in the format that lists used until 2026, and grids until 2022."""
    views, _ = listed_views(channel, item)
    style = {"live": "LIVE", "upcoming": "UPCOMING"}.get(item.state, "DEFAULT")
    words = simple(length(item)) | accessibility_label(length(item))
    overlays: list[Node] = [{"thumbnailOverlayTimeStatusRenderer": {"text": words, "style": style}}]
    node: Node = {
        "videoId": item.id,
        "thumbnail": {"thumbnails": images(item.picture, (168, 94), (336, 188))},
        "title": runs(item.title) | accessibility_label(f"{item.title} by {channel.name}"),
        "navigationEndpoint": watch(item.id, "tap"),
        "trackingParams": mark("video", item.id),
        "thumbnailOverlays": overlays,
    }
    if item.state not in {"live", "upcoming"}:
        node["publishedTimeText"] = simple(age(item))
        node["lengthText"] = words
    if item.state in {"live", "upcoming"}:
        number, _, what = views.partition(" ")
        node["viewCountText"] = runs(number, f" {what}")
        node["shortViewCountText"] = runs(number, f" {what}") | accessibility_label(views)
    elif views:
        node["viewCountText"] = simple(views)
        node["shortViewCountText"] = simple(f"{compact(item.views)[0]} views") | accessibility_label(views)
    if item.state == "premium":
        badge = {"style": "BADGE_STYLE_TYPE_PREMIUM", "label": "Premium", "trackingParams": mark("premium", item.id)}
        node["badges"] = [{"metadataBadgeRenderer": badge}]
    if heavy:
        node |= {
            "descriptionSnippet": runs(item.description[:120]),
            "richThumbnail": _rich_thumbnail(item),
            "ownerBadges": [_owner_badge(item)],
            "showActionMenu": False,
            "menu": _menu(item),
        }
        overlays += [_toggle_overlay(item), {"thumbnailOverlayNowPlayingRenderer": {"text": runs("Now playing")}}]
        overlays[0]["thumbnailOverlayTimeStatusRenderer"]["icon"] = {"iconType": "LIVE"}
    return node


def _rich_thumbnail(item: Item) -> Node:
    url = f"https://i.ytimg.com/an_webp/{item.id}/mqdefault_6s.webp?sqp={mark(item.id, 'webp')}"
    details = {"thumbnails": images(url, (320, 180)), "logAsMovingThumbnail": True}
    moving = {"movingThumbnailDetails": details, "enableHoveredLogging": True, "enableOverlay": True}
    return {"movingThumbnailRenderer": moving}


def _owner_badge(item: Item) -> Node:
    return {
        "metadataBadgeRenderer": {
            "icon": {"iconType": "CHECK_CIRCLE_THICK"},
            "style": "BADGE_STYLE_TYPE_VERIFIED",
            "tooltip": "Verified",
            "trackingParams": mark("badge", item.id),
            "accessibilityData": {"label": "Verified"},
        }
    }


def _menu(item: Item) -> Node:
    def line(words: str, icon: str, endpoint: Node) -> Node:
        shown = {"text": runs(words), "icon": {"iconType": icon}, "serviceEndpoint": endpoint}
        return {"menuServiceItemRenderer": shown | {"trackingParams": mark(words, item.id)}}

    queued = command(item.id, "menu", web=QUIET, signalServiceEndpoint=queue(item.id, "menu"))
    download = {"serviceEndpoint": offline(item.id), "trackingParams": mark("download", item.id)}
    lines = [
        line("Add to queue", "ADD_TO_QUEUE_TAIL", queued),
        {"menuServiceItemDownloadRenderer": download},
        line("Share", "SHARE", share(item.id)),
    ]
    return {
        "menuRenderer": {"items": lines, "trackingParams": mark("menu", item.id)} | accessibility_label("Action menu")
    }


def _toggle_overlay(item: Item) -> Node:
    added = edit(item.id) | {"signalServiceEndpoint": queue(item.id, "overlay", opens=False)}
    return {
        "thumbnailOverlayToggleButtonRenderer": {
            "isToggled": False,
            "untoggledIcon": {"iconType": "WATCH_LATER"},
            "toggledIcon": {"iconType": "CHECK"},
            "untoggledTooltip": "Watch Later",
            "toggledTooltip": "Added",
            "untoggledServiceEndpoint": added,
            "toggledServiceEndpoint": edit(item.id, remove=True),
            "untoggledAccessibility": accessibility_label("Watch Later")["accessibility"],
            "toggledAccessibility": accessibility_label("Added")["accessibility"],
            "trackingParams": mark("toggle", item.id),
        }
    }


def playlist_video(channel: Channel, item: Item) -> Node:
    """Build an item in the format of playlists."""
    views, _ = listed_views(channel, item, playlist=True)
    video_info = [views, " • ", age(item)] if views else [age(item)]
    node: Node = {
        "videoId": item.id,
        "thumbnail": {"thumbnails": images(item.picture, (168, 94), (336, 188))},
        "title": runs(item.title) | accessibility_label(item.title),
        "navigationEndpoint": watch(item.id, "list"),
        "trackingParams": mark("list", item.id),
        "isPlayable": True,
        "videoInfo": runs(*video_info),
    }
    if item.state not in {"live", "upcoming"}:
        node["lengthText"] = simple(clock(item.seconds)) | accessibility_label(clock(item.seconds))
        node["lengthSeconds"] = str(item.seconds)
    return {"playlistVideoRenderer": node}


def continuation(token: str, ending: str) -> Node:
    """Build the last row of a list that has a next page."""
    next_page = {"token": token, "request": "CONTINUATION_REQUEST_TYPE_BROWSE"}
    next_command = command(token[-20:], web=posted("browse"), continuationCommand=next_page)
    if ending == "view":
        return {"continuationItemViewModel": {"continuationCommand": {"innertubeCommand": next_command}}}
    if ending == "button":
        shown = button("STYLE_DEFAULT", token[-20:], command=next_command, text=simple("Show more"))
        return {"continuationItemRenderer": {"trigger": "CONTINUATION_TRIGGER_ON_ITEM_SHOWN", "button": shown}}
    return {
        "continuationItemRenderer": {
            "trigger": "CONTINUATION_TRIGGER_ON_ITEM_SHOWN",
            "continuationEndpoint": next_command,
        }
    }
