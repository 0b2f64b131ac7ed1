"""Building blocks of the simulated video site's JSON: commands, buttons and menus."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Any

Node = dict[str, Any]

QUIET: Node = {"sendPost": True}
"""The metadata of a command that the page runs without a request."""
SIGN_IN = "https://accounts.google.com/ServiceLogin?service=youtube&passive=true&hl=en"


def mark(*of: object, size: int = 27) -> str:
    """Build a meaningless tracking token, as in every part of a page. Equal arguments result in equal tokens."""
    return urlsafe_b64encode(blake2b(repr(of).encode(), digest_size=min(size, 64)).digest()).decode()


def uuid(*of: object) -> str:
    """Build a tracking token with the format of a UUID."""
    digits = blake2b(repr(of).encode(), digest_size=16).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def logged(*of: object, spec: bool = False) -> Node:
    """Build the logging directives that many parts of a page contain."""
    directives: Node = {"trackingParams": mark(*of), "visibility": {"types": "12"}}
    if spec:
        directives["clientVeSpec"] = {"uiType": 184_974, "veCounter": 468_937_718}
    return directives


def context(*of: object, spec: bool = False) -> Node:
    """Build the logging directives in the object that usually contains them."""
    return {"loggingContext": {"loggingDirectives": logged(*of, spec=spec)}}


def command(*of: object, web: Node | None = None, **endpoint: Any) -> Node:
    """Build a command that the page runs when a visitor clicks on an element."""
    node: Node = {"clickTrackingParams": mark("click", *of)}
    if web is not None:
        node["commandMetadata"] = {"webCommandMetadata": web}
    return node | endpoint


def posted(api: str) -> Node:
    """Build the metadata of a command that calls the API."""
    return {"sendPost": True, "apiUrl": f"/youtubei/v1/{api}"}


def linked(url: str, kind: str = "CHANNEL", root: int = 3611, *, api: bool = True) -> Node:
    """Build the metadata of a command that leads to another page."""
    web: Node = {"url": url, "webPageType": f"WEB_PAGE_TYPE_{kind}", "rootVe": root}
    return web | ({"apiUrl": "/youtubei/v1/browse"} if api else {})


def watch(video: str, *of: object) -> Node:
    """Build the command that opens a video."""
    stream = (
        f"https://rr5---sn-{mark(video)[:8].lower()}.googlevideo.com/initplayback?source=youtube&id={mark(video, 'id')}"
    )
    return command(
        video,
        *of,
        web=linked(f"/watch?v={video}", "WATCH", 3832, api=False),
        watchEndpoint={
            "videoId": video,
            "watchEndpointSupportedOnesieConfig": {
                "html5PlaybackOnesieConfig": {"commonConfig": {"url": f"{stream}&c=WEB&ip=0.0.0.0&oreouc=1"}}
            },
            "playerParams": mark(video, *of, size=9),
        },
    )


def queue(video: str, *of: object, opens: bool = True) -> Node:
    """Build the command that puts a video into the queue."""
    created = command(
        video, web=posted("playlist/create"), createPlaylistServiceEndpoint={"videoIds": [video], "params": "CAQ%3D"}
    )
    added: Node = {
        "openMiniplayer": True,
        "videoId": video,
        "listType": "PLAYLIST_EDIT_LIST_TYPE_QUEUE",
        "onCreateListCommand": created,
        "videoIds": [video],
    }
    if opens:
        added["videoCommand"] = watch(video, "queue", *of)
    return {"signal": "CLIENT_SIGNAL", "actions": [command(video, *of, addToPlaylistCommand=added)]}


def edit(video: str, *, remove: bool = False) -> Node:
    """Build the command that adds a video to the watch-later list, or removes it."""
    action = (
        {"action": "ACTION_REMOVE_VIDEO_BY_VIDEO_ID", "removedVideoId": video}
        if remove
        else {"addedVideoId": video, "action": "ACTION_ADD_VIDEO"}
    )
    edits = {"playlistId": "WL", "actions": [action]}
    return command(video, remove, web=posted("browse/edit_playlist"), playlistEditEndpoint=edits)


def share(video: str) -> Node:
    """Build the command that opens the panel for sharing a video."""
    popup = {"unifiedSharePanelRenderer": {"trackingParams": mark("share", video), "showLoadingSpinner": True}}
    opened = command(video, openPopupAction={"popup": popup, "popupType": "DIALOG", "beReused": True})
    endpoint = {"serializedShareEntity": mark(video, size=10), "commands": [opened]}
    return command(video, web=posted("share/get_share_panel"), shareEntityServiceEndpoint=endpoint)


def offline(video: str) -> Node:
    """Build the command that downloads a video."""
    fetched = {"videoId": video, "params": "CAIQAA%3D%3D", "isCrossDeviceDownload": False}
    added = command(video, "add", getDownloadActionCommand=fetched)
    return command(video, "offline", offlineVideoEndpoint={"videoId": video, "onAddCommand": added})


def button(style: str, *of: object, **more: Any) -> Node:
    """Build a button in the older format."""
    return {
        "buttonRenderer": {
            "style": style,
            "size": "SIZE_DEFAULT",
            "isDisabled": False,
            **more,
            "trackingParams": mark(*of),
        }
    }


def view_button(style: str, kind: str, size: str, *of: object, **more: Any) -> Node:
    """Build a button in the newer format."""
    return {
        "buttonViewModel": {
            **more,
            "style": f"BUTTON_VIEW_MODEL_STYLE_{style}",
            "trackingParams": mark(*of),
            "type": f"BUTTON_VIEW_MODEL_TYPE_{kind}",
            "buttonSize": f"BUTTON_VIEW_MODEL_SIZE_{size}",
            "state": "BUTTON_VIEW_MODEL_STATE_ACTIVE",
        }
    }


def sheet(entries: list[Node]) -> Node:
    """Build a menu in the newer format."""
    content = {"listViewModel": {"listItems": entries}}
    strategy = {"inlineContent": {"sheetViewModel": {"content": content}}}
    return {"showSheetCommand": {"panelLoadingStrategy": strategy}}


def entry(title: str, icon: str, tapped: Node, *of: object) -> Node:
    """Build a line of a menu in the newer format."""
    return {
        "listItemViewModel": {
            "title": {"content": title},
            "leadingImage": {"sources": [{"clientResource": {"imageName": icon}}]},
            "rendererContext": {
                **context(title, *of),
                "commandContext": {"onTap": {"innertubeCommand": tapped}},
            },
        }
    }


def feedback(*of: object) -> Node:
    """Build the command that opens the feedback form."""
    data = {"userFeedbackEndpointProductSpecificValueData": {"key": "video_id", "value": str(of[0])}}
    return command(*of, web={"ignoreNavigation": True}, userFeedbackEndpoint={"additionalDatas": [data]})


def images(url: str, *sizes: tuple[int, int]) -> list[Node]:
    """Build a picture object with several sizes."""
    return [{"url": url.format(w=width, h=height), "width": width, "height": height} for width, height in sizes]


def simple(words: str) -> Node:
    """Build a text object that has a single string."""
    return {"simpleText": words}


def runs(*parts: str) -> Node:
    """Build a text object that has several parts."""
    return {"runs": [{"text": part} for part in parts]}


def accessibility_label(words: str) -> Node:
    """Build an object with the label for screen readers."""
    return {"accessibility": {"accessibilityData": {"label": words}}}


def compact(number: int, *, digits: int = 2, lower: bool = False) -> tuple[str, int]:
    """Round a number down. Return the short text and the rounded number: "43K" and 43,000 for 43,712."""
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= unit:
            places = max(0, digits - len(str(number // unit)))
            steps = number * 10**places // unit
            text = f"{steps / 10**places:.{places}f}"
            text = text.rstrip("0").rstrip(".") if "." in text else text
            return text + (letter.lower() if lower else letter), steps * unit // 10**places
    return str(number), number


def clock(seconds: int) -> str:
    """Format a duration like video players."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def ago(seconds: int) -> str:
    """Format the time since publication as in lists."""
    for unit, name in ((31_536_000, "year"), (2_592_000, "month"), (604_800, "week"), (86_400, "day"), (3_600, "hour")):
        if seconds >= unit:
            number = seconds // unit
            return f"{number} {name}{'s' if number > 1 else ''} ago"
    return "1 minute ago"
