"""The forms of the platforms' pages: for each, recorded pages, and how to get the sandbox's pages of the form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from crawler.sandbox.microblog.site import PLANS
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.page import challenge
from crawler.sandbox.videosite import extra
from crawler.sandbox.videosite.lists import tab_data, token
from scripts.captures import body_of
from tests.whole_pages.paths import is_below, paths

LEFT: dict[str, dict[str, dict[str, str]]] = orjson.loads(Path(__file__).with_name("left.json").read_bytes())
"""The parts of each form that are not compared: paths that only recorded pages have (``lacks``), or only the sandbox's
(``has``), each with the reason. The paths below them are left out, too. These lists may only become shorter."""


class Form(NamedTuple):
    """A form of pages: recorded ones, and how to get the sandbox's."""

    name: str
    """The platform, a slash, and the name of the form."""
    captures: tuple[str, ...]
    """Whole recorded pages, or answers."""
    ours: Callable[[Any], Iterable[bytes]]
    """Returns the bodies of the sandbox's pages. ``Any``: the simulated platform."""
    read: Callable[[bytes], bytes] = bytes
    """Returns the part of a recorded body that belongs to the form, in the format of ``ours``."""
    also: tuple[str, ...] = ()
    """Other recorded pages, which were cut when they were saved. Their paths count as recorded."""
    elements: bool = False
    """Whether page objects read the elements of the page."""


class Compared:
    """The paths of a form that the recorded pages have, and those that the sandbox's pages have."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.left = {side: list(LEFT.get(form.name, {}).get(side, {})) for side in ("lacks", "has")}

    @cached_property
    def real(self) -> dict[str, frozenset[str]]:
        """The paths of each whole recorded page."""
        return {name: self._recorded(name) for name in self.form.captures}

    @cached_property
    def recorded(self) -> frozenset[str]:
        """The paths of all recorded pages."""
        return frozenset[str]().union(*self.real.values(), *map(self._recorded, self.form.also))

    @cached_property
    def ours(self) -> frozenset[str]:
        """The paths of the sandbox's pages."""
        bodies = self.form.ours(_site(self.form.name.partition("/")[0]))
        return frozenset[str]().union(*(paths(each, elements=self.form.elements) for each in bodies))

    def lacks(self, capture: str) -> tuple[set[str], int]:
        """Return the paths of a recorded page that the sandbox's pages lack, and the number of compared paths."""
        seen = {path for path in self.real[capture] if not is_below(path, self.left["lacks"])}
        return seen - self.ours, len(seen)

    def has(self) -> tuple[set[str], int]:
        """Return the paths of the sandbox's pages that no recorded page has, and the number of compared paths."""
        seen = {path for path in self.ours if not is_below(path, self.left["has"])}
        return seen - self.recorded, len(seen)

    def unused(self) -> set[tuple[str, str]]:
        """Return the left parts that are not needed, each with its side: nothing is missing there."""
        missing = {"lacks": frozenset[str]().union(*self.real.values()) - self.ours, "has": self.ours - self.recorded}
        return {
            (side, entry)
            for side, left in self.left.items()
            for entry in left
            if not any(is_below(path, [entry]) for path in missing[side])
        }

    def _recorded(self, name: str) -> frozenset[str]:
        return paths(self.form.read(body_of(name)), elements=self.form.elements)


@cache
def _site(platform: str) -> Any:
    return import_module(f"crawler.sandbox.{platform}.site").Site()


def _answer(site: Any, request: FakeRequest) -> bytes:
    """Return the body of a platform's response, damaged if the target selects a fault."""
    fault = site.fault(request)
    body: bytes = (site.damaged(fault, request) if fault else site.page(request))[2]
    return body


def _get(*requested: str) -> Callable[[Any], list[bytes]]:
    """Return a function that gets pages by their paths."""
    return lambda site: [_answer(site, FakeRequest(path)) for path in requested]


