"""What changed between runs is what the world's script has changed: nothing is missed, and nothing is invented."""

from __future__ import annotations

import asyncio
import csv
import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from python_calamine import CalamineWorkbook
from scrapy.settings import Settings

from crawler.errors import TargetNotFound, UpstreamBlocked, quoted
from crawler.jobs.changes import Change, Comparison, Row, Rows
from crawler.jobs.job import Claim, Finished, Followup, InputLine, Job, JobError
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from crawler.jobs.output import JobFiles, Layout, OutputError
from crawler.registry import find_scraper
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.professional.site import Site as Professional
from crawler.sandbox.retail.site import Site as Shop
from crawler.sandbox.videosite.site import Site as VideoSite
from tests.jobs.test_collect import Commands
from tests.jobs.workers import Process
from tests.outputs.test_differences import put
from tests.tiers import FAST_ON_SQLITE

KINDS = {"added", "removed", "not_compared", "target_gone", "target_back", "appeared", "gone", "changed"}


async def changes(jobs: Jobs, job: Job) -> tuple[list[Change], Counter[str]]:
    comparison = Comparison(job, await jobs.earlier(job))
    return [each async for page in comparison.pages(jobs) for each in page], comparison.counts


def at(data: dict[str, Any], path: str) -> Any:
    """Return the value at a dotted path."""
    found: Any = data
    for each in path.split("."):
        found = found[int(each) if isinstance(found, list) else each]
    return found


TIMELINE, SEARCH, CATEGORY, CHANNEL, MEMBER, CONTENT = (
    "microblog-profile",
    "retail-search-v4",
    "retail-category-v4",
    "videosite-profile-v3",
    "professional-profile",
    "professional-profile-v4",
)
RENAMED: dict[str, Any] = {"source": "listing", "code": "EXTRACTION_FAILED", "reason": "unread"}
RENAMED |= {"path": "items[].averageRating", "cause": "missing", "rows": 1, "of": 1, "loses_rows": False, "names": []}
UNREAD_ROWS: dict[str, Any] = RENAMED | {"path": "items[].…unknown", "cause": "unknown", "loses_rows": True}
CEILING: dict[str, Any] = {"source": "listing", "code": "EXTRACTION_FAILED", "reason": "incomplete"}
CEILING |= {"expected": 900, "collected": 443, "reasons": ["ceiling"]}
SITES: dict[str, tuple[Callable[[], Any], dict[str, str]]] = {
    TIMELINE: (Microblog, {"username": "relay_station"}),
    SEARCH: (partial(Shop, light=True), {"query": "mustard"}),
    CATEGORY: (partial(Shop, light=True), {"cat_id": "976759"}),
    CHANNEL: (VideoSite, {"username": "@harborlights"}),
    MEMBER: (Professional, {"url": "https://www.linkedin.com/in/mara-lindqvist"}),
    CONTENT: (Professional, {"username": "mara-lindqvist"}),
}


@cache
def shape(scraper: str) -> dict[str, Any]:
    """Return the sandbox's record of a scraper."""
    site, params = SITES[scraper]
    found: dict[str, Any] = site().expected_record(params)
    return found


LISTS = {TIMELINE: "data.main", CHANNEL: "posts", CATEGORY: "products", SEARCH: "products"}


def page(scraper: str, *keys: Any, more: Any = False, **values: Any) -> dict[str, Any]:
    """Return a record. ``keys``: those of its rows; for a timeline, pairs of a key and a time."""
    data = deepcopy(shape(scraper))
    entries = find_scraper(scraper).entries
    if entries is not None:
        put(data, entries.more, more)
    if scraper in LISTS:
        first, rows = at(data, LISTS[scraper])[0], []
        for each in keys:
            own = {"item_id": each, "is_sponsored": False}
            if entries is not None:
                own = {entries.key: each[0], entries.time: each[1]}
            rows.append(first | own)
        put(data, LISTS[scraper], rows)
    for path, value in values.items():
        put(data, path.replace("__", "."), value)
    return data


