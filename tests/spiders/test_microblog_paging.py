"""Microblog: a client's loop ``while hasMore`` ends with every fault, and returns each post once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crawler.platforms.microblog.schema import CURSOR
from crawler.platforms.requests import decode_cursor, encode_cursor
from crawler.sandbox.microblog.expected import post_record
from crawler.sandbox.microblog.faults import FAULTS, failing_sources
from crawler.sandbox.microblog.site import Site
from crawler.service.keys import KeyStore
from tests.crawls import crawl, on, options, platforms
from tests.microblog_pages import same
from tests.service.client import HEADERS, call
from tests.service.conftest import running

SITE = Site()
HANDLES = {name: handle for handle, name in SITE.faults.items()}
PATH = "/v1/scrapers/microblog-profile"
MAX_CALLS = 40
"""More calls than the pages of any account."""
ENDLESS = "a crawl of so many pages ends only by itself"
TIMEOUTS = ("SOURCE_TIMEOUT=30", "DOWNLOAD_TIMEOUT=30")
"""Long enough that only requests without any response time out, even on a busy machine."""

WITHOUT_TIMELINE = {
    "calls-as-pages": "UPSTREAM_BLOCKED",
    "calls-failing": "UPSTREAM_ERROR",
    "calls-for-members": "UPSTREAM_BLOCKED",
    "calls-limited": "UPSTREAM_RATE_LIMITED",
    "calls-off": "UPSTREAM_BLOCKED",
    "calls-overloaded": "UPSTREAM_ERROR",
    "missing-flag": "EXTRACTION_FAILED",
    "only-embed": "UPSTREAM_BLOCKED",
    "only-page": "UPSTREAM_BLOCKED",
    "stale-ids": "EXTRACTION_FAILED",
    "timeline-off": "UPSTREAM_BLOCKED",
    "token-refused": "UPSTREAM_BLOCKED",
}
"""Faults whose first page comes without the timeline -> the error of the second page, which needs the timeline."""
LAST_ERRORS = WITHOUT_TIMELINE | {"stale-cursor": "INVALID_REQUEST"}

HONEST = "from crawler.sandbox.microblog.site import Site; Site.fault = lambda self, request: None"
UNLISTED = """
from dataclasses import replace
from crawler.sandbox.microblog.site import PLANS
PLANS.update({handle: replace(plan, unlisted=300) for handle, plan in PLANS.items()})
"""
"""Code that makes accounts claim more posts than they list: otherwise, a page with all posts of the embed is the last.
"""
LIMITED_ONCE = """
from crawler.sandbox.microblog.site import Site
timeline, limited = Site._timeline, set()
def limit(self, account, request):
    if request.args["variables"] in limited:
        return timeline(self, account, request)
    limited.add(request.args["variables"])
    return 429, {"Retry-After": "1"}, b"Rate limit exceeded"
Site._timeline = limit
"""
"""Code that makes the platform respond to the first request for each timeline page with status 429."""
EMPTY_ONCE = """
from crawler.sandbox.microblog import calls, old
from crawler.sandbox.microblog.site import Site
timeline, emptied = Site._timeline, set()
def empty(self, account, request):
    variables = request.args["variables"]
    if "cursor" not in variables or variables in emptied:
        return timeline(self, account, request)
    emptied.add(variables)
    return calls.as_json(old.timeline([], None, end=False))
Site._timeline = empty
"""
"""Code that makes the platform respond to the first request for each further timeline page with an empty page."""
LEADS_BACK = """
from crawler.sandbox.microblog import calls
from crawler.sandbox.microblog.site import Site
timeline = Site._timeline
def lead_back(self, account, request):
    status, headers, body = timeline(self, account, request)
    return status, headers, body.replace(calls.cursor_to(4).encode(), calls.cursor_to(2).encode())
