"""The faults of the simulated video site, and the kinds of requests that each of them affects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.protocol import FakeResponse, as_json
from crawler.sandbox.videosite import extra
from crawler.sandbox.videosite.lists import tab_data
from crawler.sandbox.videosite.page import answer_context, document

if TYPE_CHECKING:
    from crawler.sandbox.videosite.parts import Node
    from crawler.sandbox.videosite.world import Channel, Channels

FAULTS = COMMON | {
    "consent": Fault("UPSTREAM_BLOCKED", "the cookie consent page, and refused API calls"),
    "captcha": Fault("UPSTREAM_RATE_LIMITED", "429 with the page for unusual traffic"),
    "captcha-200": Fault("UPSTREAM_RATE_LIMITED", "the page for unusual traffic with status 200"),
    "never-existed": Fault("TARGET_NOT_FOUND", "200 with an alert that the channel does not exist"),
    "terminated": Fault("TARGET_NOT_FOUND", "200 with an alert that the account was terminated"),
    "copyright": Fault("TARGET_NOT_FOUND", "200 with an alert that the account was terminated for copyright"),
    "removed": Fault("TARGET_NOT_FOUND", "200 with an alert that the channel was removed"),
    "no-longer": Fault("EXTRACTION_FAILED", "200 with an unknown alert instead of a channel"),
    "region": Fault("TARGET_RESTRICTED", "200 with an alert that the channel is not available in this country"),
    "soft-gone": Fault("TARGET_NOT_FOUND", "200 with the 404 page"),
    "video-page": Fault("EXTRACTION_FAILED", "the page of a video instead of a channel"),
    "reported-error": Fault("UPSTREAM_ERROR", "200 with an alert that an error occurred"),
    "no-contents": Fault("EXTRACTION_FAILED", "data without contents"),
    "no-contents-once": Fault("OK", "data without contents, for the first request only"),
    "no-data": Fault("EXTRACTION_FAILED", "a page without a data block and without a message"),
    "broken-json": Fault("EXTRACTION_FAILED", "a truncated data block"),
    "deep-json": Fault("EXTRACTION_FAILED", "a data block of ten thousand nested lists"),
    "wrong-channel": Fault("EXTRACTION_FAILED", "another channel's page"),
    "wrong-channel-once": Fault("OK", "another channel's page, for the first request only"),
    "wrong-tab": Fault("EXTRACTION_FAILED", "another tab of the channel than requested"),
    "blind": Fault("EXTRACTION_FAILED", "items with renamed keys"),
    "missing-ids": Fault("EXTRACTION_FAILED", "items without ids"),
    "missing-name": Fault("EXTRACTION_FAILED", "a channel without a name"),
    "moved": Fault("OK", "a page that redirects to another channel"),
    "moved-in-circles": Fault("EXTRACTION_FAILED", "a page that redirects to itself"),
    "no-page": Fault("OK", "the cookie consent page in place of the page; the API calls work"),
    "no-page-here": Fault("OK", "the page redirects to another host, as for cookie consent; the API calls work"),
    "no-page-data": Fault("OK", "the page has no data; the API calls work"),
    "no-feed": Fault("OK", "the Atom feed is missing, as it may be for channels with live streams"),
    "no-player": Fault("OK", "the requests for single videos are refused"),
    "bot-check": Fault("OK", "the requests for single videos get a bot check"),
    "no-about-call": Fault("OK", "the API call for the about panel fails; the page `/about` works"),
    "no-about": Fault("OK", "the API call and the page of the about panel fail; the linked data has the links"),
    "no-playlist": Fault("OK", "an age-restricted channel whose playlist fails; the Atom feed of the playlist works"),
    "loop": Fault("OK", "the token on the second page leads to the second page again"),
    "stale-token": Fault("OK", "the platform no longer accepts the tokens for the next pages"),
    "lost-page": Fault("OK", "requests for the next pages get status 404"),
    "page-error": Fault("OK", "requests for the next pages get status 500"),
    "blank-page": Fault("OK", "the next pages have no items"),
    "blank-page-once": Fault("OK", "the next pages have no items, for the first request only"),
}
"""The faults by name, which is the handle of a channel with the fault. The code is the outcome of the first page.
"""

PAGE_KINDS = frozenset({"page", "browse"})
HTML_KINDS = frozenset({"page", "about-page"})
OTHER_CHANNEL = "harborlights"


@dataclass(frozen=True)
class Call:
    """A request that a fault affects, with access to the undamaged data of the site's channels."""

    channels: Channels
    channel: Channel
    rendered: bool
    """Whether the response is an HTML page that contains the data. If not, the response is only the data, as JSON."""

    def data(self, tab: str, name: str = "") -> Node:
        """Return the undamaged data of a channel's page with a tab open, by default the requested channel's."""
        return tab_data(self.channels.named(name) if name else self.channel, tab, heavy=self.channels.heavy)

    def respond(self, data: Node | bytes) -> FakeResponse:
        """Build the response that contains the given data: an HTML page if ``rendered``, else JSON."""
        if self.rendered:
            return 200, {}, document("A channel", data)
        return 200, {"Content-Type": "application/json"}, data if isinstance(data, bytes) else orjson.dumps(data)


