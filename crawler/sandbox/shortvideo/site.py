"""The simulated short-video site: what its search finds, the call that its page signs, and the truth of both."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.shortvideo import app as shortvideo_app
from crawler.sandbox.shortvideo import faults as shortvideo_faults
from crawler.sandbox.shortvideo import page as shortvideo_page
from crawler.sandbox.shortvideo import record as shortvideo_record
from crawler.sandbox.shortvideo import web as shortvideo_web
from crawler.sandbox.shortvideo.faults import FAULTS, WALLS
from crawler.sandbox.shortvideo.world import LONG, Posts

if TYPE_CHECKING:
    from crawler.sandbox.protocol import Answer, FakeRequest

__all__ = ["FAULTS", "Site"]

RESULTS = "/api/search/photo/full/"
PAGE_SIZE = 12
"""Rows that the page asks for at once."""

_OTHER: dict[str, Answer] = {
    "/login": (200, {}, shortvideo_page.login()),
    "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /api/\n"),
}
"""Pages that are always the same."""


class Site(Posts):
    """The site of a seed."""

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        super().__init__(seed, light=light)
        self.example = "whales"

    # The site

    def fault(self, ask: FakeRequest) -> str | None:
        """A search for a fault's name: some are played on the page, some on the call that it makes."""
        if ask.path == "/search/photo":
            return shortvideo_faults.of_page(ask.args.get("q", ""))
        if ask.path == RESULTS and self._is_signed(ask):
            return shortvideo_faults.of_call(ask.args.get("keyword", ""), int(ask.args["offset"]))
        return None

    def page(self, ask: FakeRequest) -> Answer:
        """The search page, its call, its script, a page that is always the same, or 404."""
        if ask.path == "/search/photo":
            keyword = ask.args.get("q", "")
            return 200, {}, shortvideo_page.search(keyword, self.nonce(keyword), WALLS.get(keyword), ask, self.light)
        if ask.path == RESULTS:
            return self._results(ask)
        if ask.path == shortvideo_page.SCRIPT and ask.headers.get("host", "").startswith("localhost"):
            return 200, {"Content-Type": "text/javascript"}, shortvideo_page.SEARCH_SCRIPT
        return _OTHER.get(ask.path) or (404, {}, b"<html><title>Not found</title></html>")

    def damaged(self, name: str, ask: FakeRequest) -> Answer:
        """The site's own faults."""
        if name in shortvideo_faults.ON_PAGE:
            return shortvideo_faults.damaged_page(name, ask, lambda: self.page(ask))
        offset = 0 if name in shortvideo_faults.FIRST_AGAIN else int(ask.args.get("offset", 0))
        return shortvideo_faults.damaged_results(name, lambda: self._found(ask.args["keyword"], offset))

    def nonce(self, keyword: str) -> str:
        """What a page gives its script to sign with."""
        return hashlib.sha256(f"{self.seed}|{keyword}".encode()).hexdigest()[:16]

    def _is_signed(self, ask: FakeRequest) -> bool:
        """Whether the page's own script made the call: for this page, these words, this place, and in this browser."""
        keyword, offset = ask.args.get("keyword", ""), ask.args.get("offset", "")
        parts = (self.nonce(keyword), keyword, offset, ask.headers.get("user-agent", ""))
        right = ask.args.get("X-Bogus") == shortvideo_page.signature("|".join(parts))
        return right and offset.isdecimal() and (offset == "0" or ask.args.get("search_id") == self.log_id(keyword))

    def log_id(self, keyword: str) -> str:
        """The id of a search, which its further pages must name."""
        return f"20261121080000{hashlib.sha256(keyword.encode()).hexdigest()[:20].upper()}"

    def _results(self, ask: FakeRequest) -> Answer:
        if not self._is_signed(ask):
            return 200, {"Content-Type": "application/json"}, b""  # how the platform refuses what it takes for a robot
        return self._found(ask.args["keyword"], int(ask.args["offset"]))

    def _found(self, keyword: str, offset: int) -> Answer:
        return 200, shortvideo_faults.JSON, orjson.dumps(self.answer(keyword, offset))

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

    # Expected records

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
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
