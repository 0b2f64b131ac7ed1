"""What the simulated video site can do wrong, and to which of its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.protocol import Answer
from crawler.sandbox.videosite import extra
from crawler.sandbox.videosite.lists import tab_data
from crawler.sandbox.videosite.page import answer_context, document

if TYPE_CHECKING:
    from crawler.sandbox.videosite.parts import Node
    from crawler.sandbox.videosite.world import Channel, Channels

FAULTS = COMMON | {
    "consent": Fault("UPSTREAM_BLOCKED", "the page that asks for consent, and calls that are refused"),
    "captcha": Fault("UPSTREAM_RATE_LIMITED", "429 with a page that sees unusual traffic"),
    "captcha-200": Fault("UPSTREAM_RATE_LIMITED", "the same as 200"),
    "never-existed": Fault("TARGET_NOT_FOUND", "200 that says that there is no such channel"),
    "terminated": Fault("TARGET_NOT_FOUND", "200 that says that the account was terminated"),
    "copyright": Fault("TARGET_NOT_FOUND", "the same for another reason"),
    "removed": Fault("TARGET_NOT_FOUND", "200 that says that the channel was removed"),
    "no-longer": Fault("TARGET_NOT_FOUND", "200 with another alert instead of a channel"),
    "region": Fault("TARGET_RESTRICTED", "200 that says that the channel is not for this country"),
    "soft-gone": Fault("TARGET_NOT_FOUND", "200 with the page for what is not found"),
    "video-page": Fault("TARGET_NOT_FOUND", "a video's page"),
    "reported-error": Fault("UPSTREAM_ERROR", "200 that says that an error occurred"),
    "no-contents": Fault("EXTRACTION_FAILED", "data without contents"),
    "no-contents-once": Fault("OK", "the same, the first time"),
    "no-data": Fault("EXTRACTION_FAILED", "no data block, and no word why"),
    "broken-json": Fault("EXTRACTION_FAILED", "the data block ends in the middle"),
    "deep-json": Fault("EXTRACTION_FAILED", "a data block of ten thousand nested lists"),
    "wrong-channel": Fault("EXTRACTION_FAILED", "another channel's page"),
    "wrong-channel-once": Fault("OK", "the same, the first time"),
    "wrong-tab": Fault("EXTRACTION_FAILED", "another tab of the channel"),
    "blind": Fault("EXTRACTION_FAILED", "items whose keys have new names"),
    "missing-ids": Fault("EXTRACTION_FAILED", "items without ids"),
    "missing-name": Fault("EXTRACTION_FAILED", "a channel without a name"),
    "moved": Fault("OK", "a page that leads to another channel"),
    "moved-in-circles": Fault("EXTRACTION_FAILED", "a page that leads to itself"),
    "no-page": Fault("OK", "the page asks for consent; the page's own calls answer"),
    "no-page-here": Fault(
        "OK", "the page sends on to another host, as consent is asked for; the page's own calls answer"
    ),
    "no-page-data": Fault("OK", "the page has no data; the page's own calls answer"),
    "no-feed": Fault("OK", "the feed is gone, as those of live channels are at times"),
    "no-player": Fault("OK", "single videos are refused"),
    "bot-check": Fault("OK", "single videos are for people only"),
    "no-about-call": Fault("OK", "the call for the about panel fails; its page answers"),
    "no-about": Fault("OK", "both fail; search engines are told the links"),
    "no-playlist": Fault("OK", "an age-restricted channel whose playlist fails; its feed answers"),
    "loop": Fault("OK", "further pages that lead back to themselves"),
    "stale-token": Fault("OK", "tokens of further pages that are taken no longer"),
    "lost-page": Fault("OK", "further pages that are not found"),
    "page-error": Fault("OK", "further pages that fail"),
}
"""What the site can do wrong, by the channel's handle. The code is that of the first page."""

PAGES = frozenset({"page", "browse"})
RENDERED = frozenset({"page", "about-page"})
SOMEBODY = "harborlights"


@dataclass(frozen=True)
class Call:
    """A request that a fault concerns, and the honest data of the site's channels."""

    channels: Channels
    channel: Channel
    rendered: bool
    """Whether a page with the data answers, not the data alone."""

    def data(self, tab: str, name: str = "") -> Node:
        """The honest data of a channel with a tab open: of the request's own channel, or of another."""
        return tab_data(self.channels.named(name) if name else self.channel, tab, heavy=self.channels.heavy)

    def respond(self, data: Node | bytes) -> Answer:
        """The answer that contains data."""
        if self.rendered:
            return 200, {}, document("A channel", data)
        return 200, {"Content-Type": "application/json"}, data if isinstance(data, bytes) else orjson.dumps(data)


Damage = Callable[[Call], Answer]


def applies_to(name: str, kind: str) -> bool:
    """Whether a fault concerns a kind of request."""
    return kind in _FAULTS[name][0]


def damaged(name: str, call: Call) -> Answer:
    """The answer of a fault to a request that it concerns."""
    return _FAULTS[name][1](call)


def _fixed(*answers: Answer) -> Damage:
    return lambda call: answers[0] if call.rendered else answers[-1]


def _error(code: int, status: str) -> Answer:
    return code, {"Content-Type": "application/json"}, orjson.dumps(extra.refused(code, status, status))


def _alert(words: str) -> Damage:
    return lambda call: call.respond(extra.alert(call.channel.id, words))


def _changed(change: Callable[[Node], None]) -> Damage:
    def give(call: Call) -> Answer:
        data = call.data("videos")
        change(data)
        return call.respond(data)

    return give