Damage = Callable[[Call], FakeResponse]


def applies_to(name: str, kind: str) -> bool:
    """Whether a fault affects this kind of request."""
    return kind in _FAULTS[name][0]


def damaged(name: str, call: Call) -> FakeResponse:
    """Build the damaged response to a request that the fault affects."""
    return _FAULTS[name][1](call)


def _fixed(*answers: FakeResponse) -> Damage:
    return lambda call: answers[0] if call.rendered else answers[-1]


def _error(code: int, status: str) -> FakeResponse:
    return as_json(extra.refused(code, status, status), code)


def _alert(words: str) -> Damage:
    return lambda call: call.respond(extra.alert(call.channel.id, words))


def _changed(change: Callable[[Node], None]) -> Damage:
    def respond(call: Call) -> FakeResponse:
        data = call.data("videos")
        change(data)
        return call.respond(data)

    return respond


def _block(damage: Callable[[bytes], bytes]) -> Damage:
    return lambda call: call.respond(damage(orjson.dumps(call.data("videos"))))


def _other(tab: str, name: str = "") -> Damage:
    return lambda call: call.respond(call.data(tab, name))


def _moved(name: str) -> Damage:
    def respond(call: Call) -> FakeResponse:
        channel = call.channels.named(name) if name else call.channel
        action = {"navigateAction": {"endpoint": {"browseEndpoint": {"browseId": channel.id}}}}
        data = {"responseContext": answer_context(channel.id, heavy=False), "onResponseReceivedActions": [action]}
        return call.respond(data)

    return respond


def _without_contents(data: Node) -> None:
    for part in ("contents", "header", "metadata", "microformat"):
        del data[part]


def _without_name(data: Node) -> None:
    del data["metadata"]["channelMetadataRenderer"]["title"]
    del data["header"]["pageHeaderRenderer"]["content"]["pageHeaderViewModel"]["title"]


def _video_page(call: Call) -> FakeResponse:
    rows = [{"videoPrimaryInfoRenderer": {"title": {"runs": [{"text": "One video"}]}}}]
    contents = {"twoColumnWatchNextResults": {"results": {"results": {"contents": rows}}}}
    return call.respond({"responseContext": {}, "contents": contents})


def _blank_page(call: Call) -> FakeResponse:
    action: Node = {"appendContinuationItemsAction": {"continuationItems": []}}
    context = answer_context(call.channel.id, heavy=False)
    return call.respond({"responseContext": context, "onResponseReceivedActions": [action]})


