"""The simulated video site: its responses to requests, and the expected records of its channels."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import orjson

from crawler.sandbox.faults import described, target
from crawler.sandbox.protocol import as_json, client_ids
from crawler.sandbox.videosite import expected, extra
from crawler.sandbox.videosite.faults import FAULTS, HTML_KINDS, Call, applies_to, damaged
from crawler.sandbox.videosite.header import about_panel
from crawler.sandbox.videosite.lists import items_of, read_token, rows_of, tab_data, token_after
from crawler.sandbox.videosite.page import TABS, VERSION, answer_context, document
from crawler.sandbox.videosite.world import PAGE, Channels

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeRequest, FakeResponse
    from crawler.sandbox.videosite.world import Channel, Item

__all__ = ["FAULTS", "Site"]

KINDS = {"video": "videos", "short": "shorts", "live": "streams"}
_TRUE = {"true", "1", True}
_INVALID = as_json(extra.refused(400, "Request contains an invalid argument.", "INVALID_ARGUMENT"), 400)
VERSIONS = {VERSION, client_ids("videosite")["client_version"]}
"""The versions of the web client that the site knows: that of its pages, and that of the platform's data file."""

TARGETS = [
    target("videos, shorts and live streams, on many pages", username="@harborlights"),
    target("64 videos", username="@saltmill"),
    target("videos and shorts", username="@north.pier"),
    target("videos and shorts", username="@ropeworks"),
    target("one video", username="@tinychannel1109"),
    target("only shorts", username="@onlyshorts"),
    target("only live streams", username="@allnight_live"),
    target("a handle in Cyrillic letters", username="@АсельИсакова-т4ц"),
    target("a channel without videos", username="@emptyroom"),
    target("a legacy name, without a handle", username="oldtimer"),
]