Site._timeline = lead_back
"""
"""Code that makes the cursor on each timeline's third page lead back to its second page."""
REPEATS = """
from itertools import count
from crawler.sandbox.microblog import site
cursor_to, numbers = site.cursor_to, count(3)
site.page_of = lambda sent: 2 if sent else 1
site.cursor_to = lambda number: cursor_to(2 if number == 2 else next(numbers))
"""
"""Code that makes each timeline repeat its second page, each time with another cursor."""
ENDED = """
from crawler.sandbox.microblog import calls, old
from crawler.sandbox.microblog.site import Site
Site._timeline = lambda self, account, request: calls.as_json(old.timeline([], None, end=True))
"""
"""Code that makes each timeline end without a post."""
REJECTED = """
from crawler.sandbox.microblog import calls
from crawler.sandbox.microblog.site import Site
Site._timeline = lambda self, account, request: calls.error(214, "BadRequest", 400)
"""


@dataclass
class Chain:
    """The pages and errors of one profile."""

    pages: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The ids of all posts."""
        return [post["post_id"] for page in self.pages for post in page["data"]["main"]]


def crawl_all(
    tmp_path: Path, targets: list[dict[str, Any]], *settings: str, pages: int = MAX_CALLS
) -> tuple[dict[str, Chain], str]:
    """Crawl all pages of some profiles. Return handle -> its pages and errors, and the log."""
    file = tmp_path / "targets.jsonl"
    file.write_text("\n".join(json.dumps({"id": str(number), **target}) for number, target in enumerate(targets)))
    arguments = ("-a", f"targets={file}", "-a", f"max_pages={pages}", *options(*TIMEOUTS, *settings))
    _, out, failures, log = crawl(tmp_path, *arguments, spider="microblog")
    chains: dict[str, Chain] = {target["username"]: Chain() for target in targets}
    for line in out:
        chains[line["params"]["username"]].pages.append(line["data"])
    for line in failures:
        chains[line["params"]["username"]].errors.append(line["code"])
    return chains, log


def crawl_one(tmp_path: Path, username: str, *settings: str, **more: Any) -> tuple[Chain, str]:
    """Crawl all pages of one profile. ``cursor`` is a param of the target."""
    cursor = {"cursor": more.pop("cursor")} if "cursor" in more else {}
    chains, log = crawl_all(tmp_path, [{"username": username, **cursor}], *settings, **more)
    return chains[username], log


def posts_of(handle: str) -> dict[str, Any]:
    """Return id -> expected record, for all posts in an account's timeline."""
    return {post.id: post_record(post) for post in SITE.account(handle).posts}


def check_posts(chain: Chain, handle: str, *, embedded: int = 0) -> None:
    """Check that the pages contain each post once. The values of the first ``embedded`` pages are not compared."""
    expected = posts_of(handle)
    assert sorted(chain.ids) == sorted(expected)
    for page in chain.pages[embedded:]:
        assert all(post == expected[post["post_id"]] for post in page["data"]["main"])


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Chain]:
    """Handle -> pages and errors of the accounts with faults, from one crawl. The fault ``hang`` is left out."""
    targets = [{"username": handle} for name, handle in HANDLES.items() if name != "hang"]
    found, _ = crawl_all(tmp_path_factory.mktemp("faults"), targets)
    return found


@pytest.fixture(scope="module")
def recovered(chains: dict[str, Chain], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Chain]:
    """Handle -> the later pages of the accounts in ``WITHOUT_TIMELINE``, from a sandbox whose timeline works again."""
    targets = [
        {"username": HANDLES[name], "cursor": chains[HANDLES[name]].pages[0]["nextCursor"]} for name in WITHOUT_TIMELINE
    ]
    with platforms(before=HONEST) as origins:
        found, _ = crawl_all(tmp_path_factory.mktemp("recovered"), targets, *on(origins))
    return found


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - {"hang"}))
def test_the_loop_ends_for_every_fault(chains: dict[str, Chain], name: str) -> None:
    chain, code = chains[HANDLES[name]], FAULTS[name].code
    assert len(chain.pages) < MAX_CALLS, ENDLESS
    assert len(chain.ids) == len(set(chain.ids)), "each post once"
    if code != "OK":
        assert (chain.pages, chain.errors) == ([], [code])
        return
    assert chain.errors == ([LAST_ERRORS[name]] if name in LAST_ERRORS else [])
    assert [page["hasMore"] for page in chain.pages[:-1]] == [True] * (len(chain.pages) - 1)
    assert chain.pages[-1]["hasMore"] is bool(chain.errors), "the end is either stated or an error"
    if not chain.errors:
        check_posts(chain, HANDLES[name], embedded=1)


