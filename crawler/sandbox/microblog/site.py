"""The simulated microblog: its accounts with their posts, its four sources, and the expected records."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from time import time
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from crawler.sandbox.faults import described, target, unnumbered
from crawler.sandbox.microblog import faults as microblog_faults
from crawler.sandbox.microblog import new as microblog_new
from crawler.sandbox.microblog import old as microblog_old
from crawler.sandbox.microblog import page as microblog_page
from crawler.sandbox.microblog.account import NEWEST, STALE, Account, Inventor, Plan, Post, User
from crawler.sandbox.microblog.calls import Token, cursor_to, incomplete_query, page_of
from crawler.sandbox.microblog.expected import Exposed, record
from crawler.sandbox.microblog.faults import FAULTS
from crawler.sandbox.protocol import as_json

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeRequest, FakeResponse

__all__ = ["FAULTS", "Site"]

PAGE_SIZE = 20

PLANS = {
    "quiet_harbor": Plan(230),
    "old_lantern": Plan(215, "B", flat=False),
    "iron_meadow": Plan(45, "B"),
    "relay_station": Plan(45, "D", flat=False),
    "popular_tide": Plan(65, popular=True),
    "closed_garden": Plan(0, protected=True),
    "empty_shelf": Plan(0),
    "lone_wolf": Plan(1, "B", flat=False),
    "cut_short": Plan(45, terminated=False, unlisted=15),
    "half_listed": Plan(45, unlisted=15),
}
FAULTY = Plan(30, unlisted=300)
"""The plan of the accounts with faults. These accounts state more posts than they list, so that no single source
contains all posts."""

TARGETS = [
    target("230 posts", username="quiet_harbor"),
    target("215 posts, in older response formats", username="old_lantern"),
    target("45 posts, in older response formats", username="iron_meadow"),
    target("45 posts, in the newest response formats", username="relay_station"),
    target("65 posts, sorted by popularity", username="popular_tide"),
    target("a protected account", username="closed_garden"),
    target("an account without posts", username="empty_shelf"),
    target("an account with one post", username="lone_wolf"),
    target("60 posts are stated; the timeline ends after 45, without a sign of its end", username="cut_short"),
    target("60 posts are stated; the timeline states its end after 45", username="half_listed"),
]


class Site:
    """The simulated microblog. The same seed produces the same accounts in every process."""

    handles_of_faults: ClassVar[dict[str, str]] = {f"fault_{n:02}": name for n, name in enumerate(sorted(FAULTS), 1)}

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        self.seed = seed
        self.size = 5 if light else PAGE_SIZE
        self.light = light
        self.faults = self.handles_of_faults
        self.token = Token()
        self.first_query_ids: dict[str, str] = {}
        """The query id of the first request for each account and query."""

    @cached_property
    def ids(self) -> dict[str, str]:
        """The handle of each account, by user id. Accounts with a number are added when they are first requested."""
        return {self._invented(handle)[1].id: handle for handle in (*PLANS, *self.faults)}

    def _fault_of(self, handle: str) -> str:
        """Return the fault of an account, or "". The handle may contain a number, as in ``fault_07_12``."""
        return self.faults.get(unnumbered(handle, self.faults), "")

    def _invented(self, handle: str) -> tuple[Inventor, User]:
        """Return the user with the given handle, and the generator of the user's posts."""
        inventor = Inventor(f"{self.seed}/{handle}")
        shown = handle.replace("_l", "_L") if handle == "old_lantern" else handle
        return inventor, inventor.user(shown, protected=handle in PLANS and PLANS[handle].protected)

    @lru_cache(maxsize=256)  # noqa: B019  # sites live as long as their process
    def account(self, handle: str) -> Account:
        """Return the account with a handle, which must be in lower case.

        Raises:
            KeyError: the account does not exist.
        """
        plan = FAULTY if self._fault_of(handle) else PLANS[handle]
        inventor, user = self._invented(handle)
        self.ids[user.id] = handle
        count = min(plan.posts, 60) if self.light else plan.posts
        user = user if plan.protected else replace(user, posts=count + plan.unlisted)
        others = tuple(inventor.user(name) for name in ("ink_and_tide", "north_gate"))
        posts = tuple(self._post(inventor, user, others, n) for n in range(count))
        pinned = posts[-3] if len(posts) > 2 * self.size else None
        return Account(user, plan, posts, pinned, others)

    def _post(self, inventor: Inventor, user: User, others: tuple[User, ...], number: int) -> Post:
        """Invent a post of a random kind."""
        rng = inventor.rng
        time = NEWEST - number * 7_200 - rng.randint(0, 3_600)
        other = inventor.post(rng.choice(others), time - rng.randint(600, 90_000))
        kind = rng.random()
        if kind < 0.2:
            if rng.random() < 0.3:
                other = replace(other, quote_id=inventor.post(user, time - 100_000).id)
            text = replace(inventor.post(user, time), text="", tags=(), links=(), media=(), long=False, wrapped=False)
            return replace(text, repost_of=other, views=rng.choice((None, 7)))
        mine = inventor.post(user, time)
        if kind < 0.35:
            deleted = rng.random() < 0.3
            return replace(mine, quote_id=other.id, quote_of=None if deleted else other)
        if kind < 0.5:
            to = rng.choice((user, *others))
            mine = replace(mine, text=f"@{to.handle} {mine.text}", reply_handle=to.handle, wrapped=False)
            return mine if rng.random() < 0.1 else replace(mine, reply_id=other.id)
        return mine

    # The site

    def source_of(self, request: FakeRequest) -> tuple[str, str]:
        """Return the source that is requested, and the requested handle in lower case. Both may be ""."""
        parts = request.path.strip("/").split("/")
        if parts[0] == "srv":
            return "embed", parts[-1].lower()
        if parts[0] == "graphql" and len(parts) == 3:
            variables = orjson.loads(request.args.get("variables", "{}"))
            if parts[2] == "UserByScreenName":
                return "user", str(variables.get("screen_name") or variables.get("screenName") or "").lower()
            return "timeline", self.ids.get(str(variables.get("userId")), "")
        return ("page", parts[0].lower()) if len(parts) == 1 else ("", "")

    def fault(self, request: FakeRequest) -> str | None:
        """Return the fault of the requested account if the fault affects the requested source, else None."""
        source, handle = self.source_of(request)
        name = self._fault_of(handle)
        return name if name and microblog_faults.applies_to(name, source) else None

    def limited(self, request: FakeRequest, seconds: int) -> FakeResponse | None:
        """Build the response to a request above a limit by rate, in the format of the requested source."""
        source, _ = self.source_of(request)
        if not source:
            return None
        status, headers, body = self.damaged("all-limited", request)
        reset = {"X-Rate-Limit-Reset": str(int(time()) + seconds)} if source in microblog_faults.CALLS else {}
        return status, headers | reset, body

    def refusal(self, request: FakeRequest) -> FakeResponse | None:
        """Build the error for a query that lacks what the platform's data file names."""
        is_query = self.source_of(request)[0] in microblog_faults.CALLS
        return incomplete_query(request, microblog_faults.NEW_IDS.values()) if is_query else None

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response to a request."""
        if request.path == "/robots.txt":
            return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /search\n"
        if request.path == "/1.1/guest/activate.json":
            return self.token.activate(request)
        if request.path == "/i/flow/login":
            return 200, {}, microblog_page.other_page("Log in to X / X", "<h1>Log in</h1>")
        source, handle = self.source_of(request)
        if source in {"user", "timeline"} and (refusal := self.token.refusal(request)):
            return refusal
        try:
            return self._served(source or "page", handle, request)
        except KeyError:
            return microblog_faults.missing_account(source)

    def _served(self, source: str, handle: str, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response that a source sends for an account.

        Raises:
            KeyError: the account does not exist.
        """
        sources = {"page": self._page, "embed": self._embed, "user": self._user, "timeline": self._timeline}
        return sources[source](self.account(handle), request)

    def _page(self, account: Account, request: FakeRequest) -> FakeResponse:
        return 200, {}, microblog_page.profile_page(account.user, account.newest, flat=account.plan.flat)

    def _embed(self, account: Account, request: FakeRequest) -> FakeResponse:
        entries = [
            {
                "type": "tweet",
                "entry_id": f"tweet-{post.id}",
                "sort_index": post.id,
                "content": {"tweet": microblog_old.embedded(post, STALE)},
            }
            for post in account.embedded
        ]
        entries[2:2] = [{"type": "advert", "entry_id": "advert-1", "sort_index": "1", "content": {}}] if entries else []
        return 200, {}, microblog_page.embed_page(account.user.handle, entries)

    def _user(self, account: Account, request: FakeRequest) -> FakeResponse:
        shape = "C" if account.plan.shape == "D" else account.plan.shape
        is_newest_client = "screenName" in orjson.loads(request.args["variables"])
        root = "user_result_by_screen_name" if is_newest_client else "user"
        return as_json({"data": {root: {"result": microblog_old.user_payload(account.user, shape)}}})

    def _timeline(self, account: Account, request: FakeRequest) -> FakeResponse:
        sent = str(orjson.loads(request.args["variables"]).get("cursor") or "")
        number = page_of(sent)
        if account.plan.protected:
            return as_json({"data": {"user": {"result": {}}}})
        posts = self._slice(account, number)
        following = cursor_to(number + 1) if posts else sent
        pinned = account.pinned if number == 1 else None
        last = account.plan.terminated and not self._slice(account, number + 1)
        if account.plan.shape == "D":
            return as_json(microblog_new.call_timeline(posts, pinned, following, end=last))
        shape = account.plan.shape
        entries = [self._entry(account, post) for post in posts]
        if posts:
            advert = microblog_old.entry(
                Inventor(f"advert{self.seed}").post(account.others[0], NEWEST), shape, promoted=True
            )
            if shape == "B":  # in the older format, advertisements are marked twice
                advert["entryId"] = f"promoted-{advert['entryId']}"
            entries[3:3] = [advert]
            entries[5:5] = [microblog_old.who_to_follow(list(account.others), shape)]
            entries[6:6] = [microblog_old.tombstone("1")]
        entries += [microblog_old.cursor("Top", "DAAHtop"), microblog_old.cursor("Bottom", following or "DAAHsame")]
        first = microblog_old.entry(pinned, shape, pinned=True) if pinned else None
        return as_json(microblog_old.timeline(entries, first, end=last))

    def _entry(self, account: Account, post: Post) -> dict[str, Any]:
        """Build a post's entry in the timeline. For a reply, this is the entry for the whole conversation."""
        shape = account.plan.shape
        if not post.reply_id:
            return microblog_old.entry(post, shape)
        parent = Inventor(post.reply_id).post(account.others[1], post.time - 60)
        return microblog_old.conversation([replace(parent, id=post.reply_id), post], shape)

    def _slice(self, account: Account, number: int) -> list[Post]:
        return account.timeline[(number - 1) * self.size : number * self.size]

    @staticmethod
    def cursor(number: int) -> str:
        """Return the opaque cursor for a page of a timeline."""
        return cursor_to(number)

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the damaged response for a fault that only the microblog has."""
        source, handle = self.source_of(request)
        wrong = name in microblog_faults.WRONG_PROFILE_FAULTS
        other = microblog_faults.OTHER_HANDLE
        call = microblog_faults.Call(
            request=request,
            source=source,
            handle=handle,
            honest=lambda: self._served(source, other, request) if wrong else self.page(request),
            user_id=self._invented(handle)[1].id,
            first_id=self._has_first_id(handle, request),
        )
        return microblog_faults.damaged(name, call)

    def _has_first_id(self, handle: str, request: FakeRequest) -> bool:
        """Whether a request has the query id of the first request for the same query and account."""
        *_, query_id, call = "", *request.path.strip("/").split("/")
        return self.first_query_ids.setdefault(f"{handle} {call}", query_id) == query_id

    def catalogue(self) -> dict[str, Any]:
        """Return the microblog's accounts, and the handles that select its faults."""
        handles = {name: handle for handle, name in self.faults.items()}
        return {
            "targets": TARGETS,
            "accounts": {h: {"posts": len(self.account(h).posts), "shape": PLANS[h].shape} for h in PLANS},
            "faults": described(FAULTS, lambda name: {"username": handles[name]}),
        }

    # Expected records

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the exact record for a page of an account; pages are counted from 1.

        ``nextCursor`` is "" here, because only the spider can build its value. ``source`` (page, embed, user or
        timeline): return the record of a single response.

        Raises:
            KeyError: the account does not exist.
            ValueError: the page number is below 1.
        """
        handle = str(params["username"]).removeprefix("@").lower()
        number = int(params.get("page") or 1)
        if number < 1:
            raise ValueError(number)
        account = self.account(handle)
        sources = {params["source"]} if "source" in params else {"page", "embed", "user", "timeline"}
        failing = microblog_faults.failing_sources(self._fault_of(handle))
        served = [] if account.plan.protected else self._slice(account, number)
        last = account.plan.terminated and not self._slice(account, number + 1)
        return record(
            Exposed(
                account=account,
                sources=frozenset(sources - failing),
                served=served,
                first_served=self._slice(account, 1),
                number=number,
                more=bool(served) and not last and not microblog_faults.ends_early(self._fault_of(handle), number),
            )
        )
