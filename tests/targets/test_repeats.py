"""A target in several rows is fetched once, but each row gets its own output line, id and columns."""

from __future__ import annotations

import asyncio
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.registry import spiders
from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser
from crawler.targets.sources import FetchedOnce, TargetsUnavailableError
from crawler.targets.target import Target
from tests.crawls import lines
from tests.shop import ROOT, Shop, open_shop
from tests.targets.reading import all_of

ROWS = "id,cat_id,sku,shop\na,976759,A-1,=1+1\nb,976759,B-2,\nc,1_2_3,C-3,x\nd,1_2_3,D-4,\ne,976759,,\n"


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


def crawl(shop: Shop, folder: Path, *arguments: str, content: str = ROWS, name: str = "t.csv", code: int = 4) -> str:
    (folder / name).write_text(content)
    run = shop.crawl("-a", f"targets={folder / name}", *arguments, FAILURES_FEED=folder / "failed.jsonl")
    assert run.returncode == code, run.stderr
    return run.stderr


def test_targets_check_counts_them(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    checked = shop.scrapy("targets", "check", str(tmp_path / "t.csv"), "--spider", "retail")
    assert checked.stdout.startswith("targets: 2; rows that are not targets: 0\n")
    assert "rows that repeat a target, which is fetched once: 3\n" in checked.stdout
    assert checked.returncode == 0


def test_equal_targets_may_be_written_differently(shop: Shop, tmp_path: Path) -> None:
    content = (
        '{"id":"a","cat_id":"976759"}\n{"id":"b","page":1,"cat_id":976759}\n{"id":"c","cat_id":"976759","page":2}\n'
    )
    log = crawl(shop, tmp_path, "-O", f"{tmp_path}/out.jsonl", content=content, name="t.jsonl", code=0)
    assert "'rows/repeated': 1" in log
    assert sorted(each["id"] for each in lines(tmp_path / "out.jsonl")) == ["a", "b", "c"]


JSON_ROWS = '{"id":"a","cat_id":"976759","n":[1]}\n{"id":"b","cat_id":"976760","m":1}\n{"id":"c","cat_id":"976761"}\n'


def test_the_first_object_names_the_own_keys(shop: Shop, tmp_path: Path) -> None:
    crawl(shop, tmp_path, "-O", f"{tmp_path}/out.jsonl", content=JSON_ROWS, name="t.jsonl")
    assert lines(tmp_path / "out.jsonl")[0]["columns"] == {"n": [1]}
    (failed,) = (each for each in lines(tmp_path / "failed.jsonl") if each["id"] == "b")
    assert (
        failed["message"] == "Line 2 of t.jsonl has the key 'm', which the first row lacks: add it there, or remove it."
    )


def test_a_pipe_is_read_once_though_files_are_read_twice() -> None:
    parser = TargetParser(spiders()["retail"].scrapers)
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "w") as file:
        file.write(ROWS)
        file.close()
        for _ in range(2):  # both sources must read the same copy
            source = FetchedOnce(FileSource(parser, f"/dev/fd/{reader}"))
            source.check()
            asyncio.run(source.open())
            assert source.repeated == 3
            assert [each.id for each in (all_of(source))] == ["a", "c"]
    reader, writer = os.pipe()  # another pipe with the same path
    with os.fdopen(reader), os.fdopen(writer, "w") as file:
        file.write("cat_id\n1_2_3\n")
        file.close()
        assert [each.id for each in (all_of(FileSource(parser, f"/dev/fd/{reader}")))] == [f"{reader}:2"]


def test_a_shell_may_pipe_targets(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    options = " ".join(f"-s {name}={shlex.quote(value)}" for name, value in shop.settings().items())
    crawl = f"{sys.executable} -m scrapy crawl retail -a targets=<(cat {tmp_path}/t.csv) -O {tmp_path}/out.jsonl"
    run = subprocess.run(
        ["/bin/bash", "-c", f"{crawl} {options}"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert run.returncode == 4, run.stderr
    assert [each["id"] for each in lines(tmp_path / "out.jsonl")] == ["a", "b", "e"]


class Full(FetchedOnce):
    """A source whose temporary database is on a full disk."""

    def _add(self, target: Target, row: int) -> None:
        raise sqlite3.OperationalError("database or disk is full")


def test_the_temporary_database_may_have_no_room(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    source = FileSource(TargetParser(spiders()["retail"].scrapers), str(tmp_path / "t.csv"))
    with pytest.raises(TargetsUnavailableError, match="database or disk is full"):
        asyncio.run(Full(source).open())
