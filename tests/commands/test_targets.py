"""``scrapy targets check`` and ``scrapy targets retry``."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawler.commands.targets import MAX_SHOWN_ROWS, Check, duration, print_retries
from crawler.outputs.feed_files import failure_line
from crawler.registry import spiders
from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser
from crawler.targets.sources import WrongTargetsError
from crawler.targets.target import InvalidTarget, Outcome, Target
from tests import forks
from tests.crawls import ROOT

RETAIL = TargetParser(spiders()["retail"].scrapers)
DELAYS = Settings({"PLATFORM_BUDGETS": {"retail": {"delay": 2.0}}, "SANDBOX": False})


def check(path: Path, content: str) -> tuple[int, list[str]]:
    path.write_text(content)
    found = asyncio.run(Check.of(FileSource(RETAIL, str(path))))
    return found.exit_code, list(found.lines(DELAYS))


def test_a_check_counts_targets_and_prints_the_first_invalid_rows(tmp_path: Path) -> None:
    rows = "".join(f"b{number},,,\n" for number in range(MAX_SHOWN_ROWS + 2))
    code, lines = check(tmp_path / "t.csv", f"id,cat_id,query,page\na,976759,,\na,,red,\na,,blue,\nc,,blue,two\n{rows}")
    assert code == 4
    assert lines[:3] == [
        "targets: 3; rows that are not targets: 13",
        "  retail-search-v4: 2",
        "  retail-category-v4: 1",
    ]
    assert lines[3].startswith("  Line 5 of t.csv: retail-search-v4: page: Input should be a valid integer")
    assert len(lines) == 3 + MAX_SHOWN_ROWS + 2
    assert lines[-2:] == ["  ... and 3 more", "retail: about 0:06, at the 1,800 targets per hour of its budget"]
    assert not any("more" in line for line in check(tmp_path / "t.csv", "id,cat_id\na,\n")[1])


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("t.txt", "976759\n3944\n", 0),
        ("t.txt", "", 4),
        ("t.json", '["976759", "3944', 1),
    ],
    ids=["all rows are targets", "no rows", "the rest cannot be read"],
)
def test_the_exit_code_of_a_check(tmp_path: Path, name: str, content: str, code: int) -> None:
    assert check(tmp_path / name, content)[0] == code


def test_a_check_refuses_what_a_crawl_refuses(tmp_path: Path) -> None:
    with pytest.raises(WrongTargetsError, match=r"t\.csv, line 1: unknown column 'Cat_IDs'"):
        check(tmp_path / "t.csv", "Cat_IDs\n976759\n")


@pytest.mark.parametrize(
    ("platform", "text"),
    [
        ("retail", "retail: about 0:20, at the 1,800 targets per hour of its budget"),
        ("microblog", "microblog: about 3:30, at the 171 targets per hour of its budget"),
        ("shortvideo", "shortvideo: about 1:15, at the 480 targets per hour of its budget"),
    ],
)
def test_the_duration_follows_from_the_budget(platform: str, text: str) -> None:
    assert duration(platform, 10, DELAYS) == text


def failure(target_id: str, **changes: Any) -> dict[str, Any]:
    params = {"cat_id": "976759", "page": 2}
    failed = {"id": target_id, "scraper": "retail-category-v4", "params": params, "parent": None, "line": 1}
    return {**failed, "code": "UPSTREAM_TIMEOUT", "retryable": True, **changes}


FAILURES = [
    failure("a"),
    failure("b", params={"cat_id": "3944"}, code="TARGET_NOT_FOUND", retryable=False),
    failure("c", scraper=None, params="{broken", code="INVALID_REQUEST", retryable=False),
    failure("d", scraper=None, params={"query": "Müsli"}, code="INVALID_REQUEST", retryable=False),
    failure("a"),
    failure("e", params={"cat_id": "4044"}),
]


@pytest.mark.parametrize(
    ("retry_all", "code", "ids"), [(False, 0, ["a", "e"]), (True, 4, ["a", "b", "d", "e"])], ids=["retryable", "all"]
)
def test_failures_become_a_targets_file(  # retry_all: the option --all
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    retry_all: bool,  # noqa: FBT001
    code: int,
    ids: list[str],
) -> None:
    (tmp_path / "failures.jsonl").write_text("".join(json.dumps(each) + "\n" for each in FAILURES))
    assert print_retries(str(tmp_path / "failures.jsonl"), retry_all=retry_all) == code
    again = tmp_path / "again.jsonl"
    again.write_text(capsys.readouterr().out)
    targets = asyncio.run(Check.of(FileSource(RETAIL, str(again))))
    assert targets.counts.total() == len(ids)
    assert [json.loads(line)["id"] for line in again.read_text().splitlines()] == ids
    assert json.loads(again.read_text().splitlines()[0]) == {
        "id": "a",
        "scraper": "retail-category-v4",
        "cat_id": "976759",
        "page": 2,
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "a", "cat_id": "1"}\n', "f.jsonl, line 1: this is not a line of a failures feed"),
        (json.dumps(failure("a", columns=None)), "f.jsonl, line 1: this is not a line of a failures feed"),
        ("id,code\n", "f.jsonl, line 1 is not valid JSON"),
    ],
)
def test_other_files_are_not_retried(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "f.jsonl").write_text(content)
    with pytest.raises(WrongTargetsError, match=message):
        print_retries(str(tmp_path / "f.jsonl"), retry_all=False)


async def test_the_targets_of_a_retry_keep_the_users_own_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "failures.jsonl").write_text(json.dumps(failure("a", columns={"sku": "A-1"})))
    print_retries(str(tmp_path / "failures.jsonl"), retry_all=False)
    (tmp_path / "again.jsonl").write_text(capsys.readouterr().out)
    again = FileSource(RETAIL, str(tmp_path / "again.jsonl"))
    await again.open()
    assert again.own_columns == ("sku",)
    assert [each.columns async for each in again] == [{"sku": "A-1"}]


def test_failed_targets_have_the_keys_that_a_retry_needs() -> None:
    target = RETAIL.parse({"id": "a", "cat_id": "1"})
    invalid = RETAIL.parse({"id": "a", "cat_idd": "1"})
    assert isinstance(target, Target)
    assert isinstance(invalid, InvalidTarget)
    for each in (target, invalid):
        assert failure("x").keys() <= failure_line(Outcome(each, None, invalid.error, 0)).keys()


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (["check", "t.txt", "--spider", "microblog"], 0, "microblog-profile: 1", ""),
        (["check", "nowhere.csv"], 2, "", "no such targets file: nowhere.csv"),
        (["retry", "f.jsonl"], 0, '"id": "a"', "targets to retry: 2"),
    ],
    ids=["check", "no such file", "retry"],
)
def test_the_commands_end_with_their_codes(tmp_path: Path, arguments: list[str], code: int, out: str, err: str) -> None:
    (tmp_path / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text())
    (tmp_path / "t.txt").write_text("quiet_harbor\n")
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(each) + "\n" for each in FAILURES))
    command = [sys.executable, "-m", "scrapy", "targets", *arguments]
    run = forks.run(command, cwd=tmp_path)
    assert run.returncode == code, run.stderr
    assert out in run.stdout
    assert err in run.stderr
