"""The simulated short-video site: its search page, the signed API call of that page, and the expected records."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.faults import described, target, too_many_requests, unnumbered
from crawler.sandbox.shortvideo import faults as shortvideo_faults
from crawler.sandbox.shortvideo import page as shortvideo_page
from crawler.sandbox.shortvideo import web as shortvideo_web
from crawler.sandbox.shortvideo.expected import record
from crawler.sandbox.shortvideo.faults import FAULTS, OVERLAYS
from crawler.sandbox.shortvideo.page import OTHER_RESULTS, RESULTS
from crawler.sandbox.shortvideo.world import LONG, Posts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawler.sandbox.protocol import FakeRequest, FakeResponse
    from crawler.sandbox.shortvideo.world import Post

__all__ = ["FAULTS", "Site"]

CALLS = (RESULTS, OTHER_RESULTS)
PAGE_SIZE = 12
"""The number of new rows in a response to the page's API call. The last response may have fewer."""

_STATIC: dict[str, FakeResponse] = {
    "/login": (200, {}, shortvideo_page.login()),
    "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /api/\n"),
}
"""Pages with fixed content, by path."""

TARGETS = [
    target("a search, as for any other text", keywords="whales"),
    target("more than ten pages of results", keywords=LONG),
]


class Site(Posts):
    """The simulated short-video site, made from one seed."""

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        super().__init__(seed, light=light)
        self.example = "whales"
        self.clicks: Counter[str] = Counter()
        """How often the close buttons of dialogs were clicked, by the search's keywords and the kind of dialog."""

    # Requests

    def fault(self, request: FakeRequest) -> str | None:
        """Return the fault that the search's keywords select for this kind of request (the page or its API call)."""
        if request.path == "/search/photo":
            return shortvideo_faults.page_fault(request.args.get("q", ""))
        if request.path in CALLS and self._is_signed(request):
            return shortvideo_faults.call_fault(request.args.get("keyword", ""), int(request.args["offset"]))
        return None

    def limited(self, request: FakeRequest, seconds: int) -> FakeResponse | None:
        """Build the response to a call for results above a limit by rate. The search page is not limited."""
        return too_many_requests(seconds) if request.path in CALLS else None

    def refusal(self, _: FakeRequest) -> None:
        """Refuse no request: ``page`` checks the signatures of calls, the only thing that the site demands."""

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response: the search page, an API response, the page's script, a static page, or 404.

        Requests for ``/clicked``, which the script sends when a dialog is closed, are counted.
        """
        if request.path == "/search/photo":
            keyword = request.args.get("q", "")
            overlay = OVERLAYS.get(unnumbered(keyword, FAULTS))
            return 200, {}, shortvideo_page.search(keyword, self.nonce(keyword), overlay, request, self.light)
        if request.path in CALLS:
            return self._results(request)
        if request.path == "/clicked":
            self.clicks[f"{request.args['q']}: {request.args['kind']}"] += 1
            return 204, {}, b""
        if request.path == shortvideo_page.SCRIPT and request.headers.get("host", "").startswith("localhost"):
            return 200, {"Content-Type": "text/javascript"}, shortvideo_page.SEARCH_SCRIPT
        return _STATIC.get(request.path) or (404, {}, b"<html><title>Not found</title></html>")

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the damaged response for a fault that only this site has."""
        if name in shortvideo_faults.ON_PAGE:
            return shortvideo_faults.damaged_page(name, request, lambda: self.page(request))
        offset = 0 if name in shortvideo_faults.REPEATS_FIRST else int(request.args.get("offset", 0))
        return shortvideo_faults.damaged_results(name, lambda: self._found(request.args["keyword"], offset))

    def nonce(self, keyword: str) -> str:
        """Return the key in the search page's HTML with which the page's script signs its API calls."""
        return hashlib.sha256(f"{self.seed}|{keyword}".encode()).hexdigest()[:16]

    def _is_signed(self, request: FakeRequest) -> bool:
        """Whether an API call has a valid signature over the page's key, keywords, offset and user agent."""
        keyword, offset = request.args.get("keyword", ""), request.args.get("offset", "")
        parts = (self.nonce(keyword), keyword, offset, request.headers.get("user-agent", ""))
        is_right = request.args.get("X-Bogus") == shortvideo_page.signature("|".join(parts))
        return (
            is_right and offset.isdecimal() and (offset == "0" or request.args.get("search_id") == self.log_id(keyword))
        )

    def log_id(self, keyword: str) -> str:
        """Return the id of a search, which calls for further results must contain."""
        return f"20261121080000{hashlib.sha256(keyword.encode()).hexdigest()[:20].upper()}"

    def _results(self, request: FakeRequest) -> FakeResponse:
        if not self._is_signed(request):
            return 200, {"Content-Type": "application/json"}, b""  # the platform sends an empty body to bots
        return self._found(request.args["keyword"], int(request.args["offset"]))

    def _found(self, keyword: str, offset: int) -> FakeResponse:
        return 200, shortvideo_faults.JSON, orjson.dumps(self.answer(keyword, offset))

    def answer(self, keyword: str, offset: int) -> dict[str, Any]:
        """Build a response of the search API. From the second response on, its first row repeats the row before it."""
        posts = self.posts(keyword)
        rows = posts[max(offset - 1, 0) : offset + PAGE_SIZE]
        cursor = min(offset + PAGE_SIZE, len(posts))
        more = int(cursor < len(posts))
        return shortvideo_web.answer(keyword, rows, cursor=cursor, more=more, log_id=self.log_id(keyword))

    def catalogue(self) -> dict[str, Any]:
        """Return the example keywords, the keywords that select faults, and how often dialogs were clicked.

        Searches with any other keywords have results, too.
        """
        return {
            "clicks": self.clicks,
            "targets": TARGETS,
            "examples": [self.example, LONG],
            "faults": described(FAULTS, lambda name: {"keywords": name}),
        }

    # Expected records

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the exact record that must be extracted for a target.

        Raises:
            KeyError: the params have no keywords.
            ValueError: the cursor or the count is not a number.
        """
        keyword = params["keywords"]
        start, count = int(params.get("cursor") or 0), int(params.get("count") or 30)
        posts = shortvideo_faults.readable_posts(keyword, self.posts(keyword), PAGE_SIZE)
        shown = [record(post) for post in self._visible(keyword, posts)]
        rows = shown[start : start + count]
        is_cut = 0 < len(posts) < len(self.posts(keyword))
        return {
            "cursor": str(start + len(rows)),
            "has_more": start + count < len(shown) or is_cut or self._may_continue(keyword, start + count),
            "keywords": keyword,
            "search_item_list": rows,
        }

    @staticmethod
    def _visible(keyword: str, posts: Sequence[Post]) -> list[Post]:
        """Return the posts that records may contain: photo posts that are not hidden, and that no fault damages."""
        photos = [post for post in posts if post.kind == "photo" and not post.hidden]
        return photos[1:] if unnumbered(keyword, FAULTS) in shortvideo_faults.WITHOUT_FIRST_ROW else photos

    def _may_continue(self, keyword: str, rows: int) -> bool:
        """Whether the page can load further results after the response that completes the first ``rows`` rows."""
        posts = shortvideo_faults.readable_posts(keyword, self.posts(keyword), PAGE_SIZE)
        return any(len(self._visible(keyword, posts[:end])) >= rows for end in range(PAGE_SIZE, len(posts), PAGE_SIZE))
