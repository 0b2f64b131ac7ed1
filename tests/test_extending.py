"""The steps of ``docs/extending.md`` work in a copy of the project, in their order."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from tests.copies import copy_of_the_project
from tests.crawls import lines
from tests.test_doc_examples import IN_A_COPY, Shell, follow

BOOK = {"author": "Ida Vale", "book_id": "lantern", "name": "Lantern"}
AUTHOR = {
    "author_id": "ida",
    "books": [{"book_id": "lantern", "name": "Lantern"}, {"book_id": "kettle", "name": "Kettle"}],
    "name": "Ida Vale",
}


def test_the_page_adds_a_platform_a_field_a_scraper_and_an_egress(tmp_path: Path) -> None:
    """The page itself crawls, runs its tests, calls the endpoint, and checks what the probe prints."""
    project = copy_of_the_project(tmp_path)
    with contextlib.closing(Shell(project, project)) as shell:
        follow(IN_A_COPY, shell)
    assert lines(project / "books.jsonl") == [BOOK]
    assert lines(project / "authors.jsonl") == [AUTHOR]
    assert {each["scraper"]: each["data"] for each in lines(project / "both.jsonl")} == {
        "bookshop-book": BOOK | {"page_count": 212},
        "bookshop-author": AUTHOR,
    }
    parts = subprocess.run(
        [sys.executable, "-m", "scripts.missing_parts"], check=False, capture_output=True, text=True, cwd=project
    )
    assert (parts.returncode, parts.stderr) == (1, "")
    assert "\nbookshop-author: no truth in the sandbox: " in parts.stdout
    assert "\ndocs/platforms/bookshop.md: no page: " in parts.stdout
    own = ["crawler/platforms/bookshop", "crawler/spiders/bookshop.py", "tests/platforms/bookshop"]
    for command in (["check"], ["format", "--check"]):
        checked = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", *own],
            check=False,
            capture_output=True,
            text=True,
            cwd=project,
        )
        assert checked.returncode == 0, checked.stdout
