"""Changed query ids: the microblog responds to all known ids with "Query not found"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from scrapy.settings import Settings

from crawler.platforms.microblog.guest import CurrentQueries
from crawler.platforms.microblog.schema import CURSOR as PURPOSE
from crawler.platforms.microblog.urls import CURSOR, HANDLE, USER_ID, Ids, NamedQuery
from crawler.platforms.requests import check_platform_ids, encode_cursor, shipped_ids
from crawler.sandbox.microblog.faults import NEW_IDS
from crawler.sandbox.microblog.site import Site
from tests import forks
from tests.crawls import ROOT, crawl, on, options, platforms
from tests.microblog_pages import answer, page_of, same

SITE = Site()
HANDLE_OF_FAULT = next(handle for handle, name in SITE.faults.items() if name == "wrong-query-ids")
IDS = shipped_ids(Ids)
NEW_IDS_ONLY = f"""
from crawler.sandbox.microblog import calls
from crawler.sandbox.microblog.site import Site
served = Site._served
def check(self, source, handle, request):
    if source in ("user", "timeline") and request.path.split("/")[2] not in {sorted(NEW_IDS.values())}:
        return calls.stale_query()
    return served(self, source, handle, request)
Site._served = check
"""
"""Code for a platform on which only the new ids work, and whose pages do not contain them."""


def replaced(tmp_path: Path, **changes: Any) -> Path:
    """Write a copy of the data file with new ids for both queries, and with further changes."""
    data = IDS.model_dump()
    data["user"]["ids"], data["timeline"]["ids"] = [NEW_IDS["UserByScreenName"]], [NEW_IDS["UserTweets"]]
    file = tmp_path / "ids.json"
    file.write_bytes(orjson.dumps(data | changes))
    return file


def cursor_of(handle: str, page: int) -> str:
    user_id = SITE.account(handle).user.id
    payload = {"handle": handle, "user_id": user_id, "cursor": SITE.cursor(page), "seen": []}
    return encode_cursor(PURPOSE, payload)


# Ids from the page


def test_ids_that_the_page_names_give_full_data_and_paging(tmp_path: Path) -> None:
    given = ("-a", f"username={HANDLE_OF_FAULT}", "-a", "max_pages=5")
    code, out, failures, log = crawl(tmp_path, *given, spider="microblog")
    assert (code, failures) == (0, []), log
    assert len(out) == 2, "two pages of posts"
    for number, data in enumerate(out, 1):
        same(data, SITE.expected_record({"username": HANDLE_OF_FAULT, "page": number}))
    assert "'targets/partial'" not in log
    assert "event=stale_id" in log


def test_a_later_page_alone_loads_the_page_for_new_ids(tmp_path: Path) -> None:
    """A new process or another worker has not loaded the profile's page before."""
    given = ("-a", f"username={HANDLE_OF_FAULT}", "-a", f"cursor={cursor_of(HANDLE_OF_FAULT, 2)}")
    code, out, failures, log = crawl(tmp_path, *given, spider="microblog")
    assert (code, failures) == (0, []), log
    ids = [post["post_id"] for post in out[0]["data"]["main"]]
    expected = SITE.expected_record({"username": HANDLE_OF_FAULT, "page": 2})["data"]["main"]
    assert ids[-len(expected) :] == [post["post_id"] for post in expected]


def test_without_new_ids_the_page_is_loaded_once(tmp_path: Path) -> None:
    cursors_of_pages = [cursor_of("quiet_harbor", page) for page in (2, 3, 4)]
    targets = tmp_path / "targets.jsonl"
    rows = [{"username": "quiet_harbor", "cursor": cursor} for cursor in cursors_of_pages]
    targets.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with platforms(before=NEW_IDS_ONLY) as origins:
        arguments = ("-a", f"targets={targets}", *options(*on(origins)), "-s", "TARGETS_IN_FLIGHT=1")
        code, out, failures, log = crawl(tmp_path, *arguments, spider="microblog")
    assert (code, out, {each["upstream"]["reason"] for each in failures}) == (4, [], {"stale_query_id"}), log
    assert "'poet/injector/crawler.platforms.microblog.pages.ProfilePage': 1," in log