def _block(damage: Callable[[bytes], bytes]) -> Damage:
    return lambda call: call.respond(damage(orjson.dumps(call.data("videos"))))


def _other(tab: str, name: str = "") -> Damage:
    return lambda call: call.respond(call.data(tab, name))


def _moved(name: str) -> Damage:
    def give(call: Call) -> Answer:
        channel = call.channels.named(name) if name else call.channel
        action = {"navigateAction": {"endpoint": {"browseEndpoint": {"browseId": channel.id}}}}
        data = {"responseContext": answer_context(channel.id, heavy=False), "onResponseReceivedActions": [action]}
        return call.respond(data)

    return give


def _without_contents(data: Node) -> None:
    for part in ("contents", "header", "metadata", "microformat"):
        del data[part]


def _without_name(data: Node) -> None:
    del data["metadata"]["channelMetadataRenderer"]["title"]
    del data["header"]["pageHeaderRenderer"]["content"]["pageHeaderViewModel"]["title"]


def _video_page(call: Call) -> Answer:
    results = {
        "results": {
            "results": {"contents": [{"videoPrimaryInfoRenderer": {"title": {"runs": [{"text": "One video"}]}}}]}
        }
    }
    data = {"responseContext": {}, "contents": {"twoColumnWatchNextResults": results}}
    return call.respond(data)


_CONSENT: Answer = (200, {}, extra.CONSENT)
_TRAFFIC: Answer = (429, {"Retry-After": "9"}, extra.TRAFFIC)
_REFUSED = _error(403, "PERMISSION_DENIED")
_GONE: Answer = (404, {}, extra.NOT_FOUND)
_NO_DATA: Answer = (200, {}, b"<!DOCTYPE html><html><title>A channel</title><body></body></html>")
_EVERYTHING = frozenset(
    {"page", "about-page", "browse", "resolve", "feed", "player", "about", "continuation", "playlist"}
)
_JSON_200: Answer = (200, {"Content-Type": "application/json"}, orjson.dumps(extra.bot_check()))
_TERMINATED = "This account has been terminated for a violation of YouTube's Terms of Service."
_COPYRIGHT = (
    "This account has been terminated because we received multiple third-party claims of copyright infringement."
)

_FAULTS: dict[str, tuple[frozenset[str], Damage]] = {
    "consent": (_EVERYTHING, _fixed(_CONSENT, _REFUSED)),
    "captcha": (_EVERYTHING, _fixed(_TRAFFIC)),
    "captcha-200": (_EVERYTHING, _fixed((200, {}, extra.TRAFFIC))),
    "never-existed": (PAGES, _alert("This channel does not exist.")),
    "terminated": (PAGES, _alert(_TERMINATED)),
    "copyright": (PAGES, _alert(_COPYRIGHT)),
    "removed": (PAGES, _alert("This channel was removed because it violated our Community Guidelines.")),
    "no-longer": (PAGES, _alert("This channel has gone fishing.")),
    "region": (PAGES, _alert("This channel cannot be shown in your country.")),
    "soft-gone": (PAGES, _fixed((200, {}, extra.NOT_FOUND), _error(404, "NOT_FOUND"))),
    "video-page": (PAGES, _video_page),
    "reported-error": (PAGES, _alert("An unknown error occurred. Please try again later.")),
    "no-contents": (PAGES, _changed(_without_contents)),
    "no-data": (PAGES, _fixed(_NO_DATA)),
    "broken-json": (PAGES, _block(lambda block: block[: len(block) // 2])),
    "deep-json": (PAGES, _block(lambda _: b'{"contents":' + b"[" * 10_000 + b"]" * 10_000 + b"}")),
    "wrong-channel": (PAGES, _other("videos", SOMEBODY)),
    "wrong-tab": (PAGES, _other("shorts")),
    "blind": (PAGES, _block(lambda block: block.replace(b'"lockupViewModel"', b'"lockupViewModelNext"'))),
    "missing-ids": (PAGES, _block(lambda block: block.replace(b'"contentId"', b'"contentKey"'))),
    "missing-name": (PAGES, _changed(_without_name)),
    "moved": (PAGES, _moved("saltmill")),
    "moved-in-circles": (PAGES, _moved("")),
    "no-page": (RENDERED, _fixed(_CONSENT)),
    "no-page-here": (RENDERED, _fixed((302, {"Location": "http://127.0.0.9:9/"}, b""))),
    "no-page-data": (frozenset({"page"}), _fixed(_NO_DATA)),
    "no-feed": (frozenset({"feed"}), _fixed(_GONE)),
    "no-player": (frozenset({"player"}), _fixed(_REFUSED)),
    "bot-check": (frozenset({"player"}), _fixed(_JSON_200)),
    "no-about-call": (frozenset({"about"}), _fixed(_REFUSED)),
    "no-about": (frozenset({"about", "about-page"}), _fixed(_CONSENT, _REFUSED)),
    "no-playlist": (frozenset({"playlist"}), _fixed(_REFUSED)),
    "loop": (frozenset(), _fixed(_GONE)),
    "stale-token": (frozenset({"continuation"}), _fixed(_error(400, "INVALID_ARGUMENT"))),
    "lost-page": (frozenset({"continuation"}), _fixed(_GONE)),
    "page-error": (frozenset({"continuation"}), _fixed(_error(500, "INTERNAL"))),
}
"""Name -> the kinds of requests that it concerns, and what they get."""
