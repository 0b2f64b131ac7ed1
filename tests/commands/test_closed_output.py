"""Commands whose reader closes their output early, such as ``| head``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.crawls import ROOT

CRAWL = "crawl retail -a cat_id=976759 -a max_pages=2 -s SANDBOX=1 -o -:jsonl"


@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        ("list", "1"),
        ("targets check targets.csv", ""),
        (CRAWL, ""),
        *(
            pytest.param(*each, marks=pytest.mark.soak)
            for each in [
                ("list", ""),
                ("targets check targets.csv", "1"),
                ("settings --get USER_AGENT", "1"),
                ("settings --get USER_AGENT", ""),
                (CRAWL, "1"),
            ]
        ),
    ],
)
def test_a_closed_output_ends_a_command_without_a_traceback(arguments: str, unbuffered: str) -> None:
    """Each command runs in its own interpreter, because its last output is flushed when Python exits."""
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments.split()],
        check=False,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "CRAWLER_LOG_LEVEL": "ERROR"},
    )
    os.close(writer)
    assert "Traceback" not in run.stderr, run.stderr
    assert "BrokenPipeError" not in run.stderr, run.stderr
    if arguments == CRAWL:
        assert run.returncode == 1, "the records were not written"
        assert "event=output_closed" in run.stderr