def stale_ids(handle: str) -> list[str]:
    """Return the lines about ids that a probe of an account prints."""
    run = forks.run([*forks.SCRAPY, "probe", "microblog-profile", "-a", f"username={handle}", "-s", "SANDBOX=1"])
    return [line for line in run.stdout.splitlines() if line.startswith("STALE ID")]


def test_probe_names_the_ids_that_are_out_of_date() -> None:
    assert stale_ids(HANDLE_OF_FAULT) == [
        *(f"STALE ID   UserByScreenName {each}: the page has {NEW_IDS['UserByScreenName']}" for each in IDS.user.ids),
        *(f"STALE ID   UserTweets {each}: the page has {NEW_IDS['UserTweets']}" for each in IDS.timeline.ids),
    ]


def test_probe_names_the_ids_that_the_platform_did_not_find() -> None:
    handle = next(handle for handle, name in SITE.faults.items() if name == "stale-ids")
    assert stale_ids(handle) == [
        f"STALE ID   UserTweets {each}: not found by the platform" for each in IDS.timeline.ids
    ]


# Ids from a file


def test_a_file_replaces_the_ids(tmp_path: Path) -> None:
    with platforms(before=NEW_IDS_ONLY) as origins:
        given = (*options(*on(origins)), "-a", "username=quiet_harbor", "-a", "max_pages=3")
        _, partial, _, log = crawl(tmp_path, *given, spider="microblog")
        assert len(partial) == 1, "without the file, the posts cannot be paged"
        assert "'sources/failed/timeline/stale_query_id': 1," in log
        (tmp_path / "failures.jsonl").unlink()
        setting = json.dumps({"microblog": str(replaced(tmp_path))})
        code, out, failures, log = crawl(tmp_path, *given, "-s", f"PLATFORM_IDS={setting}", spider="microblog")
    assert (code, failures, len(out)) == (0, [], 3), log
    for number, data in enumerate(out, 1):
        same(data, SITE.expected_record({"username": "quiet_harbor", "page": number}))
    assert "'targets/partial'" not in log