def test_the_loop_ends_without_a_response(tmp_path: Path) -> None:
    chain, log = crawl_one(tmp_path, HANDLES["hang"], "SOURCE_TIMEOUT=0.2", "RETRY_TIMES=0")
    assert (chain.pages, chain.errors) == ([], ["UPSTREAM_TIMEOUT"]), log
    assert log.count("optional_source_failed") == 3, "each source was tried"


def test_the_table_has_every_fault_without_a_timeline() -> None:
    failing = {name for name, fault in FAULTS.items() if fault.code == "OK" and "timeline" in failing_sources(name)}
    assert failing - {"only-cursors"} == WITHOUT_TIMELINE.keys(), "a timeline without posts did respond"


@pytest.mark.parametrize("name", sorted(WITHOUT_TIMELINE))
def test_a_later_page_has_the_missing_posts(chains: dict[str, Chain], recovered: dict[str, Chain], name: str) -> None:
    first, rest = chains[HANDLES[name]].pages[0], recovered[HANDLES[name]]
    same(first, SITE.expected_record({"username": HANDLES[name]}))
    assert rest.errors == []
    assert rest.pages[-1]["hasMore"] is False
    check_posts(Chain([first, *rest.pages]), HANDLES[name], embedded=1)


# The loop over HTTP


@dataclass(frozen=True)
class Client:
    """A client of the endpoint."""

    url: str
    key: str = "sandbox"

    def loop(self, username: str, **cursor: str) -> Chain:
        """Call the endpoint while ``hasMore`` is true."""
        chain = Chain()
        for _ in range(MAX_CALLS):
            headers = {**HEADERS, "X-API-Key": self.key}
            reply = call(self.url, PATH, {"username": username, **cursor}, headers=headers)
            if reply.code != "OK":
                return Chain(chain.pages, [reply.code])
            chain.pages.append(reply.body["data"])
            if not reply.body["data"]["hasMore"]:
                return chain
            cursor = {"cursor": reply.body["data"]["nextCursor"]}
        pytest.fail("the loop does not end")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running(tmp_path_factory.mktemp("paging") / "log", *TIMEOUTS) as started:
        yield Client(started.url)


@contextmanager
def client_on(folder: Path, origins: dict[str, str]) -> Iterator[Client]:
    """Run an endpoint for the sandbox. Yields a client of it."""
    keys = folder / "keys.sqlite3"
    key = KeyStore(keys).create("paging")
    settings = (*TIMEOUTS, *on(origins), "GUEST_TOKEN_PAUSE=0", f"KEYS_FILE={keys}")
    with running(folder / "log", *settings, sandbox=False) as started:
        yield Client(started.url, key)


@pytest.mark.parametrize("name", ["calls-limited", "only-cursors", "only-page", "same-cursor", "stale-ids", "user-off"])
def test_the_loop_over_http_ends(client: Client, chains: dict[str, Chain], name: str) -> None:
    found, expected = client.loop(HANDLES[name]), chains[HANDLES[name]]
    assert (found.ids, found.errors) == (expected.ids, expected.errors)


# Cursors that point to the start of the timeline


def cursor_of(handle: str, **changes: Any) -> str:
    """Return a cursor that points to the start of an account's timeline."""
    payload = {"handle": handle, "user_id": SITE.account(handle).user.id, "cursor": "", "seen": []} | changes
    return encode_cursor(CURSOR, payload)


