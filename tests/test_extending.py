"""The steps of ``docs/extending.md`` work in a copy of the project, in their order."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copies import copy_of_the_project
from tests.crawls import lines
from tests.test_doc_examples import IN_A_COPY, Shell, follow

pytestmark = pytest.mark.meta

BOOK = {"author": "Ida Vale", "book_id": "lantern", "name": "Lantern"}


def test_the_page_adds_a_platform_and_a_field(tmp_path: Path) -> None:
    """The page itself crawls, runs its tests, and calls the endpoint."""
    project = copy_of_the_project(tmp_path)
    with contextlib.closing(Shell(project, project)) as shell:
        follow(IN_A_COPY, shell)
    assert lines(project / "books.jsonl") == [BOOK]
    parts = subprocess.run(
        [sys.executable, "-m", "scripts.missing_parts"], check=False, capture_output=True, text=True, cwd=project
    )
    assert (parts.returncode, parts.stderr) == (1, "")
    assert "\nbookshop-book: no truth in the sandbox: " in parts.stdout
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