WRONG = {
    "no such file": (None, "cannot read {path} for microblog: No such file or directory."),
    "not JSON": (b"{", "{path} is not valid for microblog: the file: Invalid JSON: EOF while parsing"),
    "a key missing": ({"features": None}, "{path} is not valid for microblog: features: Input should be an object."),
    "an unknown key": ({"bearrer": "x"}, "{path} is not valid for microblog: bearrer: Extra inputs are not permitted."),
    "a bad id": (
        {"user": IDS.user.model_dump() | {"ids": ["a b"]}},
        "{path} is not valid for microblog: user.ids.0: String should match pattern",
    ),
    "an unknown placeholder": (
        {"user": IDS.user.model_dump() | {"variables": {"name": "$name"}}},
        "{path} is not valid for microblog: user: unknown placeholder $name; use $handle, $user_id or $cursor.",
    ),
    "no cursor": (
        {"timeline": IDS.timeline.model_dump() | {"variables": {"userId": USER_ID}}},
        "{path} is not valid for microblog: the file: one variable of the timeline must be $cursor.",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_when_a_command_starts(tmp_path: Path, name: str) -> None:
    changes, message = WRONG[name]
    path = tmp_path / "ids.json"
    if isinstance(changes, bytes):
        path.write_bytes(changes)
    elif isinstance(changes, dict):
        replaced(tmp_path, **changes)
    setting = json.dumps({"microblog": str(path)})
    run = forks.run([*forks.SCRAPY, "crawl", "microblog", "-a", "username=x", "-s", f"PLATFORM_IDS={setting}"])
    (sentence,) = [line for line in run.stderr.splitlines() if line.startswith("PLATFORM_IDS: ")]
    assert (run.returncode, run.stdout) == (2, "")
    assert sentence.startswith("PLATFORM_IDS: " + message.format(path=path))


def test_the_setting_accepts_a_file_of_each_platform_with_ids() -> None:
    folders = {path.parent.name: path for path in (ROOT / "crawler/platforms").glob("*/ids.json")}
    assert folders.keys() == {"microblog", "videosite"}
    check_platform_ids(Settings({"PLATFORM_IDS": {name: str(path) for name, path in folders.items()}}))


# The ids in a page


def test_the_page_object_reads_ids_and_variables_from_streams() -> None:
    _, _, body = answer(SITE, "page", HANDLE_OF_FAULT)
    named = page_of("page", body, username=HANDLE_OF_FAULT).queries  # type: ignore[attr-defined]
    assert {each.name: each.query_id for each in named} == NEW_IDS
    relay = {"screenName": HANDLE, "__relay_internal__pv__appviewerisloggedinprovider": False}
    assert {each.name: each.variables for each in named}["UserByScreenName"] == relay


@pytest.mark.parametrize(
    "key",
    ["short{}", "x" * 41 + "{}", 'has space-12345{"a":1}', "NoVariablesAtAll", '../../1.1/account?x={"a":1}', "", None],
    ids=["short", "long", "space", "no variables", "path", "empty", "missing"],
)
def test_an_id_with_other_characters_is_ignored(key: str | None) -> None:
    stream = {"kind": "GraphQLRequestStream.Completed", "key": key, "name": "UserByScreenName"}
    head = b'<script class="$tsr">($R=>$R[0]=' + orjson.dumps(stream) + b")()</script>"
    _, _, body = answer(SITE, "page", "quiet_harbor")
    page = page_of("page", body.replace(b"</body>", head + b"</body>"), username="quiet_harbor")
    assert page.queries == []  # type: ignore[attr-defined]


USUAL = {key: value for key, value in IDS.timeline.variables.items() if value != CURSOR}


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        (USUAL, IDS.timeline.variables),
        (USUAL | {"cursor": "abc"}, IDS.timeline.variables),
        ({"screenName": HANDLE, "count": 40, "cursor": None}, {"screenName": HANDLE, "count": 40, "cursor": CURSOR}),
        ({"who": "a name that is not the profile's"}, IDS.timeline.variables),
    ],
    ids=["usual", "a cursor", "others", "of nobody"],
)
def test_the_id_on_a_page_is_sent_with_the_variables_that_it_needs(
    variables: dict[str, Any], sent: dict[str, Any]
) -> None:
    queries = CurrentQueries(IDS)
    outdated = queries.learn(
        [NamedQuery("UserTweets", "NewId_12345", variables), NamedQuery("Trends", "Other_12345", {})]
    )
    form, query_id = queries.forms_of(IDS.timeline)[0]
    assert (query_id, form.variables, form.field_toggles) == ("NewId_12345", sent, IDS.timeline.field_toggles)
    assert [each for _, each in outdated] == ["NewId_12345"] * len(IDS.timeline.ids)
    assert queries.forms_of(IDS.user) == [(IDS.user, each) for each in IDS.user.ids]


def test_an_id_that_the_platform_did_not_find_is_the_last_choice() -> None:
    queries = CurrentQueries(IDS)
    assert queries.page_is_useful
    queries.learn([NamedQuery("UserTweets", "NewId_12345", USUAL)])
    queries.mark_stale(IDS.timeline, "Other_12345")
    assert not queries.page_is_useful, "the id in the last page is not out of date"
    for expected in ("NewId_12345", *IDS.timeline.ids):
        assert queries.forms_of(IDS.timeline)[0][1] == expected
        queries.mark_stale(IDS.timeline, expected)
    assert queries.page_is_useful, "the id in the last page is out of date"
    ids = ["NewId_12345", *IDS.timeline.ids]
    assert [each for _, each in queries.forms_of(IDS.timeline)] == ids
    assert [each for _, each in queries.forms_of(IDS.timeline, ids[:2])] == ids[2:]