async def run(
    jobs: Jobs,
    scraper: str,
    *pages: dict[str, Any],
    options: JobOptions | None = None,
    owner: str = "",
    targets: tuple[str, ...] = ("one",),
    **outcome: Any,
) -> Job:
    """Collect targets in a new run of the job ``one``. ``pages``: the record of each, and those of further pages."""
    options = options or (JobOptions(max_pages=len(pages)) if len(pages) > 1 else JobOptions())
    job = await jobs.begin("one", owner, options=options, whole_roots=options.needs_whole_roots)
    platform = find_scraper(scraper).platform
    work = {"scraper": scraper, "params": {}, "hop": 0}
    lines = [InputLine(row, each, each.encode(), platform, work | {"id": each}) for row, each in enumerate(targets)]
    await jobs.push(job, lines)
    await jobs.open(job)

    def answer(claim: Claim) -> Finished:
        number = claim.work["hop"]
        next_work = {**work, "id": f"page {number + 1}", "parent": "one", "hop": number + 1}
        next_page = Followup(f"page {number + 1}".encode(), platform, next_work)
        stored = {"warnings": [], "contract": "1", "fetched_at": "2026-11-26T00:00:00+00:00"} | outcome
        return Finished(claim, "done", "OK", stored, pages[number], (next_page,) if number + 1 < len(pages) else ())

    process = Process(jobs, answer)
    async with asyncio.timeout(300), process.worker:
        while (found := await jobs.find("one", owner)) is not None and found.state == "open":
            await process.claim(platform=platform)
            await asyncio.sleep(0.01)
    assert found is not None
    return found