class Site(Channels):
    """The simulated video site, made from one seed."""

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        super().__init__(seed, sorted(FAULTS), light=light)

    @cached_property
    def _videos(self) -> dict[str, tuple[Channel, Item]]:
        listed = ((each, item) for each in self.channels for items in each.items.values() for item in items)
        return {item.id: (each, item) for each, item in listed}

    # Requests

    def kind(self, request: FakeRequest) -> str:
        """Return the kind of a request: a key of ``answers`` in ``page()``, or ``unknown``."""
        call = request.path.removeprefix("/youtubei/v1/")
        if request.path.startswith("/feeds/"):
            return "feed"
        if call == request.path:
            return "about-page" if request.path.endswith("/about") else "page"
        params = _body(request)
        if call == "browse" and "continuation" in params:
            return "about" if str(params["continuation"]).startswith("about-") else "continuation"
        if call == "browse":
            return "playlist" if str(params.get("browseId")).startswith("VL") else "browse"
        return {"player": "player", "navigation/resolve_url": "resolve"}.get(call, "unknown")

    def target(self, request: FakeRequest) -> Channel | None:
        """Return the channel that a request is for, or None if the channel does not exist."""
        kind, params = self.kind(request), _body(request)
        if kind in {"page", "about-page"}:
            return self._addressed(request.path)
        if kind == "resolve":
            return self._addressed(urlsplit(str(params.get("url"))).path)
        if kind == "player":
            return self._videos.get(str(params.get("videoId")), (None, None))[0]
        if kind == "continuation":
            return self.by_id.get(str(read_token(params["continuation"]).get("c")))
        if kind == "about":
            return self.by_id.get(str(params["continuation"]).removeprefix("about-"))
        named = request.args.get("channel_id") or request.args.get("playlist_id") or str(params.get("browseId"))
        return self.by_id.get("UC" + re.sub(r"^(VL)?(UU(LF|SH|LV)|UC)", "", named))

    def _addressed(self, path: str) -> Channel | None:
        segments = unquote(path, encoding="utf-8").encode("utf-8", "ignore").decode().strip("/").split("/")
        if segments[0].startswith("@"):
            return self.by_handle.get(segments[0][1:].lower())
        known = {"channel": self.by_id, "c": self.by_legacy, "user": self.by_legacy}.get(segments[0], {})
        name = segments[1] if len(segments) > 1 else ""
        return known.get(name if segments[0] == "channel" else name.lower())

    def fault(self, request: FakeRequest) -> str | None:
        """Return the fault of the requested channel, or None."""
        channel = self.target(request)
        return channel.fault or None if channel else None

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the response for a fault that only this site has, damaged if the fault affects this kind of request."""
        kind, channel = self.kind(request), self.target(request)
        if channel is None or not applies_to(name, kind):
            return self.page(request)
        return damaged(name, Call(self, channel, rendered=kind in HTML_KINDS))

    def limited(self, _: FakeRequest, seconds: int) -> FakeResponse:
        """Build the page for unusual traffic, the response to a request above a limit by rate."""
        return 429, {"Retry-After": str(seconds)}, extra.TRAFFIC

    def refusal(self, request: FakeRequest) -> FakeResponse | None:
        """Build the response to a page request without the consent cookie, or to a call without the web client."""
        if self.kind(request) in HTML_KINDS:
            return None if "SOCS=" in request.headers.get("cookie", "") else (200, {}, extra.CONSENT)
        if request.method != "POST":
            return None
        client = (_body(request).get("context") or {}).get("client") or {}
        stated = client.get("clientVersion"), request.headers.get("x-youtube-client-version")
        is_known = client.get("clientName") == "WEB" and stated[0] in VERSIONS and stated[0] == stated[1]
        return None if is_known else _INVALID

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response to a request."""
        kind, channel = self.kind(request), self.target(request)
        if channel is None:
            return self._unknown(kind, request)
        answers = {
            "page": self._rendered,
            "about-page": self._rendered,
            "feed": self._feed,
            "player": self._player,
            "resolve": self._resolve,
            "about": self._about,
            "browse": self._browse,
            "playlist": self._playlist,
            "continuation": self._continuation,
        }
        return answers[kind](channel, request)

    def _player(self, _: Channel, request: FakeRequest) -> FakeResponse:
        return as_json(extra.player(*self._videos[str(_body(request)["videoId"])]))

    def _resolve(self, channel: Channel, request: FakeRequest) -> FakeResponse:
        url = urlsplit(str(_body(request)["url"]))
        if url.path.startswith("/user/") and channel.handle:
            return as_json(extra.redirected(f"{url.scheme}://{url.netloc}{channel.path}"))
        return as_json(extra.resolved(channel, url.path))

    def _about(self, channel: Channel, _: FakeRequest) -> FakeResponse:
        rows = [about_panel(channel)]
        return as_json(extra.appended(channel.id, rows, place="onResponseReceivedEndpoints", heavy=self.heavy))

    def _browse(self, channel: Channel, request: FakeRequest) -> FakeResponse:
        params = unquote(str(_body(request).get("params")))
        tab = next((name for name, (_, own) in TABS.items() if unquote(own) == params), "featured")
        return as_json(tab_data(channel, tab, heavy=self.heavy))

    def _continuation(self, channel: Channel, request: FakeRequest) -> FakeResponse:
        params = read_token(_body(request)["continuation"])
        rows = rows_of(channel, str(params["t"]), int(params["p"]), heavy=self.heavy)
        return as_json(extra.appended(channel.id, rows, heavy=self.heavy))

    def _unknown(self, kind: str, request: FakeRequest) -> FakeResponse:
        if kind == "browse":
            browse = str(_body(request).get("browseId"))
            if not re.fullmatch(r"UC[\w-]{22}", browse, re.ASCII):
                return _INVALID
            return as_json(extra.alert(browse, "This channel does not exist."))
        if kind in {"resolve", "player", "playlist"}:
            return as_json(extra.refused(404, "Requested entity was not found.", "NOT_FOUND"), 404)
        if kind in {"continuation", "about"}:
            return _INVALID
        return 404, {}, extra.NOT_FOUND

    def _rendered(self, channel: Channel, request: FakeRequest) -> FakeResponse:
        tab = request.path.rpartition("/")[2]
        data = tab_data(channel, tab if tab in TABS else "featured", heavy=self.heavy)
        if tab == "about" and channel.kind in {"normal", "topic"}:
            data["onResponseReceivedEndpoints"] = [extra.opened_about(channel)]
        described = extra.person(channel) if channel.kind in {"normal", "topic"} else None
        return 200, {}, document(channel.name, data, person=described)

    def _feed(self, channel: Channel, request: FakeRequest) -> FakeResponse:
        named = request.args.get("playlist_id", "")
        tab = next((tab for tab, prefix in extra.PLAYLISTS.items() if named.startswith(prefix)), None)
        if channel.kind in {"game", "sport"} or (named and tab not in channel.items):
            return 404, {}, extra.NOT_FOUND
        return 200, {"Content-Type": "text/xml; charset=UTF-8"}, extra.feed(channel, tab)

    def _playlist(self, channel: Channel, request: FakeRequest) -> FakeResponse:
        browse = str(_body(request)["browseId"])
        tab = next((tab for tab, own in extra.PLAYLISTS.items() if own == browse.removeprefix("VL")[:4]), "")
        if tab not in channel.items:
            return as_json(extra.alert("", "The playlist does not exist.") | {"header": {}})
        rows = rows_of(channel, tab, 0, heavy=self.heavy)
        inner = (
            {"richGridRenderer": {"contents": rows}}
            if tab == "shorts"
            else {"playlistVideoListRenderer": {"contents": rows, "playlistId": browse[2:]}}
        )
        section = {"itemSectionRenderer": {"contents": [inner]}}
        content = inner if tab == "shorts" and not self.heavy else {"sectionListRenderer": {"contents": [section]}}
        tabs = [{"tabRenderer": {"selected": True, "content": content}}]
        return as_json(
            {
                "responseContext": answer_context(browse, heavy=False),
                "contents": {"twoColumnBrowseResultsRenderer": {"tabs": tabs}},
                "metadata": {"playlistMetadataRenderer": {"title": TABS[tab][0]}},
            }
        )

    # Expected records

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the record for a page of a channel. The param ``page`` (from 1) replaces ``cursor`` here.

        For ``scraper=videosite-profile``, the record contains no data from enrichment requests.

        ``pagination.cursor`` is the site's token for the next page of the same tab, or "" if the tab has none.

        Raises:
            KeyError: the channel or the ``type`` does not exist.
            IndexError: the page does not exist.
        """
        channel = self.named(str(params["username"]))
        if channel.fault == "moved":
            channel = self.named("saltmill")
        pages = self._pages(channel, str(params.get("type", "video")))
        number = int(params.get("page", 1)) - 1
        tab, page_number, listed = pages[number]
        more = number + 1 < len(pages)
        enriched = params.get("scraper") != "videosite-profile"
        sources = expected.sources_of(channel, listed, first=page_number == 0, enriched=enriched)
        is_cut = channel.fault == "no-playlist" and len(listed) == extra.FEED_LENGTH
        following = token_after(channel, tab, page_number, heavy=self.heavy) if more else ""
        return {
            "pagination": {"cursor": following, "has_more": more or is_cut},
            "posts": [expected.post(channel, item, sources.get(item.id, "")) for item in listed],
            "profile": expected.profile(channel, about=params.get("include_about", False) in _TRUE),
        }

    def _pages(self, channel: Channel, kind: str) -> list[tuple[str, int, list[Item]]]:
        """Return the pages of a channel's lists, in the order in which a crawl must return them.

        ``kind``: the param ``type``, such as ``video``. Each page is a tuple of its tab, its number in the tab's list,
        and its items.
        """
        tabs = (
            [KINDS[kind]]
            if kind != "all"
            else [tab for tab in PAGE if tab in channel.items and channel.kind == "normal"]
        )
        if kind == "all" and not tabs:
            tabs = list(PAGE)
        found: list[tuple[str, int, list[Item]]] = []
        for tab in tabs:
            numbers = len(channel.sizes(tab)) or 1
            if channel.fault == "loop":
                numbers = min(numbers, 2)
            if channel.fault == "no-playlist":
                newest = extra.feed_items(channel.items.get(tab, []))
                found.append((tab, 0, newest))
            else:
                found += [(tab, number, items_of(channel, tab, number)) for number in range(numbers)]
        return found

    def catalogue(self) -> dict[str, Any]:
        """Return the site's channels and faults."""
        return {
            "targets": TARGETS,
            "channels": {
                each.handle or each.id: {"id": each.id, "items": {t: len(i) for t, i in each.items.items()}}
                for each in self.channels
                if not each.fault
            },
            "faults": described(FAULTS, lambda name: {"username": f"@{name}"}),
        }


def _body(request: FakeRequest) -> dict[str, Any]:
    try:
        found = orjson.loads(request.body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