@pytest.mark.parametrize(("returned", "first_pages"), [(65, [15, 20]), (85, [0, 15, 20])])
def test_three_returned_pages_are_skipped(tmp_path: Path, returned: int, first_pages: list[int]) -> None:
    posts = [post.id for post in SITE.account("old_lantern").timeline]
    pinned = SITE.account("old_lantern").pinned
    assert pinned
    cursor = cursor_of("old_lantern", seen=[pinned.id, *posts[:returned]])
    chain, log = crawl_one(tmp_path, "old_lantern", cursor=cursor)
    assert chain.errors == [], log
    assert chain.ids == [post_id for post_id in posts[returned:] if post_id != pinned.id]
    assert [len(page["data"]["main"]) for page in chain.pages][: len(first_pages)] == first_pages
    assert [page["hasMore"] for page in chain.pages] == [True] * (len(chain.pages) - 1) + [False]


def test_a_rejected_request_for_the_start_is_not_the_fault_of_the_cursor(tmp_path: Path) -> None:
    with platforms(before=REJECTED) as origins:
        chain, _ = crawl_one(tmp_path, "iron_meadow", *on(origins), cursor=cursor_of("iron_meadow"))
    assert (chain.pages, chain.errors) == ([], ["EXTRACTION_FAILED"])


def test_a_cursor_without_a_user_id_works(tmp_path: Path) -> None:
    handles = ("iron_meadow", "relay_station", "lone_wolf", "empty_shelf", "closed_garden")
    targets = [{"username": handle, "cursor": cursor_of(handle, user_id="")} for handle in handles]
    chains, log = crawl_all(tmp_path, targets)
    for handle in handles:
        assert chains[handle].errors == [], log
        assert chains[handle].pages[-1]["hasMore"] is False
        check_posts(chains[handle], handle)


@pytest.mark.parametrize(
    ("handle", "code"),
    [
        ("nobody_here", "TARGET_NOT_FOUND"),
        (HANDLES["user-off"], "UPSTREAM_BLOCKED"),
        (HANDLES["suspended-by-call"], "TARGET_RESTRICTED"),
        (HANDLES["timeline-off"], "UPSTREAM_BLOCKED"),
    ],
)
def test_a_cursor_without_a_user_id_fails_with_the_error_of_the_query(client: Client, handle: str, code: str) -> None:
    cursor = encode_cursor(CURSOR, {"handle": handle, "user_id": "", "cursor": "", "seen": []})
    assert client.loop(handle, cursor=cursor).errors == [code]


def test_a_lost_user_id_is_looked_up(tmp_path: Path) -> None:
    """Neither page nor embed contains the user id, and the platform at first rejects the user query."""
    hide = """
from crawler.sandbox.microblog.site import Site
page = Site.page
def hidden(self, request):
    source, handle = self.source_of(request)
    status, headers, body = page(self, request)
    if source in ("page", "embed"):
        body = body.replace(self.account(handle).user.id.encode(), b"")
    return status, headers, body
Site.page = hidden
"""
    with platforms(before=hide) as origins:
        first, log = crawl_one(tmp_path, HANDLES["user-off"], *on(origins), pages=1)
    assert first.errors == [], log
    data = first.pages[0]
    assert data["hasMore"]
    assert decode_cursor(CURSOR, data["nextCursor"])["user_id"] == ""
    with platforms(before=HONEST) as origins:
        rest, log = crawl_one(tmp_path, HANDLES["user-off"], *on(origins), cursor=data["nextCursor"])
    assert rest.errors == [], log
    check_posts(Chain([data, *rest.pages]), HANDLES["user-off"], embedded=1)


# A timeline that repeats itself, or contradicts other sources


def test_a_cursor_that_leads_back_ends_the_loop(tmp_path: Path) -> None:
    with platforms(before=UNLISTED + LEADS_BACK) as origins:
        chain, log = crawl_one(tmp_path, "quiet_harbor", *on(origins))
        with client_on(tmp_path, origins) as client:
            found = client.loop("quiet_harbor")
    assert [page["hasMore"] for page in chain.pages] == [True, True, False], log
    assert (found.ids, found.errors) == (chain.ids, chain.errors)
    assert "'coverage/missing/timeline/no_end': 1," in log