_CONSENT: FakeResponse = (200, {}, extra.CONSENT)
_TRAFFIC: FakeResponse = (429, {"Retry-After": "9"}, extra.TRAFFIC)
_REFUSED = _error(403, "PERMISSION_DENIED")
_NOT_FOUND: FakeResponse = (404, {}, extra.NOT_FOUND)
_NO_DATA: FakeResponse = (200, {}, b"<!DOCTYPE html><html><title>A channel</title><body></body></html>")
_ALL_KINDS = frozenset(
    {"page", "about-page", "browse", "resolve", "feed", "player", "about", "continuation", "playlist"}
)
_BOT_CHECK: FakeResponse = as_json(extra.bot_check())
_TERMINATED = "This account has been terminated for a violation of YouTube's Terms of Service."
_COPYRIGHT = (
    "This account has been terminated because we received multiple third-party claims of copyright infringement."
)

_FAULTS: dict[str, tuple[frozenset[str], Damage]] = {
    "consent": (_ALL_KINDS, _fixed(_CONSENT, _REFUSED)),
    "captcha": (_ALL_KINDS, _fixed(_TRAFFIC)),
    "captcha-200": (_ALL_KINDS, _fixed((200, {}, extra.TRAFFIC))),
    "never-existed": (PAGE_KINDS, _alert("This channel does not exist.")),
    "terminated": (PAGE_KINDS, _alert(_TERMINATED)),
    "copyright": (PAGE_KINDS, _alert(_COPYRIGHT)),
    "removed": (PAGE_KINDS, _alert("This channel was removed because it violated our Community Guidelines.")),
    "no-longer": (PAGE_KINDS, _alert("This channel has gone fishing.")),
    "region": (PAGE_KINDS, _alert("This channel cannot be shown in your country.")),
    "soft-gone": (PAGE_KINDS, _fixed((200, {}, extra.NOT_FOUND), _error(404, "NOT_FOUND"))),
    "video-page": (PAGE_KINDS, _video_page),
    "reported-error": (PAGE_KINDS, _alert("An unknown error occurred. Please try again later.")),
    "no-contents": (PAGE_KINDS, _changed(_without_contents)),
    "no-data": (PAGE_KINDS, _fixed(_NO_DATA)),
    "broken-json": (PAGE_KINDS, _block(lambda block: block[: len(block) // 2])),
    "deep-json": (PAGE_KINDS, _block(lambda _: b'{"contents":' + b"[" * 10_000 + b"]" * 10_000 + b"}")),
    "wrong-channel": (PAGE_KINDS, _other("videos", OTHER_CHANNEL)),
    "wrong-tab": (PAGE_KINDS, _other("shorts")),
    "blind": (PAGE_KINDS, _block(lambda block: block.replace(b'"lockupViewModel"', b'"lockupViewModelNext"'))),
    "missing-ids": (PAGE_KINDS, _block(lambda block: block.replace(b'"contentId"', b'"contentKey"'))),
    "missing-name": (PAGE_KINDS, _changed(_without_name)),
    "moved": (PAGE_KINDS, _moved("saltmill")),
    "moved-in-circles": (PAGE_KINDS, _moved("")),
    "no-page": (HTML_KINDS, _fixed(_CONSENT)),
    "no-page-here": (HTML_KINDS, _fixed((302, {"Location": "http://127.0.0.9:9/"}, b""))),
    "no-page-data": (frozenset({"page"}), _fixed(_NO_DATA)),
    "no-feed": (frozenset({"feed"}), _fixed(_NOT_FOUND)),
    "no-player": (frozenset({"player"}), _fixed(_REFUSED)),
    "bot-check": (frozenset({"player"}), _fixed(_BOT_CHECK)),
    "no-about-call": (frozenset({"about"}), _fixed(_REFUSED)),
    "no-about": (frozenset({"about", "about-page"}), _fixed(_CONSENT, _REFUSED)),
    "no-playlist": (frozenset({"playlist"}), _fixed(_REFUSED)),
    "loop": (frozenset(), _fixed(_NOT_FOUND)),
    "stale-token": (frozenset({"continuation"}), _fixed(_error(400, "INVALID_ARGUMENT"))),
    "lost-page": (frozenset({"continuation"}), _fixed(_NOT_FOUND)),
    "page-error": (frozenset({"continuation"}), _fixed(_error(500, "INTERNAL"))),
    "blank-page": (frozenset({"continuation"}), _blank_page),
}
"""For each fault, the kinds of requests that it affects, and the function that builds their response."""
