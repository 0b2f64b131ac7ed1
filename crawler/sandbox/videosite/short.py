"""Builds the rows for Shorts in the simulated video site's lists, in the current and the older format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.sandbox.videosite.parts import (
    QUIET,
    Node,
    command,
    compact,
    entry,
    feedback,
    images,
    linked,
    logged,
    mark,
    queue,
    sheet,
)

if TYPE_CHECKING:
    from crawler.sandbox.videosite.world import Item


def short(item: Item, *, heavy: bool, playlist: bool = False) -> Node:
    """Build a short in the format used since 2024. In playlists, it has no text with the number of views."""
    words, _ = compact(item.views)
    overlay: Node = {"primaryText": {"content": item.title}}
    if item.state != "hidden" and not playlist:
        overlay["secondaryText"] = {"content": f"{words} views" if item.views else "No views"}
    spoken_views = "" if item.state == "hidden" else f", {_in_words(words)} views" if item.views else ", No views"
    node: Node = {
        "entityId": mark(item.id, "hash", size=8) if playlist else f"shorts-shelf-item-{item.id}",
        "accessibilityText": f"{item.title}{spoken_views} - play Short",
        "onTap": {"innertubeCommand": _reel_watch(item, heavy=heavy)},
        "thumbnailViewModel": {"thumbnailViewModel": {"image": {"sources": images(item.picture, (405, 720))}}},
        "overlayMetadata": overlay,
        "loggingDirectives": logged("short", item.id),
    }
    if heavy:
        queued = command(
            item.id,
            "short",
            web=QUIET | {"ignoreNavigation": True},
            signalServiceEndpoint=queue(item.id, "short"),
        )
        entries = [
            entry("Add to queue", "ADD_TO_QUEUE_TAIL", queued, item.id),
            entry("Send feedback", "FEEDBACK", feedback(item.id), item.id),
        ]
        node |= {
            "menuOnTap": {"innertubeCommand": command(item.id, "more", **sheet(entries))},
            "menuOnTapA11yLabel": "More actions",
            "indexInCollection": 0,
            "titleTruncationStyle": "SHORTS_LOCKUP_TRUNCATION_STYLE_TWO_LINES",
            "stackedFrameData": {},
        }
    return {"shortsLockupViewModel": node}


def _in_words(words: str) -> str:
    """Write a rounded number in words, for screen readers."""
    for letter, scale in (("K", "thousand"), ("M", "million"), ("B", "billion")):
        if words.endswith(letter):
            return f"{words[:-1]} {scale}"
    return words


def _reel_watch(item: Item, *, heavy: bool) -> Node:
    endpoint: Node = {"videoId": item.id, "playerParams": mark(item.id, "reel", size=12)}
    if heavy:
        player = {
            "style": "REEL_PLAYER_OVERLAY_STYLE_SHORTS",
            "trackingParams": mark("overlay", item.id),
            "reelPlayerNavigationModel": "REEL_PLAYER_NAVIGATION_MODEL_UNSPECIFIED",
        }
        logging = {"serializedContextData": mark(item.id, "log")}
        endpoint |= {
            "thumbnail": {"thumbnails": images(item.picture, (1080, 1920)), "isOriginalAspectRatio": True},
            "overlay": {"reelPlayerOverlayRenderer": player},
            "params": "CA8%3D",
            "sequenceProvider": "REEL_WATCH_SEQUENCE_PROVIDER_RPC",
            "sequenceParams": mark(item.id, "sequence", size=48),
            "loggingContext": {"vssLoggingContext": logging, "qoeLoggingContext": logging},
            "ustreamerConfig": mark(item.id, "stream", size=16),
        }
    return command(
        item.id, "reel", web=linked(f"/shorts/{item.id}", "SHORTS", 37_414, api=False), reelWatchEndpoint=endpoint
    )