def test_a_listing_ends_after_three_pages_that_were_repeated(tmp_path: Path) -> None:
    with platforms(before=REPEATS) as origins:
        chain, log = crawl_one(tmp_path, "quiet_harbor", *on(origins))
        with client_on(tmp_path, origins) as client:
            found = client.loop("quiet_harbor")
    assert (len(chain.pages), len(set(chain.ids))) == (5, 41), log
    assert (found.ids, found.errors) == (chain.ids, chain.errors), "a call knows the earlier pages by its cursor"
    assert "'coverage/missing/timeline/repeated_page': 1," in log
    assert "'coverage/missing/timeline/no_end': 1," in log


@pytest.mark.parametrize(("before", "missing"), [(ENDED, 0), (UNLISTED + ENDED, 1)], ids=["all posts", "others"])
def test_the_end_of_a_timeline_without_the_posts_of_other_sources(tmp_path: Path, before: str, missing: int) -> None:
    with platforms(before=before) as origins:
        chain, log = crawl_one(tmp_path, "iron_meadow", *on(origins))
    assert ([page["hasMore"] for page in chain.pages], len(chain.ids)) == ([False], 45), log
    assert log.count("'coverage/missing/timeline/no_end': 1,") == missing


# A token's rate limit


def test_a_rate_limit_is_not_answered_by_a_new_token(tmp_path: Path) -> None:
    """The setting makes guest tokens expire at once, but a token that is rate-limited must still be kept."""
    targets = [{"username": HANDLES["calls-limited"]}, {"username": "quiet_harbor"}, {"username": "popular_tide"}]
    _, log = crawl_all(tmp_path, targets, "GUEST_TOKEN_LIFETIME=0", "TARGETS_IN_FLIGHT=1", pages=3)
    assert "'downloader/request_method_count/POST': 1," in log


def test_a_crawl_waits_for_the_end_of_a_rate_limit(tmp_path: Path) -> None:
    """The circuit breaker of the source "timeline" makes the crawl wait."""
    with platforms(before=UNLISTED + LIMITED_ONCE) as origins:
        chain, log = crawl_one(tmp_path, "iron_meadow", *on(origins), "BREAKER_THRESHOLD=5")
        assert chain.errors == [], log
        without_breaker, other_log = crawl_one(tmp_path, "old_lantern", *on(origins))
        with client_on(tmp_path, origins) as client:
            found = client.loop("quiet_harbor")
    check_posts(chain, "iron_meadow", embedded=1)
    assert "'downloader/request_method_count/POST': 1," in log
    assert log.count("timeline_repeated") == 2, "each further page; the first page has other sources"
    assert without_breaker.errors == ["UPSTREAM_RATE_LIMITED"]
    assert "'downloader/request_method_count/POST': 1," in other_log, "without a breaker, no new token either"
    assert found.errors == ["UPSTREAM_RATE_LIMITED"], "a call has a deadline"


def test_an_empty_page_for_a_cursor_is_requested_once_more(tmp_path: Path) -> None:
    with platforms(before=EMPTY_ONCE) as origins:
        chain, log = crawl_one(tmp_path, "iron_meadow", *on(origins))
    assert chain.errors == [], log
    check_posts(chain, "iron_meadow")
    assert log.count("timeline_repeated") == len(chain.pages) - 1


def test_an_end_that_the_platform_does_not_mark_is_believed_after_two_empty_pages(tmp_path: Path) -> None:
    chain, log = crawl_one(tmp_path, "cut_short")
    assert (chain.errors, chain.pages[-1]["hasMore"]) == ([], False), log
    assert log.count("timeline_repeated") == 1
    assert "'coverage/missing/timeline/no_end': 1," in log