async def found_in(jobs: Jobs, job: Job) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Return the kind of each change, with the key of its row, or the path of its value; and what is not known."""
    found, counts = await changes(jobs, job)
    unknown = {name: n for name, n in counts.items() if n and name not in {*KINDS, "compared"}}
    return [(each.change, each.key or each.path) for each in found], unknown


@FAST_ON_SQLITE
@pytest.mark.parametrize(
    ("before", "now", "reported", "unknown"),
    [
        pytest.param("A9 B7 C5", "X11 A9 B7", [("appeared", "X")], {"gone_unknown": 1}, id="a new post"),
        pytest.param("A9 B7 C5 D3", "A9 C5 D3 E1", [("gone", "B")], {"appeared_unknown": 1}, id="a deleted post"),
        pytest.param("P1 A9 B7", "P1 X11 A9 B7", [("appeared", "X")], {}, id="below a pinned post"),
        pytest.param("P1 A9 B7", "B7 X11 A9", [("appeared", "X")], {"gone_unknown": 1}, id="an old post is pinned"),
        pytest.param("A9 B7 C5", "P1 A9 B7 C5", [], {"appeared_unknown": 1}, id="a very old post is pinned"),
        pytest.param("P1 A2 B9 C5", "P1 D3 B9 A2", [], {"appeared_unknown": 1, "gone_unknown": 1}, id="by popularity"),
        pytest.param(
            "P1 A2 B9 C5",
            "P1 D3 X10 A2",
            [("appeared", "X")],
            {"appeared_unknown": 1, "gone_unknown": 2},
            id="a new popular post",
        ),
        pytest.param("P1 A9 B6 B7 C5 D3", "P1 A9 C5 D3 E2", [("gone", "B")], {"appeared_unknown": 1}, id="a thread"),
        pytest.param("A9", "B7", [], {"appeared_unknown": 1, "gone_unknown": 1}, id="one post"),
        pytest.param("A9 B7.", "A9.", [("gone", "B")], {}, id="both reached the end"),
        pytest.param("A9 B7.", "A9 C5", [("gone", "B")], {"appeared_unknown": 1}, id="only one reached the end"),
        pytest.param("A9 B7.", "A9~", [], {"gone_unknown": 1}, id="it stops early now"),
        pytest.param("A9~", "A9 B7.", [], {"appeared_unknown": 1}, id="it stopped early before"),
        pytest.param("A9 B7 C5", "A9 C5!", [], {"gone_unknown": 1}, id="other sources now"),
        pytest.param("A9 C5!", "A9 B7 C5", [], {"appeared_unknown": 1}, id="other sources before"),
        pytest.param(".", "A9.", [("appeared", "A")], {}, id="the first post"),
    ],
)
async def test_a_timeline_covers_a_time(
    jobs: Jobs, before: str, now: str, reported: list[tuple[str, str]], unknown: dict[str, int]
) -> None:
    """A text is a timeline: the key and the time of each post. The dot at its end states that nothing follows.

    A tilde: nothing follows, but the platform did not mark the end. An exclamation mark: the timeline failed, and the
    posts are those of other sources.
    """
    warnings = {
        "~": [CEILING | {"source": "timeline", "reasons": ["no_end"]}],
        "!": [{"source": "timeline", "code": "UPSTREAM_ERROR", "reason": "server_error"}],
    }
    for each in (before, now):
        rows = [(row[0], int(row[1:])) for row in each.rstrip(".~!").split()]
        has_more = not each.endswith((".", "~"))
        found = warnings.get(each[-1], [])
        job = await run(jobs, TIMELINE, page(TIMELINE, *rows, more=has_more), warnings=found)
    assert await found_in(jobs, job) == (reported, unknown)


@FAST_ON_SQLITE
@pytest.mark.parametrize(
    ("before", "now", "reported", "unknown"),
    [
        pytest.param("ABC", "XABC", [("appeared", "X")], {}, id="a new video without a date"),
        pytest.param("ABC", "XAB", [("appeared", "X")], {"gone_unknown": 1}, id="the last video left the page"),
        pytest.param("ABC", "ACD", [("gone", "B")], {"appeared_unknown": 1}, id="a deleted video"),
        pytest.param("ABC", "ABDE", [("gone", "C")], {"appeared_unknown": 2}, id="the last video is deleted"),
        pytest.param("AB", "XY", [], {"appeared_unknown": 2, "gone_unknown": 2}, id="nothing in common"),
    ],
)
async def test_a_list_in_order_covers_what_is_above_a_common_row(
    jobs: Jobs, before: str, now: str, reported: list[tuple[str, str]], unknown: dict[str, int]
) -> None:
    for each in (before, now):
        job = await run(jobs, CHANNEL, page(CHANNEL, *((key, None) for key in each), more=True))
    assert await found_in(jobs, job) == (reported, unknown)


@FAST_ON_SQLITE
@pytest.mark.parametrize(
    ("warnings", "reported", "unknown"),
    [
        pytest.param([[], []], [("gone", "B"), ("appeared", "C")], {}, id="complete"),
        pytest.param([[CEILING], []], [], {"gone_unknown": 1, "appeared_unknown": 1}, id="incomplete before"),
        pytest.param([[], [CEILING]], [("appeared", "C")], {"gone_unknown": 1}, id="incomplete now"),
        pytest.param([[], [UNREAD_ROWS]], [("appeared", "C")], {"gone_unknown": 1}, id="rows unread now"),
    ],
)
async def test_an_exhaustive_crawl_covers_its_category(
    jobs: Jobs, warnings: list[list[Any]], reported: list[tuple[str, str]], unknown: dict[str, int]
) -> None:
    for keys, each in zip(("AB", "AC"), warnings, strict=True):
        options = JobOptions(exhaustive=True)
        job = await run(jobs, CATEGORY, page(CATEGORY, *keys), options=options, warnings=each)
    found, counts = await found_in(jobs, job)
    assert (sorted(found), counts) == (sorted(reported), unknown)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("DD", []),
        ("-D", [("added", None, "")]),
        ("D-", [("removed", 1, "")]),
        ("DX", [("target_gone", 1, "TARGET_NOT_FOUND")]),
        ("XD", [("target_back", 1, "")]),
        ("XX", []),
        ("D!", [("not_compared", None, "UPSTREAM_BLOCKED")]),
        ("!D", [("not_compared", None, "no_baseline")]),
        ("D!D", []),
        ("D!X", [("target_gone", 1, "TARGET_NOT_FOUND")]),
        ("X!D", [("target_back", 1, "")]),
        ("DXD", [("target_back", 2, "")]),
        ("D--", []),
        ("D-D", []),
    ],
)
async def test_a_target_is_added_removed_gone_or_back(
    jobs: Jobs, states: str, expected: list[tuple[str, int | None, str]]
) -> None:
    """In each run, a second target has data, and the first one: D: has data, X: is gone, !: fails, -: is not named."""
    errors = {"X": TargetNotFound("gone", details=quoted("No such page")), "!": UpstreamBlocked("blocked")}
    for state in states:
        job = await jobs.begin("one")
        work = {"scraper": MEMBER, "params": {}, "hop": 0}
        named = ["other", *(["own"] if state != "-" else [])]
        await jobs.push(
            job, [InputLine(n, k, k.encode(), "professional", work | {"id": k}) for n, k in enumerate(named)]
        )
        await jobs.open(job)

        def answer(claim: Claim, state: str = state) -> Finished:
            error = errors.get(state if claim.work["id"] == "own" else "D")
            if error:
                return Finished(claim, "failed", error.code, {"error": error.as_dict()})
            outcome = {"warnings": [], "contract": "1", "fetched_at": "2026-11-26T00:00:00+00:00"}
            return Finished(claim, "done", "OK", outcome, shape(MEMBER))

        process = Process(jobs, answer)
        async with process.worker:
            await process.claim(platform="professional")
    found, counts = await changes(jobs, job)
    assert [(each.change, each.baseline_run, each.code) for each in found] == expected
    assert {each.target["id"] for each in found} <= {"own"}
    assert counts["compared"] == 1 + (states[-1] == "D" and "D" in states[:-1])


async def test_pages_of_a_listing_are_compared_together(jobs: Jobs) -> None:
    await run(jobs, TIMELINE, page(TIMELINE, ("A", 9), ("B", 8)), page(TIMELINE, ("C", 7), ("D", 6), more=True))
    job = await run(jobs, TIMELINE, page(TIMELINE, ("X", 10), ("A", 9)), page(TIMELINE, ("B", 8), ("D", 6), more=True))
    assert await found_in(jobs, job) == ([("gone", "C"), ("appeared", "X")], {})


async def test_runs_with_another_number_of_pages_are_not_compared(jobs: Jobs) -> None:
    await run(jobs, SEARCH, page(SEARCH, "A"))
    job = await run(jobs, SEARCH, page(SEARCH, "A"), page(SEARCH, "B"))
    assert await found_in(jobs, job) == ([], {})


async def test_rows_that_a_run_has_not_read_are_those_of_an_older_run(jobs: Jobs) -> None:
    """Neither is a row new that only the newest record lacks, nor is it compared with nothing."""
    await run(jobs, SEARCH, page(SEARCH, "A", "B"))
    await run(jobs, SEARCH, page(SEARCH, "A"), warnings=[UNREAD_ROWS])
    job = await run(jobs, SEARCH, page(SEARCH, "A", "B", "C", products__1__name="new"))
    found, _ = await changes(jobs, job)
    assert [(each.change, each.key, each.path, each.baseline_run) for each in found] == [
        ("changed", "B", "name", 1),
        ("appeared", "C", "", 1),
    ]


async def test_a_row_that_the_last_run_lacked_is_not_gone_again(jobs: Jobs) -> None:
    """Although values of that run were unread, so that an older run is asked for them."""
    options = JobOptions(exhaustive=True)
    await run(jobs, CATEGORY, page(CATEGORY, "A", "B", "C"), options=options)
    await run(jobs, CATEGORY, page(CATEGORY, "A"), options=options, warnings=[RENAMED])
    job = await run(jobs, CATEGORY, page(CATEGORY, "A", "B"), options=options)
    found, _ = await changes(jobs, job)
    assert [(each.change, each.key, each.baseline_run) for each in found] == [("appeared", "B", 2)]


async def test_values_that_other_code_has_read_are_counted(jobs: Jobs) -> None:
    await run(jobs, SEARCH, page(SEARCH, "A"), contract="1")
    job = await run(jobs, SEARCH, page(SEARCH, "A", "B", products__0__name="new"), contract="2")
    assert await found_in(jobs, job) == ([("appeared", "B")], {"unread": 1})


async def test_advertised_rows_are_not_compared(jobs: Jobs) -> None:
    await run(jobs, SEARCH, page(SEARCH, "A", "B", "C", products__2__is_sponsored=True))
    values = {"products__0__is_sponsored": True, "products__0__name": "Buy A", "products__2__is_sponsored": True}
    job = await run(jobs, SEARCH, page(SEARCH, "A", "A", "D", **values))
    assert await found_in(jobs, job) == ([], {"gone_unknown": 1})


async def test_a_masked_variant_of_a_profile_is_not_a_change(jobs: Jobs) -> None:
    await run(jobs, MEMBER, page(MEMBER, headline="Head", location="Turku", skills=["a"]))
    withheld = {"data_availability__fields_withheld_by_linkedin": ["contact_info", "experience.job_title", "about"]}
    masked = {"headline": "", "experience": [], "skills": [], "about": "Short…", "location": "Oslo"}
    job = await run(jobs, MEMBER, page(MEMBER, **masked, **withheld))
    found, unknown = await found_in(jobs, job)
    assert found == [("changed", "location")]
    assert unknown["unread"] >= 4


async def test_a_text_that_a_masked_page_shortens_is_another_reading(jobs: Jobs) -> None:
    found: list[Any] = []
    for text in ("Boats and lakes", "Boats and…", "Boats and trains", "Planes", "Boats…", "Trains…"):
        job = await run(jobs, CONTENT, page(CONTENT, profile__biography=text))
        found.append(await found_in(jobs, job))
    changed: Any = [("changed", "profile.biography")], {}
    unread: Any = [], {"unread": 1}
    assert found == [([], {}), unread, unread, changed, unread, changed]


async def test_a_run_with_new_entries_only_has_no_other_changes(jobs: Jobs) -> None:
    options = JobOptions(since="last")
    await run(jobs, TIMELINE, page(TIMELINE, ("A", 9), ("B", 8)), options=options, new_entries=["A", "B"])
    now = page(TIMELINE, ("X", 10), ("A", 9), data__main__1__caption="new")
    job = await run(jobs, TIMELINE, now, options=options, new_entries=["X"])
    assert await found_in(jobs, job) == ([("appeared", "X")], {})


async def test_a_line_that_is_not_a_target_is_neither_added_nor_removed(jobs: Jobs) -> None:
    """Its number may differ between the runs, because other lines were added before it."""
    error = {"code": "INVALID_REQUEST"}
    for number in (2, 3):
        job = await jobs.begin("lines")
        work: dict[str, Any] = {"scraper": SEARCH, "params": {}, "id": "a"}
        invalid = InputLine(1, "b", f"line {number}".encode(), "", work | {"scraper": None, "id": "b"}, error=error)
        await jobs.push(job, [InputLine(0, "a", b"a", "retail", work), invalid])
        await jobs.open(job)
        await Process(jobs, lambda claim: Finished(claim, "failed", "TIMEOUT", {})).run(job)
    found, _ = await changes(jobs, job)
    expected = [("not_compared", "a", "TIMEOUT"), ("not_compared", "b", "INVALID_REQUEST")]
    assert [(each.change, each.target["id"], each.code) for each in found] == expected


async def test_runs_that_are_to_be_removed_are_not_compared(jobs: Jobs) -> None:
    """The upkeep deletes their targets one by one, and half a listing looks like one with fewer rows."""
    options = JobOptions(keep=1)
    for targets in (("a", "b"), ("a",)):
        await run(jobs, SEARCH, page(SEARCH, "A"), options=options, targets=targets)
    job = await run(jobs, SEARCH, page(SEARCH, "A"), options=options, targets=("a", "b"))
    found, _ = await changes(jobs, job)
    assert [(each.change, each.target["id"]) for each in found] == [("added", "b")]


async def test_a_caller_that_leaves_ends_the_thread_that_compares(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows stay open until it has ended: SQLite crashes if a connection is closed while a thread uses it."""
    monkeypatch.setattr("crawler.jobs.store.CLOSE_SECONDS", 0.01)
    for name in ("old", "new"):
        job = await run(jobs, SEARCH, page(SEARCH, "A", products__0__name=name), targets=("a", "b"))
    began, goes_on, ended = (threading.Event() for _ in range(3))
    stored: list[bool] = []
    add, target = Rows.add, Comparison._target

    def slow(rows: Rows, found: Iterable[Row]) -> None:
        began.set()
        goes_on.wait(300)
        add(rows, found)
        stored.append(True)

    def watched(*given: Any) -> Iterator[Change]:
        try:
            yield from target(*given)
        finally:
            ended.set()

    monkeypatch.setattr(Rows, "add", slow)
    monkeypatch.setattr(Comparison, "_target", watched)
    reading = asyncio.ensure_future(changes(jobs, job))
    assert await asyncio.to_thread(began.wait, 300)
    reading.cancel()
    await asyncio.wait({reading})
    goes_on.set()
    assert await asyncio.to_thread(ended.wait, 300)
    assert stored == [True], "the rows of the first record, and no others"


