"""The simulated video site: which of its answers a request gets, and the truth of its channels."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import orjson

from crawler.sandbox.videosite import extra, truth
from crawler.sandbox.videosite.about import about_panel
from crawler.sandbox.videosite.faults import FAULTS, damaged
from crawler.sandbox.videosite.item import continuation, playlist_video, row
from crawler.sandbox.videosite.page import TABS, answer_context, channel_data, document, grid, home, nothing, rich_grid
from crawler.sandbox.videosite.parts import Node, mark
from crawler.sandbox.videosite.short import short
from crawler.sandbox.videosite.world import PAGE, Channel, Item, channels

if TYPE_CHECKING:
    from crawler.sandbox.protocol import Answer, Ask

__all__ = ["FAULTS", "World"]

JSON = {"Content-Type": "application/json; charset=UTF-8"}
KINDS = {"video": "videos", "short": "shorts", "live": "streams"}
_TRUE = {"true", "1", True}


class World:
    """The video site of a seed. ``light``: its pages without what nobody reads."""

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        self.heavy = not light
        self.channels = channels(seed, sorted(FAULTS))
        self._by_id = {channel.id: channel for channel in self.channels}
        self._by_handle = {channel.handle.lower(): channel for channel in self.channels if channel.handle}
        self._by_legacy = {channel.legacy.lower(): channel for channel in self.channels if channel.legacy}

    @cached_property
    def _videos(self) -> dict[str, tuple[Channel, Item]]:
        listed = ((each, item) for each in self.channels for items in each.items.values() for item in items)
        return {item.id: (each, item) for each, item in listed}

    def named(self, name: str) -> Channel:
        """The channel of a handle, an id or a legacy name.

        Raises:
            KeyError: there is none.
        """
        bare = name.removeprefix("@")
        found = self._by_id.get(bare) or self._by_handle.get(bare.lower()) or self._by_legacy.get(bare.lower())
        if found is None:
            raise KeyError(name)
        return found

    # Requests

    def kind(self, ask: Ask) -> str:
        """Which of the site's answers a request is for."""
        call = ask.path.removeprefix("/youtubei/v1/")
        if ask.path.startswith("/feeds/"):
            return "feed"
        if call == ask.path:
            return "about-page" if ask.path.endswith("/about") else "page"
        asked = _body(ask)
        if call == "browse" and "continuation" in asked:
            return "about" if str(asked["continuation"]).startswith("about-") else "continuation"
        if call == "browse":
            return "playlist" if str(asked.get("browseId")).startswith("VL") else "browse"
        return {"player": "player", "navigation/resolve_url": "resolve"}.get(call, "unknown")

    def target(self, ask: Ask) -> Channel | None:
        """The channel that a request is about."""
        kind, asked = self.kind(ask), _body(ask)
        if kind in {"page", "about-page"}:
            return self._addressed(ask.path)
        if kind == "resolve":
            return self._addressed(urlsplit(str(asked.get("url"))).path)
        if kind == "player":
            return self._videos.get(str(asked.get("videoId")), (None, None))[0]
        if kind == "continuation":
            return self._by_id.get(str(read_token(asked["continuation"]).get("c")))
        if kind == "about":
            return self._by_id.get(str(asked["continuation"]).removeprefix("about-"))
        named = ask.args.get("channel_id") or ask.args.get("playlist_id") or str(asked.get("browseId"))
        return self._by_id.get("UC" + re.sub(r"^(VL)?(UU(LF|SH|LV)|UC)", "", named))

    def _addressed(self, path: str) -> Channel | None:
        words = unquote(path, encoding="utf-8").encode("utf-8", "ignore").decode().strip("/").split("/")
        if words[0].startswith("@"):
            return self._by_handle.get(words[0][1:].lower())
        known = {"channel": self._by_id, "c": self._by_legacy, "user": self._by_legacy}.get(words[0], {})
        name = words[1] if len(words) > 1 else ""
        return known.get(name if words[0] == "channel" else name.lower())

    def fault(self, ask: Ask) -> str | None:
        """The fault of the channel that is asked for."""
        channel = self.target(ask)
        return channel.fault or None if channel else None

    def damaged(self, name: str, ask: Ask) -> Answer:
        """The answer of a fault of the site's own; an honest one where it concerns another kind of request."""
        return damaged(self, name, ask)

    def page(self, ask: Ask) -> Answer:
        """An honest answer."""
        kind, channel = self.kind(ask), self.target(ask)
        if channel is None:
            return self._unknown(kind, ask)
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
        return answers[kind](channel, ask)

    def _player(self, _: Channel, ask: Ask) -> Answer:
        return _json(extra.player(*self._videos[str(_body(ask)["videoId"])]))

    def _resolve(self, channel: Channel, ask: Ask) -> Answer:
        url = urlsplit(str(_body(ask)["url"]))
        if url.path.startswith("/user/") and channel.handle:
            return _json(extra.sent_on(f"{url.scheme}://{url.netloc}{channel.path}"))
        return _json(extra.resolved(channel, url.path))

    def _about(self, channel: Channel, _: Ask) -> Answer:
        rows = [about_panel(channel)]
        return _json(extra.appended(channel.id, rows, place="onResponseReceivedEndpoints", heavy=self.heavy))

    def _browse(self, channel: Channel, ask: Ask) -> Answer:
        params = unquote(str(_body(ask).get("params")))
        tab = next((name for name, (_, own) in TABS.items() if unquote(own) == params), "featured")
        return _json(self.data(channel, tab))

    def _continuation(self, channel: Channel, ask: Ask) -> Answer:
        asked = read_token(_body(ask)["continuation"])
        rows = self._rows(channel, str(asked["t"]), int(asked["p"]))
        return _json(extra.appended(channel.id, rows, heavy=self.heavy))

    def _unknown(self, kind: str, ask: Ask) -> Answer:
        if kind == "browse":
            browse = str(_body(ask).get("browseId"))
            if not re.fullmatch(r"UC[\w-]{22}", browse, re.ASCII):
                return _json(extra.refused(400, "Request contains an invalid argument.", "INVALID_ARGUMENT"), 400)
            return _json(extra.alert(browse, "This channel does not exist."))
        if kind in {"resolve", "player", "playlist"}:
            return _json(extra.refused(404, "Requested entity was not found.", "NOT_FOUND"), 404)
        if kind in {"continuation", "about"}:
            return _json(extra.refused(400, "Request contains an invalid argument.", "INVALID_ARGUMENT"), 400)
        return 404, {}, extra.NOT_FOUND

    def _rendered(self, channel: Channel, ask: Ask) -> Answer:
        tab = ask.path.rpartition("/")[2]
        data = self.data(channel, tab if tab in TABS else "featured")
        if tab == "about" and channel.kind in {"normal", "topic"}:
            data["onResponseReceivedEndpoints"] = [extra.opened_about(channel)]
        described = extra.person(channel) if channel.kind in {"normal", "topic"} else None
        return 200, {}, document(channel.name, data, person=described)

    def _feed(self, channel: Channel, ask: Ask) -> Answer:
        named = ask.args.get("playlist_id", "")
        tab = next((tab for tab, prefix in extra.PLAYLISTS.items() if named.startswith(prefix)), None)
        if channel.kind in {"game", "sport"} or (named and tab not in channel.items):
            return 404, {}, extra.NOT_FOUND
        return 200, {"Content-Type": "text/xml; charset=UTF-8"}, extra.feed(channel, tab)

    # Lists

    def data(self, channel: Channel, tab: str) -> Node:
        """The data of a channel's page with one tab open, as far as it shows it."""
        if channel.kind == "gated":
            return extra.age_gate(channel)
        if channel.kind in {"game", "sport"}:
            return extra.topic(channel, home(channel))
        selected = tab if tab in channel.tabs else channel.tabs[0]
        if selected not in PAGE:
            content = home(channel)
        elif not channel.items[selected]:
            content = nothing("This channel has no videos.", channel)
        else:
            listed = grid if channel.shape == "grid" and selected != "shorts" else rich_grid
            content = listed(channel, selected, self._rows(channel, selected, 0), heavy=self.heavy)
        return channel_data(channel, selected, content, heavy=self.heavy)

    def listed(self, channel: Channel, tab: str, number: int) -> list[Item]:
        """The items of a page of a list, counted from 0."""
        sizes = channel.sizes(tab)
        start = sum(sizes[:number])
        return channel.items.get(tab, [])[start : start + sizes[number]] if number < len(sizes) else []

    def following(self, channel: Channel, tab: str, number: int) -> str:
        """The token of the page after this one, "" after the last."""
        if number + 1 >= len(channel.sizes(tab)):
            return ""
        return token(channel, tab, 1 if channel.fault == "loop" else number + 1, heavy=self.heavy)

    def _rows(self, channel: Channel, tab: str, number: int) -> list[Node]:
        listed = self.listed(channel, tab, number)
        if channel.kind in {"gated", "topic"}:
            rows = [self._playlist_row(channel, item) for item in listed]
        else:
            rows = [row(channel, item, heavy=self.heavy) for item in listed]
        if channel.repeats and len(rows) > 3:
            rows.insert(3, rows[0])
        if channel.shape != "grid" and not number and self.heavy:
            rows.insert(
                1,
                {"richSectionRenderer": {"content": {"richShelfRenderer": {"contents": []}}, "trackingParams": mark()}},
            )
        following = self.following(channel, tab, number)
        return rows + ([continuation(following, channel.ending)] if following else [])

    def _playlist_row(self, channel: Channel, item: Item) -> Node:
        if item.tab == "shorts":
            return {"richItemRenderer": {"content": short(item, heavy=self.heavy, playlist=True)}}
        return playlist_video(channel, item)

    def _playlist(self, channel: Channel, ask: Ask) -> Answer:
        browse = str(_body(ask)["browseId"])
        prefix = browse.removeprefix("VL")[:4]
        tab = next((tab for tab, own in extra.PLAYLISTS.items() if own == prefix), "")
        if tab not in channel.items:
            return _json(extra.alert("", "The playlist does not exist.") | {"header": {}})
        rows = self._rows(channel, tab, 0)
        inner = (
            {"richGridRenderer": {"contents": rows}}
            if tab == "shorts"
            else {"playlistVideoListRenderer": {"contents": rows, "playlistId": browse[2:]}}
        )
        section = {"itemSectionRenderer": {"contents": [inner]}}
        content = inner if tab == "shorts" and not self.heavy else {"sectionListRenderer": {"contents": [section]}}
        tabs = [{"tabRenderer": {"selected": True, "content": content}}]
        data = {
            "responseContext": answer_context(browse, heavy=False),
            "contents": {"twoColumnBrowseResultsRenderer": {"tabs": tabs}},
            "metadata": {"playlistMetadataRenderer": {"title": TABS[tab][0]}},
        }
        return _json(data)

    # The truth

    def truth(self, params: dict[str, Any]) -> dict[str, Any]:
        """The record of a page of a channel: ``page`` from 1, in whose place the contract has a cursor.

        ``pagination.cursor`` is the site's own token, "" where a tab begins or where the list ends.

        Raises:
            KeyError: there is no such channel.
            ValueError: a page that is not there.
        """
        channel = self.named(str(params["username"]))
        if channel.fault == "moved":
            channel = self.named("saltmill")
        pages = self._pages(channel, str(params.get("type", "video")))
        number = int(params.get("page", 1)) - 1
        tab, place, listed = pages[number]
        more = number + 1 < len(pages)
        told = truth.sources_of(channel, listed, first=place == 0)
        following = self.following(channel, tab, place) if more else ""
        return {
            "pagination": {"cursor": following, "has_more": more},
            "posts": [truth.post(channel, item, told.get(item.id, "")) for item in listed],
            "profile": truth.profile(channel, about=params.get("include_about", False) in _TRUE),
        }

    def _pages(self, channel: Channel, kind: str) -> list[tuple[str, int, list[Item]]]:
        """The pages to go through: tab, number in its list, items."""
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
                newest = extra.in_feed(channel.items.get(tab, []))
                found.append((tab, 0, newest))
            else:
                found += [(tab, number, self.listed(channel, tab, number)) for number in range(numbers)]
        return found

    def catalogue(self) -> dict[str, Any]:
        """What there is to ask for."""
        return {
            "channels": {
                each.handle or each.id: {"id": each.id, "items": {t: len(i) for t, i in each.items.items()}}
                for each in self.channels
                if not each.fault
            },
            "faults": {
                f"@{name}": {"name": name, "code": fault.code, "about": fault.about} for name, fault in FAULTS.items()
            },
        }


def token(channel: Channel, tab: str, number: int, *, heavy: bool) -> str:
    """The site's token of a page: opaque to everybody else, and as long as the real ones."""
    body = urlsafe_b64encode(orjson.dumps({"c": channel.id, "t": tab, "p": number})).decode().rstrip("=")
    padding = mark(channel.id, tab, number, size=64) * (40 if tab == "shorts" else 24) if heavy else ""
    return quote(f"4qmFsg{body}=={padding}")


def read_token(text: object) -> dict[str, Any]:
    """What a token says, {} for one of somebody else."""
    body = unquote(str(text)).removeprefix("4qmFsg").partition("==")[0]
    try:
        found = orjson.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _body(ask: Ask) -> dict[str, Any]:
    try:
        found = orjson.loads(ask.body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _json(data: Node, status: int = 200) -> Answer:
    return status, JSON, orjson.dumps(data)