def values(tree: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key at any depth."""
    if isinstance(tree, dict):
        if key in tree:
            yield tree[key]
        tree = list(tree.values())
    for each in tree if isinstance(tree, list) else ():
        yield from values(each, key)


# Retail


def _listings(site: Any) -> list[bytes]:
    requests = [FakeRequest("/browse/4044", {"page": str(number)}) for number in (1, 2, 3)]
    requests += [FakeRequest("/search", {"q": word}) for word in ("kettle", "lamp", "kettles")]
    return [_answer(site, each) for each in requests]


# Photo app


def _reels(site: Any) -> list[bytes]:
    """Return pages with an item. The recorded ones are of reels."""
    listed = [site.posts[code] for code in site.listed]
    return [
        _answer(site, FakeRequest(f"/p/{each.code}/")) for each in listed if each.is_video and each.layout == "item"
    ]


def _data(site: Any, layout: str) -> list[bytes]:
    return [orjson.dumps(site.data(site.posts[code], layout)) for code in site.listed]


def _of_fault(site: Any, name: str) -> list[bytes]:
    (code,) = (code for code, fault in site.faults.items() if fault == name)
    return [_answer(site, FakeRequest(f"/p/{code}/"))]


def _result(body: bytes, key: str) -> bytes:
    """Return the result of a query in a page, or in the saved answer of the query."""
    found = re.findall(rb'<script\b[^>]*type="application/json"[^>]*>(.*?)</script>', body, re.DOTALL)
    blocks = [orjson.loads(each) for each in found or [body]]
    return orjson.dumps({key: next(values(blocks, key))})


# Microblog


def _users(site: Any) -> list[bytes]:
    request = FakeRequest("", {"variables": "{}"})
    return [site._user(site.account(handle), request)[2] for handle in PLANS]  # without a token


def _timelines(site: Any, shape: str) -> list[bytes]:
    found = []
    for account in (site.account(handle) for handle, plan in PLANS.items() if plan.shape == shape):
        for number in range(1, 4):
            variables = {"userId": account.user.id, "cursor": site.cursor(number) if number > 1 else None}
            request = FakeRequest("", {"variables": orjson.dumps(variables).decode()})
            found.append(_by_type(site._timeline(account, request)[2]))  # without a token
    return found


def _by_type(body: bytes) -> bytes:
    """Return a response with the objects of each type side by side: posts contain posts, which contain posts."""
    lists: dict[str, list[Any]] = {}

    def taken(node: Any) -> Any:
        if isinstance(node, list):
            return [taken(each) for each in node]
        if not isinstance(node, dict):
            return node
        found = {key: taken(each) for key, each in node.items()}
        kind = "Tweet" if "edit_control" in node else node.get("__typename")  # in a wrapper, a post has no type
        if kind not in {"Tweet", "TweetTombstone", "TweetWithVisibilityResults", "User"}:
            return found
        lists.setdefault(kind, []).append(found)
        return {}

    return orjson.dumps({"response": taken(orjson.loads(body)), **lists})


# Professional network


def _members(site: Any, *, masked: bool) -> list[bytes]:
    listed = [slug for slug, member in site.members.items() if bool(member.masked) == masked]
    return [_answer(site, FakeRequest(f"/in/{slug}")) for slug in listed]


# Short video


def _photos(site: Any) -> list[bytes]:
    return [orjson.dumps(site.answer("long list", offset)) for offset in range(0, 120, 12)]


def _search_page(site: Any) -> list[bytes]:
    return [_answer(site, FakeRequest("/search/photo", {"q": "whales"}))]


def _photo_search(body: bytes) -> bytes:
    """Return an answer of the general search as one of the photo search, of which no whole answer was recorded."""
    saved = orjson.loads(body)
    answer = saved.get("data", saved)
    items = [each["item"] for each in answer.get("data", ()) if "item" in each]
    return orjson.dumps({**answer, "data": None, "item_list": items or answer.get("item_list", [])})


# Video site


def _channels(site: Any, kind: str = "normal", shape: str = "") -> list[Any]:
    listed = [each for each in site.channels if each.kind == kind and not each.fault]
    return [each for each in listed if shape in {"", each.shape}]


def _open(channel: Any, tab: str = "videos") -> bytes:
    return orjson.dumps(tab_data(channel, tab, heavy=True))


def _tabs(site: Any, tab: str, shape: str) -> list[bytes]:
    return [_without_header(_open(each, tab)) for each in _channels(site, shape=shape) if tab in each.items]


def _headers(site: Any) -> list[bytes]:
    return [_header(_open(each)) for each in _channels(site)]


def _kind(site: Any, kind: str) -> list[bytes]:
    return [_open(each) for each in _channels(site, kind)]


def _header(body: bytes) -> bytes:
    return orjson.dumps({"header": orjson.loads(body)["header"]})


def _without_header(body: bytes) -> bytes:
    return orjson.dumps(orjson.loads(body) | {"header": None})


def _call(site: Any, **params: object) -> bytes:
    return _answer(site, FakeRequest("/youtubei/v1/browse", {}, "POST", {}, orjson.dumps(params)))


def _removed(site: Any) -> list[bytes]:
    return [_call(site, browseId="UC" + "x" * 22)]


def _further(site: Any) -> list[bytes]:
    listed = [each for each in _channels(site, shape="lockup") if len(each.sizes("videos")) > 1]
    return [_call(site, continuation=token(each, "videos", 1, heavy=True)) for each in listed]


def _abouts(site: Any) -> list[bytes]:
    return [_call(site, continuation=f"about-{each.id}") for each in _channels(site)]


def _players(site: Any) -> list[bytes]:
    channels = _channels(site)
    return [orjson.dumps(extra.player(each, item)) for each in channels for tab in each.items.values() for item in tab]


def _metadata(body: bytes) -> bytes:
    found = orjson.loads(body)[0]["body"]
    return orjson.dumps({"microformat": (orjson.loads(found) if isinstance(found, str) else found)["microformat"]})


WEB_INFO = "xdt_api__v1__media__shortcode__web_info"
POSTS = (
    *("b605233b31ef", "d8fcad0db39f", "341926ad1a2f", "31cafbc67d88", "9731ea66218b"),
    *("be9dfa1b596b", "c04c6c5c74c2", "c367f8c5ac7c", "ef88cf9f1b4d", "8bf3576c7485"),
)
"""Answers of other calls of the microblog, which contain the same objects."""
PROFILES = (
    *("cfa3fe63800c", "70310b5ddb3a", "0611a05b9ecb", "675355348e00", "2501a081162d"),
    *("97ae64139187", "b84140ffd351", "f060ae81202a", "8647fd3c40d5"),
)
"""Profiles in the same format since 2024, whole and masked, and parts of them."""
TABS = ("01c8092155b0", "0b05d4fd7ab0", "abfd085daaea", "fc822df7af1d", "173f1500a694", "6f199ae1a356")
"""Tabs of channels since 2026-05. Their rows and the page around them are the same."""

LOCKUPS = ("f18cc25a8fe4", "01c8092155b0", "0b05d4fd7ab0")
SHORTS = ("fc822df7af1d", "e8be8f5c2067")
RENDERERS = ("fc1785f1042c", "8b73831a70c5", "715417246ffa")

FORMS = (
    Form("retail/listing", ("25d700b25e6f", "6096432e837b", "b88e6b81d797"), _listings),
    Form(
        "retail/challenge",
        ("88acc6a8f685", "d382200a0554", "46ff7dfc4e2a", "304faa865e54"),
        lambda _: [challenge()],
        elements=True,
    ),
    Form("photoapp/page with an item", ("c6d1a1477ea7", "3937862a0188"), _reels),
    Form(
        "photoapp/item",
        ("fbaf36080e28", "c6d1a1477ea7"),
        partial(_data, layout="item"),
        partial(_result, key=WEB_INFO),
        ("4f8057cfa0d4", "3937862a0188", "6c9088afd4ec"),
    ),
    Form(
        "photoapp/post",
        ("15a62b33273a", "add1a341397f"),
        partial(_data, layout="page"),
        partial(_result, key="xig_polaris_media"),
    ),
    Form("photoapp/page without data", ("9c42b6d6b023",), partial(_of_fault, name="shell")),
    Form("photoapp/error page", ("6ddfea480abf",), _get("/p/gone_gone_g/")),
    Form("photoapp/landing page", ("00bbddc637de",), partial(_of_fault, name="stub")),
    Form(
        "microblog/profile page",
        ("15e277c749c3",),
        _get(*(f"/{handle}" for handle in PLANS)),
        also=("591342db3cda", "968d30337932", "cdb29a19e6be"),
    ),
    Form(
        "microblog/user",
        ("be9dfa1b596b", "38331a9b3159", "ef88cf9f1b4d"),
        _users,
        also=("7feb52efce1d", "251bd89a84fc", "2bb072e49472"),
    ),
    Form("microblog/timeline", ("e992000b9ff4",), partial(_timelines, shape="C"), _by_type, POSTS),
    Form(
        "microblog/older timeline",
        ("eb9b5f21d3e0", "c73688a3a838", "d3ee9f8bd024"),
        partial(_timelines, shape="B"),
        _by_type,
        POSTS,
    ),
    Form(
        "professional/profile",
        ("cfa3fe63800c", "961164b53ee7", "a48a929f0136"),
        partial(_members, masked=False),
        also=PROFILES,
        elements=True,
    ),
    Form(
        "professional/masked profile",
        ("70310b5ddb3a", "0611a05b9ecb"),
        partial(_members, masked=True),
        also=PROFILES,
        elements=True,
    ),
    Form("professional/not found", ("998b987df6e5",), _get("/in/not-found"), elements=True),
    Form("professional/home page", ("4471815fa379",), _get("/in/guest-home"), elements=True),
    Form("professional/status 999", ("6b4a3052eb36",), _get("/in/status-999"), elements=True),
    Form("professional/challenge", ("c0a0cc90578a",), _get("/in/challenge"), elements=True),
    Form("shortvideo/results", ("dcff329e5459",), _photos, _photo_search, ("f8b47592e6da",)),
    Form("shortvideo/page", ("1dd2c5035eaa", "0b7e1be695c2"), _search_page),
    Form("videosite/header", (*LOCKUPS, "abfd085daaea", *SHORTS, *RENDERERS), _headers, _header),
    Form("videosite/videos", LOCKUPS, partial(_tabs, tab="videos", shape="lockup"), _without_header, TABS),
    Form("videosite/streams", ("abfd085daaea",), partial(_tabs, tab="streams", shape="lockup"), _without_header, TABS),
    Form("videosite/shorts", SHORTS, partial(_tabs, tab="shorts", shape="lockup"), _without_header, TABS),
    Form("videosite/older videos", RENDERERS, partial(_tabs, tab="videos", shape="rich"), _without_header, TABS),
    Form("videosite/further videos", ("16bc45f35a2c", "0bc45455dcb2"), _further),
    Form("videosite/metadata", ("35fb2eae0182",), _players, _metadata),
    Form("videosite/age gate", ("e283dba54045", "6d109af6a980"), partial(_kind, kind="gated")),
    Form("videosite/game", ("73bd293953f7",), partial(_kind, kind="game")),
    Form("videosite/sport", ("2b301ed6155e",), partial(_kind, kind="sport")),
    Form("videosite/removed channel", ("01e793809a6f", "d9bad0c1112e"), _removed),
    Form("videosite/about", ("6cf4ee0e92db",), _abouts),
)