async def test_a_first_run_has_nothing_to_compare(jobs: Jobs) -> None:
    job = await run(jobs, SEARCH, page(SEARCH, "A"))
    assert await changes(jobs, job) == ([], Counter())
    assert str(Comparison(job, [])) == "no earlier run to compare with"


async def one_change(jobs: Jobs) -> Job:
    await run(jobs, SEARCH, page(SEARCH, "A"))
    return await run(jobs, SEARCH, page(SEARCH, "A", products__0__name="=new", products__0__badges=["Sale"]))


def parsed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table with lists instead of their JSON, and without the escapes of formulas."""
    for row in rows:
        for name in ("old", "new"):
            text = str(row[name]).removeprefix("'")
            row[name] = json.loads(text) if text.startswith("[") else text
    return rows


def read_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return parsed([dict(row) for row in csv.DictReader(file)])


def read_xlsx(path: Path) -> list[dict[str, Any]]:
    head, *rows = CalamineWorkbook.from_path(path).get_sheet_by_name("changes").to_python()
    return parsed([{str(name): cell for name, cell in zip(head, row, strict=True)} for row in rows])


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    "jsonl.gz": lambda path: [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()],
    "json": lambda path: json.loads(path.read_text()),
    "csv": read_csv,
    "xlsx": read_xlsx,
}


@FAST_ON_SQLITE
@pytest.mark.parametrize("suffix", READERS)
async def test_changes_are_written_in_each_format(jobs: Jobs, tmp_path: Path, suffix: str) -> None:
    job = await one_change(jobs)
    path = tmp_path / f"changes.{suffix}"
    await JobFiles(jobs, job, Settings()).write_changes(str(path), Comparison(job, await jobs.earlier(job)))
    rows = READERS[suffix](path)
    shown = [(row["path"], row["old"], row["new"]) for row in rows]
    assert sorted(shown, key=str) == [("badges", [], ["Sale"]), ("name", shape(SEARCH)["products"][0]["name"], "=new")]
    for row in rows:
        assert (row["change"], row["id"], row["scraper"], row["rows"], row["key"]) == (
            *("changed", "one", SEARCH, "products", "A"),
        )
        assert (int(row["run"]), int(row["baseline_run"])) == (2, 1)


@pytest.mark.parametrize("content", ["records", "changes"])
async def test_a_run_that_is_removed_meanwhile_does_not_replace_a_file(
    jobs: Jobs, tmp_path: Path, content: str
) -> None:
    job, path = await one_change(jobs), tmp_path / "one.jsonl"
    files, comparison = JobFiles(jobs, job, Settings()), Comparison(job, await jobs.earlier(job))
    path.write_text("former")
    await jobs.remove(job)
    writing = (
        files.write_changes(str(path), comparison) if content == "changes" else files.write(Layout(str(path)), None)
    )
    with pytest.raises(JobError, match="was removed"):
        await writing
    assert path.read_text() == "former"
    assert not (tmp_path / "one.jsonl.part").exists()


async def test_a_table_of_no_changes_has_its_columns(jobs: Jobs, tmp_path: Path) -> None:
    job, path = await one_change(jobs), tmp_path / "none.csv"
    await JobFiles(jobs, job, Settings()).write_changes(str(path), Comparison(job, []))
    assert path.read_text().splitlines() == [
        "change,id,scraper,params,columns,run,baseline_run,rows,key,path,old,new,code"
    ]


async def test_a_database_is_no_place_for_changes(jobs: Jobs, tmp_path: Path) -> None:
    job = await one_change(jobs)
    files = JobFiles(jobs, job, Settings())
    with pytest.raises(OutputError, match=r"use one of \.jsonl"):
        await files.write_changes(f"sqlite:///{tmp_path}/changes.sqlite", Comparison(job, []))


async def test_the_command_writes_the_changes_of_a_run_that_is_done_by_default_the_newest(tmp_path: Path) -> None:
    commands = Commands(tmp_path, str(tmp_path / "jobs.sqlite3"))
    jobs = Jobs(commands.location)
    await one_change(jobs)
    await jobs.begin("one")  # a run that is loading
    out = tmp_path / "changes.jsonl"
    written = commands.run("jobs", "changes", "one", "-O", out)
    assert (written.returncode, len(READERS["jsonl"](out))) == (0, 2)
    assert "job one, run 2: 1 target compared: 2 changed" in written.stderr
    shown = commands.run("jobs", "changes", "one", "--json")
    assert json.loads(shown.stdout) == {"run": 2, "compared": 1, "changed": 2}
    first = commands.run("jobs", "changes", "one", "--run", 1, "--json")
    assert json.loads(first.stdout) == {"run": 1}
    assert "No run of the job 'two' is done" in commands.run("jobs", "changes", "two").stderr
    await jobs.close()
