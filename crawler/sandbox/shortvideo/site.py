"""The simulated short-video site: what its search finds, the call that its page signs, and the truth of both."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.shortvideo import app as shortvideo_app
from crawler.sandbox.shortvideo import faults as shortvideo_faults
from crawler.sandbox.shortvideo import page as shortvideo_page
from crawler.sandbox.shortvideo import record as shortvideo_record
from crawler.sandbox.shortvideo import web as shortvideo_web
from crawler.sandbox.shortvideo.faults import FAULTS, WALLS

if TYPE_CHECKING:
    from crawler.sandbox.faults import Answer, Ask

__all__ = ["FAULTS", "World"]

RESULTS = "/api/search/photo/full/"
PAGE_SIZE = 12
"""Rows that the page asks for at once."""
LONG = "long list"
LONG_ROWS = 130
"""Rows of the search that goes on for longer than ten pages."""
TOP_ID = 7_480_000_000_000_000_000

_OTHER: dict[str, Answer] = {
    "/login": (200, {}, shortvideo_page.login()),
    "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /api/\n"),
}
"""Pages that are always the same."""

_HANDLES = ("nora.paints", "tiny_atlas", "käthe", "mossandclay", "user4471", "the.quiet.hour", "بحر", "okoye_eats")
_NAMES = ("Nora 🎨", "Tiny Atlas", "Käthe — Fotos", "𝓜𝓸𝓼𝓼 & Clay", "", "The Quiet Hour 🕯️", "بحر 🌊", "Okoye eats")
_CAPTIONS = (
    "Five frames from the coast 🌊🐋 #{word} #fyp ",
    "how I plan my week\n\n1. tea\n2. lists\n#{word}",
    "صباح الخير #{word}",
    'so "good" & <cheap> #{word} #photomode',
    "",
)
_SOUNDS = ("original sound", "sonido original", "原聲", "Delirium", "And I Love Her")


@dataclass(frozen=True, slots=True)
class Person:
    """An account."""

    id: str
    handle: str
    name: str
    about: str
    private: bool = False


@dataclass(frozen=True, slots=True)
class Sound:
    """What plays with a post."""

    id: str
    title: str
    author: str
    album: str
    seconds: int
    original: bool


@dataclass(frozen=True, slots=True)
class Post:
    """What the site knows of a post; answers and truth are both made from it."""

    id: str
    kind: str
    """photo, video, live, empty (a photo post without pictures)."""
    person: Person
    caption: str
    language: str
    created: int
    pictures: tuple[tuple[str, int, int], ...]
    """Key, width and height of each."""
    covered: bool
    """Whether a cover is named; else it is the first picture."""
    rendered: bool
    """Whether the platform made a slide show of it."""
    sound: Sound | None
    figures: tuple[int, ...]
    """Collected, commented, liked, played, shared, reposted, downloaded, sent."""
    ad: bool
    paid: bool | None
    comments: int | None
    anchored: bool
    hidden: bool


class World:
    """The site. The same seed gives the same posts everywhere."""

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        self.seed = seed
        self.light = light
        self.example = "whales"

    # The world

    @lru_cache(maxsize=64)  # noqa: B019  # worlds live as long as their process
    def posts(self, keyword: str) -> tuple[Post, ...]:
        """All that a search finds, in the platform's order: also what is no photo post."""
        rng = random.Random(f"{self.seed}{keyword}")  # noqa: S311  # an invented world, no secret
        size = 5 if self.light else LONG_ROWS if keyword == LONG else rng.randint(30, 46)
        return tuple(self._post(rng, number, keyword) for number in range(size))

    def _post(self, rng: random.Random, number: int, keyword: str) -> Post:
        who = rng.randrange(len(_HANDLES))
        created = rng.randint(1_600_000_000, 1_790_000_000)
        # The first row is an ordinary one: whatever else a search finds, it finds a photo post.
        kind = rng.choices(("photo", "video", "live", "empty"), (88, 8, 2, 2))[0] if number else "photo"
        hidden = bool(number) and rng.random() < 0.03
        likes = round(rng.lognormvariate(8, 2))
        return Post(
            id=str(TOP_ID - rng.getrandbits(52) * 64 - number),
            kind=kind,
            person=Person(
                id=str(6_600_000_000_000_000_000 + rng.getrandbits(58)),
                handle=_HANDLES[who],
                name=_NAMES[who],
                about=rng.choice(("", "📍 somewhere\nmail me", "she/her")),
                private=hidden and number % 2 == 1,
            ),
            caption=rng.choice(_CAPTIONS).format(word=keyword.replace(" ", "")),
            language=rng.choice(("un", "en", "de", "zh-Hans", "")),
            created=created,
            pictures=tuple(
                (f"{rng.getrandbits(128):032x}", rng.choice((1080, 1170, 720)), rng.choice((1440, 1920, 720)))
                for _ in range(rng.choice((1, 2, 3, 7) if self.light else (1, 2, 3, 5, 7, 12, 35)))
            ),
            covered=rng.random() < 0.8,
            rendered=rng.random() < 0.2,
            sound=self._sound(rng) if rng.random() < 0.94 else None,
            figures=tuple(round(likes * share) for share in (0.2, 0.02, 1, 14, 0.1, 0.01, 0.03, 0.005)),
            ad=rng.random() < 0.05,
            paid=rng.choice((None, None, True, False)),
            comments=rng.choice((0, 0, 0, 1, 3, None)),
            anchored=rng.random() < 0.3,
            hidden=hidden,
        )

    @staticmethod
    def _sound(rng: random.Random) -> Sound:
        title = rng.choice(_SOUNDS)
        original = "original" in title or title == "原聲"
        return Sound(
            id=str(6_700_000_000_000_000_000 + rng.getrandbits(58)),
            title=title,
            author=rng.choice(("hoomy", "blipstudio", "Santo E Johnny", "𝐙")),
            album="" if original else rng.choice(("", "Delirium - Deluxe")),
            seconds=rng.randint(5, 59),
            original=original,
        )

    # The site

    def fault(self, ask: Ask) -> str | None:
        """A search for a fault's name: some are played on the page, some on the call that it makes."""
        if ask.path == "/search/photo":
            return shortvideo_faults.of_page(ask.args.get("q", ""))
        if ask.path == RESULTS and self._is_signed(ask):
            return shortvideo_faults.of_call(ask.args.get("keyword", ""), int(ask.args["offset"]))
        return None

    def page(self, ask: Ask) -> Answer:
        """The search page, its call, its script, a page that is always the same, or 404."""
        if ask.path == "/search/photo":
            keyword = ask.args.get("q", "")
            return 200, {}, shortvideo_page.search(keyword, self.nonce(keyword), WALLS.get(keyword), ask, self.light)
        if ask.path == RESULTS:
            return self._results(ask)
        if ask.path == shortvideo_page.SCRIPT and ask.headers.get("host", "").startswith("localhost"):
            return 200, {"Content-Type": "text/javascript"}, shortvideo_page.SEARCH_SCRIPT
        return _OTHER.get(ask.path) or (404, {}, b"<html><title>Not found</title></html>")

    def damaged(self, name: str, ask: Ask) -> Answer:
        """The site's own faults."""
        return shortvideo_faults.damaged(self, name, ask)

    def nonce(self, keyword: str) -> str:
        """What a page gives its script to sign with."""
        return hashlib.sha256(f"{self.seed}|{keyword}".encode()).hexdigest()[:16]

    def _is_signed(self, ask: Ask) -> bool:
        """Whether the page's own script made the call: for this page, these words, this place, and in this browser."""
        keyword, offset = ask.args.get("keyword", ""), ask.args.get("offset", "")
        parts = (self.nonce(keyword), keyword, offset, ask.headers.get("user-agent", ""))
        right = ask.args.get("X-Bogus") == shortvideo_page.signature("|".join(parts))
        return right and offset.isdecimal() and (offset == "0" or ask.args.get("search_id") == self.log_id(keyword))

    def log_id(self, keyword: str) -> str:
        """The id of a search, which its further pages must name."""
        return f"20261121080000{hashlib.sha256(keyword.encode()).hexdigest()[:20].upper()}"

    def _results(self, ask: Ask) -> Answer:
        if not self._is_signed(ask):
            return 200, {"Content-Type": "application/json"}, b""  # how the platform refuses what it takes for a robot
        answer = self.answer(ask.args["keyword"], int(ask.args["offset"]))
        return 200, {"Content-Type": "application/json; charset=utf-8"}, orjson.dumps(answer)

    def answer(self, keyword: str, offset: int) -> dict[str, Any]:
        """One answer of the search's call. From the second on its first row repeats the last of the one before."""
        posts = self.posts(keyword)
        rows = posts[max(offset - 1, 0) : offset + PAGE_SIZE]
        item = shortvideo_app.entry if keyword == "app-shape" else shortvideo_web.item
        cursor = min(offset + PAGE_SIZE, len(posts))
        listed = "search_item_list" if keyword == "app-shape" else "item_list"
        return {
            "status_code": 0,
            listed: [item(post) for post in rows],
            "cursor": cursor,
            "has_more": int(cursor < len(posts)),
            "qc": "",
            "query_correct_info": {"corrected_query": f"{keyword}s", "correct_level": 1},
            "ad_info": {},
            "extra": {
                "now": 1_795_248_000_000,
                "logid": self.log_id(keyword),
                "fatal_item_ids": [],
                "search_request_id": "",
                "api_debug_info": None,
            },
            "log_pb": {"impr_id": self.log_id(keyword)},
            "global_doodle_config": {"feedback_survey": None},
            "backtrace": "",
        }

    def catalogue(self) -> dict[str, Any]:
        """What there is to ask for: any words; these stand for something."""
        return {
            "examples": [self.example, LONG],
            "faults": {name: {"code": fault.code, "about": fault.about} for name, fault in FAULTS.items()},
        }

    # The truth

    def truth(self, params: dict[str, Any]) -> dict[str, Any]:
        """The exact record of a target.

        Raises:
            KeyError: no words.
            ValueError: a cursor or a count that is no number.
        """
        keyword = params["keywords"]
        start, most = int(params.get("cursor") or 0), int(params.get("count") or 30)
        record = shortvideo_app.record if keyword == "app-shape" else shortvideo_record.record
        posts = shortvideo_faults.readable(keyword, self.posts(keyword), PAGE_SIZE)
        shown = [record(post) for post in posts if post.kind == "photo" and not post.hidden]
        rows = shown[start : start + most]
        cut = 0 < len(posts) < len(self.posts(keyword))
        return {
            "cursor": str(start + len(rows)),
            "has_more": start + most < len(shown) or cut or self._goes_on(keyword, start + most),
            "keywords": keyword,
            "search_item_list": rows,
        }

    def _goes_on(self, keyword: str, wanted: int) -> bool:
        """Whether the answer that holds the last wanted row is not the last: then nobody knows whether rows follow."""
        posts = shortvideo_faults.readable(keyword, self.posts(keyword), PAGE_SIZE)
        for end in range(PAGE_SIZE, len(posts), PAGE_SIZE):
            if sum(post.kind == "photo" and not post.hidden for post in posts[:end]) >= wanted:
                return True
        return False
