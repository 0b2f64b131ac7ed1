"""Sources of targets: parsing of lines, cells and arguments."""

from __future__ import annotations

import asyncio
import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from crawler.errors import InvalidRequest
from crawler.jobs.intake import fingerprint
from crawler.registry import find_scraper, scrapers, spiders
from crawler.targets.arguments import parse_shard
from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser, check_params
from crawler.targets.sources import (
    ArgumentSource,
    FetchedOnce,
    QueueSource,
    TargetsUnavailableError,
    WrongTargetsError,
)
from crawler.targets.target import InvalidTarget, Outcome, Target
from tests.targets.reading import all_of

RETAIL = TargetParser(spiders()["retail"].scrapers)


def params(target: Target | InvalidTarget) -> dict[str, Any]:
    assert isinstance(target, Target)
    return target.params.model_dump(exclude_none=True, exclude_defaults=True)


@pytest.mark.parametrize(
    ("raw", "scraper"),
    [
        ({"cat_id": "3944"}, "retail-category-v4"),
        ({"url": "https://www.walmart.com/browse/food/976759"}, "retail-category-v4"),
        ({"query": "mustard"}, "retail-search-v4"),
        ({"scraper": "retail-search-v4", "query": "mustard"}, "retail-search-v4"),
    ],
)
def test_the_scraper_is_found_by_its_params(raw: dict[str, Any], scraper: str) -> None:
    target = RETAIL.parse(raw)
    assert isinstance(target, Target), target
    assert target.scraper.name == scraper


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ({}, "INVALID_REQUEST"),
        ({"cat_id": "3944", "query": "mustard"}, "INVALID_REQUEST"),
        ({"page": 2}, "INVALID_REQUEST"),
        ({"cat_id": "food"}, "INVALID_REQUEST"),
        ({"cat_id": "3944", "page": "2"}, "INVALID_REQUEST"),
        ({"cat_id": 3944}, "INVALID_REQUEST"),
        ({"cat_id": "3944", "colour": "red"}, "INVALID_REQUEST"),
        ({"scraper": "retail-nothing-v4", "cat_id": "3944"}, "SCRAPER_NOT_FOUND"),
        ({"scraper": 4, "cat_id": "3944"}, "INVALID_REQUEST"),
    ],
)
def test_invalid_params_are_rejected(raw: dict[str, Any], code: str) -> None:
    target = RETAIL.parse(raw)
    assert isinstance(target, InvalidTarget), target
    assert target.error.code == code


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"catid": "976759"}, "catid: unknown param; did you mean cat_id?"),
        ({"cat_id": "976759", "Sort": "price_low"}, "Sort: unknown param; did you mean sort?"),
        ({"cat_id": "976759", "zzz": 1}, "zzz: unknown param; expected "),
    ],
)
def test_an_unknown_param_is_named_with_a_similar_one(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_params(find_scraper("retail-category-v4"), given)
    assert caught.value.message.startswith(f"retail-category-v4: {problem}")
    (name, _, text) = problem.partition(": ")
    assert [each["msg"].startswith(text) for each in caught.value.details if each["loc"] == [name]] == [True]


@pytest.mark.parametrize(
    ("details", "message"),
    [
        (True, "Input should be 'auto', 'all' or 'none', or a valid integer"),
        ("most", "Input should be 'auto', 'all' or 'none', or a valid integer"),
        (-1, "Input should be 'auto', 'all' or 'none', or greater than or equal to 0"),
    ],
)
def test_an_error_of_a_union_says_what_all_members_expect(details: object, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_params(find_scraper("microblog-profile"), {"username": "x", "details": details})
    assert caught.value.message == f"microblog-profile: details: {message}"
    assert [(each["loc"], each["msg"]) for each in caught.value.details] == [(["details"], message)]


def test_a_crawl_without_a_target_names_the_params_of_all_scrapers() -> None:
    with pytest.raises(WrongTargetsError) as caught:
        ArgumentSource(RETAIL, {}).check()
    named = {word.strip(",.;:") for word in str(caught.value).split()}
    assert named >= {"targets=FILE", *(name for each in RETAIL.scrapers for name in each.params.model_fields)}


def test_text_is_converted_for_arguments() -> None:
    source = ArgumentSource(RETAIL, {"cat_id": "3944", "page": "2", "min_price": "1.50"})
    assert source.expected == 1
    (target,) = all_of(source)
    assert params(target) == {"cat_id": "3944", "page": 2, "min_price": 1.5}
    assert isinstance(target, Target)
    assert not target.batch


ROWS = [{"id": str(number), "query": "mustard", "page": number % 5 + 1} for number in range(1_234)]


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows in the format that the file name implies."""
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "wt", encoding="utf-8", newline="") as out:
        if ".csv" in file.suffixes:
            table = csv.DictWriter(out, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        else:
            out.writelines(json.dumps(row) + "\n" for row in rows)


def test_the_files_of_a_glob_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for part in range(3):
        write(tmp_path / f"part-{part}.jsonl", [{"query": f"q{part}"}] * 2)
    write(tmp_path / "part-3.csv", [{"query": "q3"}])
    found = all_of(FileSource(RETAIL, f"{tmp_path}/part-*"))
    assert [(each.id, each.line, each.row) for each in found] == [
        ("part-0.jsonl:1", 1, 0),
        ("part-0.jsonl:2", 2, 1),
        ("part-1.jsonl:1", 1, 2),
        ("part-1.jsonl:2", 2, 3),
        ("part-2.jsonl:1", 1, 4),
        ("part-2.jsonl:2", 2, 5),
        ("part-3.csv:2", 2, 6),
    ]


def test_a_bucket_is_read_like_a_folder() -> None:
    lines = b"".join(orjson.dumps(row) + b"\n" for row in ROWS)
    fsspec.filesystem("memory").pipe({"/bucket/a.jsonl": lines, "/bucket/b.jsonl.gz": gzip.compress(lines)})
    assert len(all_of(FileSource(RETAIL, "memory://bucket/*"))) == 2 * len(ROWS)


def test_a_file_of_another_machine_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    open_file = MemoryFileSystem._open

    def counted(bucket: MemoryFileSystem, path: str, *arguments: Any, **options: Any) -> Any:
        opened.append(path)
        return open_file(bucket, path, *arguments, **options)

    bucket, location = fsspec.filesystem("memory"), "memory://once.jsonl.gz"
    bucket.pipe("/once.jsonl.gz", gzip.compress(b"".join(orjson.dumps(row) + b"\n" for row in ROWS)))
    monkeypatch.setattr(MemoryFileSystem, "_open", counted)
    for _ in range(2):
        files = FileSource(RETAIL, location)
        files.check()
        source = FetchedOnce(files)
        assert len(all_of(source)) + source.repeated == len(ROWS) == files.expected
    assert len(fingerprint([location], reader=())) == 32
    assert opened == ["/once.jsonl.gz"]
    bucket.pipe("/once.jsonl.gz", gzip.compress(orjson.dumps(ROWS[0])))
    opened.clear()
    assert [each.id for each in all_of(FileSource(RETAIL, location))] == ["0"]
    assert opened == ["/once.jsonl.gz"]


def test_shards_are_equal_parts_of_all_targets(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", ROWS)
    shards = [FileSource(RETAIL, str(tmp_path / "t.jsonl"), parse_shard(f"{number}/16")) for number in range(1, 17)]
    parts = [[each.id for each in all_of(shard)] for shard in shards]
    assert sorted((each for part in parts for each in part), key=int) == [row["id"] for row in ROWS]
    assert {len(part) for part in parts} == {77, 78}
    assert [shard.expected for shard in shards] == [len(part) for part in parts]


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "\u0661/4"])
def test_malformed_shards_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a shard: write 3/16"):
        parse_shard(text)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl.gz", gzip.compress(b'{"query": "mustard"}\n' * 5_000)[:-20], "to its end: "),
        ("t.jsonl.gz", b'{"query": "mustard"}\n', "to its end: "),
        ("other.jsonl", b"", "no such targets file"),
    ],
    ids=["cut gzip", "not gzip", "no such file"],
)
def test_a_broken_file_ends_the_run_after_its_readable_targets(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    taken: list[str] = []

    async def take() -> None:
        source = FileSource(RETAIL, str(tmp_path / f"t{''.join(Path(name).suffixes)}"))
        await source.open()
        async for each in source:
            taken.append(each.id)  # noqa: PERF401  # targets before the error must be kept

    with pytest.raises(TargetsUnavailableError, match=message):
        asyncio.run(take())
    assert bool(taken) == (len(content) > 100)


@pytest.mark.parametrize("content", [b"no archive", b"PK\x03\x04", b""], ids=["text", "cut", "empty"])
def test_a_url_into_a_file_that_is_not_an_archive_ends_the_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.zip").write_bytes(content)
    location = f"zip://*::file://{tmp_path}/t.zip"
    with pytest.raises(TargetsUnavailableError, match="cannot read the targets zip://"):
        asyncio.run(FileSource(RETAIL, location).open())


def target(number: int) -> Target:
    scraper = scrapers()["retail-search-v4"]
    return Target(str(number), scraper, scraper.params.model_validate({"query": "mustard"}))


async def test_a_closed_queue_ends_after_its_waiting_targets() -> None:
    source = QueueSource(on_outcome=print)
    taken: list[str] = []

    async def take() -> None:
        taken.extend([each.id async for each in source])

    task = asyncio.ensure_future(take())
    source.put(target(1))
    source.put(target(2))
    source.put(target(3))
    assert source.discard("2")
    await asyncio.sleep(0)
    source.put(target(4))
    assert not source.discard("1"), "the spider has taken it"
    source.close()
    with pytest.raises(RuntimeError):
        source.put(target(5))
    await task
    assert taken == ["1", "3", "4"]


@pytest.mark.parametrize("end", [QueueSource.close, QueueSource.renew])
async def test_a_crawler_that_waits_for_targets_ends_with_its_queue(end: Callable[[QueueSource], None]) -> None:
    source = QueueSource(on_outcome=print)
    waiting = asyncio.ensure_future(anext(aiter(source), None))
    await asyncio.sleep(0)
    end(source)
    assert await asyncio.wait_for(waiting, 60) is None


async def test_a_renewed_queue_keeps_its_targets() -> None:
    source = QueueSource(on_outcome=print)
    taken: list[list[str]] = []
    for number in range(3):
        source.put(target(number))
    for _ in range(2):
        taken.append([])
        async for each in source:
            taken[-1].append(each.id)
            source.renew()
    source.close()
    taken.append([each.id async for each in source])
    assert taken == [["0"], ["1"], ["2"]]


def test_the_queue_forwards_outcomes() -> None:
    outcomes: list[Outcome] = []
    source = QueueSource(on_outcome=outcomes.append)
    outcome = Outcome(target(1), None, None, 5)
    source.completed(outcome)
    assert outcomes == [outcome]


@pytest.mark.parametrize(
    ("platform", "params", "scraper"),
    [
        ("videosite", {"username": "@harborlights"}, "videosite-profile-v3"),
        ("videosite", {"username": "@harborlights", "type": "all"}, "videosite-profile-v3"),
        ("videosite", {"username": "@harborlights", "include_about": True}, "videosite-profile-v3"),
        ("videosite", {"scraper": "videosite-profile", "username": "@harborlights"}, "videosite-profile"),
        ("professional", {"url": "https://www.linkedin.com/in/jane-doe"}, "professional-profile"),
        ("professional", {"username": "jane-doe"}, "professional-profile-v4"),
    ],
)
def test_the_default_scraper_takes_params_that_fit_several(platform: str, params: dict[str, Any], scraper: str) -> None:
    target = TargetParser(spiders()[platform].scrapers).parse(params)
    assert isinstance(target, Target), target
    assert target.scraper.name == scraper


def test_params_that_fit_several_platforms_need_the_name_of_a_scraper() -> None:
    every = TargetParser(tuple(scraper for spider in spiders().values() for scraper in spider.scrapers))
    assert isinstance(every.parse({"username": "jane"}), InvalidTarget)
    target = every.parse({"username": "jane", "type": "video"})
    assert isinstance(target, Target)
    assert target.scraper.name == "videosite-profile-v3"
