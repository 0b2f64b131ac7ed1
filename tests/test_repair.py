"""A platform changes during a job: responses are kept, lines are suggested, targets are repeated (docs/repair.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox.renames import PAGES_BEFORE
from crawler.sandbox.retail.site import Site
from tests.copies import ProjectCopy
from tests.crawls import lines

RENAMES = {"retail": {"averageRating": "average_rating", "imageInfo": "media"}}
PATH = "search/props.pageProps.initialData.searchResult.itemStacks[].items[]"
TARGETS = 24


class Project(ProjectCopy):
    """A copy of the project. The simulated shop changes after its first pages."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, CRAWLER_SANDBOX="1", CRAWLER_SANDBOX_RENAMES=json.dumps(RENAMES))

    def job(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self("jobs", "show", name, "--json").stdout)
        return shown

    def records(self, name: str) -> dict[str, Any]:
        self("jobs", "export", name, "-O", f"{name}.jsonl")
        return {line["id"]: line["data"] for line in lines(self.folder / f"{name}.jsonl")}


@pytest.mark.soak  # the fast tier runs the commands of docs/repair.md
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

    assert project.apply(project("extract", "--unread", "--suggest", code=4).stdout) == 2
    project("extract", "--unread")

    project("jobs", "retry", "mine", "--unread")
    project("work", "--drain")
    repaired = project.records("mine-unread")
    assert len(repaired) == number
    for name, record in repaired.items():
        assert record == site.expected_record({"query": queries[name]}), name
        assert before[name] != record
    assert (project.job("mine"), project.records("mine")) == (first, before), "a done target is never opened again"
