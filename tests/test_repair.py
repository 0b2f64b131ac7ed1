"""A platform changes during a job: responses are kept, a line is suggested, targets are repeated (docs/repair.md)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from crawler.sandbox.renames import PAGES_BEFORE
from crawler.sandbox.retail.site import Site
from tests import forks
from tests.crawls import ROOT, lines

RENAMES = {"retail": {"averageRating": "average_rating", "imageInfo": "media"}}
PATH = "search/props.pageProps.initialData.searchResult.itemStacks[].items[]"
TARGETS = 24


class Project:
    """Runs commands in a project folder. The simulated shop changes after its first pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text())
        self.env = {**os.environ, "CRAWLER_SANDBOX": "1", "CRAWLER_SANDBOX_RENAMES": json.dumps(RENAMES)}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*forks.SCRAPY, *arguments]
        run = forks.run(command, capture_output=True, text=True, cwd=self.folder, env=self.env)
        assert run.returncode == 0, f"{arguments}\n{run.stdout}\n{run.stderr}"
        return run

    def job(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self("jobs", "show", name, "--json").stdout)
        return shown

    def records(self, name: str) -> dict[str, Any]:
        self("jobs", "export", name, "-O", f"{name}.jsonl")
        return {line["id"]: line["data"] for line in lines(self.folder / f"{name}.jsonl")}


def test_a_change_during_a_job_is_seen_mended_and_repeated(tmp_path: Path) -> None:
    project, site = Project(tmp_path), Site()
    queries = {f"t{n}": f"mustard {n}" for n in range(TARGETS)}
    rows = [{"id": name, "scraper": "retail-search-v4", "query": query} for name, query in queries.items()]
    (tmp_path / "targets.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    project("jobs", "push", "mine", "targets.jsonl")
    project("work", "--drain", "-s", "TARGETS_IN_FLIGHT=2")

    first, before = project.job("mine"), project.records("mine")
    unread = first["tallies"]["unread"]
    assert unread.keys() == {f"{PATH}.averageRating", f"{PATH}.imageInfo.thumbnailUrl"}
    assert len(set(unread.values())) == 1
    number = unread[f"{PATH}.averageRating"]
    assert 3 <= number <= TARGETS - PAGES_BEFORE

    suggested = project("extract", "--unread", "--suggest")
    (tmp_path / "names.json").write_text(suggested.stdout)
    assert json.loads(suggested.stdout) == {"retail.Row": {"averageRating": "average_rating", "imageInfo": "media"}}
    assert "proven     retail.Row imageInfo -> media: its objects have the same keys" in suggested.stderr
    project.env["CRAWLER_PAYLOAD_NAMES"] = str(tmp_path / "names.json")
    project("extract", "--unread")

    project("jobs", "retry", "mine", "--unread")
    project("work", "--drain")
    repaired = project.records("mine-unread-1")
    assert len(repaired) == number
    for name, record in repaired.items():
        assert record == site.expected_record({"query": queries[name]}), name
        assert before[name] != record
    assert (project.job("mine"), project.records("mine")) == (first, before), "a done target is never opened again"
