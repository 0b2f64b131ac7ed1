"""Halves of the product that users combine: each row of a table is a line.

Elsewhere: scrapers in both databases (``outputs/test_sql.py``), blanks and headings in all formats of targets
(``targets/test_pasted.py``), commands with ``SANDBOX`` (``sandbox/test_stays_local.py``).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from crawler.outputs.formats import FORMATS
from tests import forks
from tests.crawls import ROOT, lines

# Formats x installation


def base_distributions() -> set[str]:
    """Return the names of the distributions that a base installation has: ``requirements.txt`` and what it requires."""
    listed = (line.partition("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines())
    waiting = [Requirement(line) for line in listed if line]
    found: set[str] = set()
    seen: set[str] = set()
    while waiting:
        each = waiting.pop()
        if str(each) in seen or (each.marker and not any(map(each.marker.evaluate, extras(each)))):
            continue
        seen.add(str(each))
        found.add(normal(each.name))
        for further in requires(each.name) or []:
            required = Requirement(further)
            if required.marker is None or any(required.marker.evaluate(extra) for extra in extras(each)):
                waiting.append(Requirement(further.partition(";")[0]))
    return found


def extras(requirement: Requirement) -> list[dict[str, str]]:
    return [{"extra": extra} for extra in (*requirement.extras, "")]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from scrapy.cmdline import execute
execute()
"""
"""A ``scrapy`` command in whose process some packages are not installed."""


def test_every_format_is_written_by_a_base_installation(tmp_path: Path) -> None:
    base = base_distributions()
    assert {"scrapy", "twisted", "xlsxwriter"} <= base
    assert not {"pytest", "openpyxl", "pandas", "psycopg", "mcp"} & base
    absent = {
        name for name, owners in packages_distributions().items() if not {normal(owner) for owner in owners} & base
    } - {"social_retail_crawler", "crawler", "tests", "scripts", "benchmarks"}
    files = {kind.name: "out.db" if kind.schemes else f"out.{kind.name}" for kind in FORMATS.values()}
    uris = [
        f"sqlite:///{tmp_path}/{file}" if FORMATS[name].schemes else tmp_path / file for name, file in files.items()
    ]
    feeds = [part for uri in uris for part in ("-O", uri)]
    command = ["crawl", "retail", "-a", "cat_id=976759", "-s", "SANDBOX=1", *feeds]
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(absent=sorted(absent)), *command],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert [name for name, file in files.items() if not (tmp_path / file).stat().st_size] == []


# Jobs x crawls

TARGETS = """id,query
good,mustard
lost,gone
shut,blocked
again,mustard
,
"""


def outcome(folder: Path, *command: str) -> tuple[int, list[Any], dict[str, str]]:
    """Run a command. Return its exit code, the records of its file, and its failures: id -> code."""
    folder.mkdir()
    (folder / "targets.csv").write_text(TARGETS)
    settings = {"SANDBOX": 1, "STORE": folder / "store.sqlite3", "FAILURES_FEED": folder / "failures.jsonl"}
    settings |= {"RETRY_TIMES": 0, "BREAKER_THRESHOLD": 0}
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    run = forks.run([*forks.SCRAPY, *command, *given])
    failures = next(folder.rglob("*failures*.jsonl"), None)
    assert failures is not None, run.stdout + run.stderr
    records = sorted(lines(folder / "out.jsonl"), key=lambda line: str(line["id"]))
    return run.returncode, records, {str(each["id"]): each["code"] for each in lines(failures)}


def test_a_job_and_a_crawl_of_one_file_have_the_same_outcome(tmp_path: Path) -> None:
    crawled, collected = tmp_path / "crawl", tmp_path / "collect"
    targets = f"targets={crawled / 'targets.csv'}"
    crawl = outcome(crawled, "crawl", "retail", "-a", targets, "-O", str(crawled / "out.jsonl"))
    job = outcome(collected, "collect", str(collected / "targets.csv"), "-O", str(collected / "out.jsonl"))
    assert crawl[0] == job[0] == 4
    assert [line["id"] for line in crawl[1]] == [line["id"] for line in job[1]]
    assert crawl[2] == job[2]
    assert crawl[2]["lost"] == "TARGET_NOT_FOUND"


# Documented versions x tested versions

PYTHON = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
STATED = [
    ("README.md", r"Python ([0-9.]+) or newer", PYTHON),
    ("scripts/common.sh", r"Python ([0-9.]+) or newer is needed", PYTHON),
    ("docs/schedule.md", r"a real Scrapyd ([0-9.]+[0-9])", version("scrapyd")),
    ("docs/schedule.md", r"`scrapinghub-entrypoint-scrapy` ([0-9.]+)", version("scrapinghub-entrypoint-scrapy")),
    ("docs/schedule.md", r"Scrapy\s+([0-9.]+[0-9])", version("scrapy")),
    ("docs/from-scrapyrt.md", r"\s([0-9]+\.[0-9]+\.[0-9]+)\b", version("scrapyrt")),
]
"""Page, pattern of a version that the page states, and the version with which the tests run."""


@pytest.mark.parametrize(("page", "pattern", "tested"), STATED)
def test_the_stated_version_is_the_tested_one(page: str, pattern: str, tested: str) -> None:
    stated = set(re.findall(pattern, (ROOT / page).read_text()))
    assert stated
    assert all(f"{tested}.".startswith(f"{each}.") for each in stated), f"{page} states {stated}, tested is {tested}"
