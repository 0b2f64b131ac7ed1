"""``scrapy probe --budgets``: the budgets in effect, without a request."""

from __future__ import annotations

import subprocess
import sys

from scrapy.settings import Settings

from crawler.probe.report import budget_lines
from tests import forks
from tests.crawls import ROOT


def test_each_egress_and_source_has_a_line() -> None:
    settings = Settings(
        {
            "EGRESSES": [
                {"name": "direct"},
                {"name": "lima", "proxy": "http://127.0.0.1:9", "budgets": {"microblog": {"delay": 6}}},
            ],
            "PLATFORM_BUDGETS": {"microblog": {"sources": {"timeline": {"concurrency": 1, "delay": 30, "burst": 4}}}},
        }
    )
    head, *rows = (line.split() for line in budget_lines(["microblog"], settings))
    assert head[0] == "platform"
    assert rows == [
        ["microblog", "direct", "2", "3", "s", "18", "0", "s", "1,218", "120"],
        ["microblog", "direct", "timeline", "1", "30", "s", "4", "0", "s", "124"],
        ["microblog", "lima", "2", "6", "s", "1", "0", "s", "601", "120"],
        ["microblog", "lima", "timeline", "1", "30", "s", "4", "0", "s", "124"],
    ]


def probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", "probe", "--budgets", *arguments]
    return forks.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=300)


def test_the_command_prints_the_shipped_budgets() -> None:
    done = probe("-s", "SANDBOX=0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 + 6 + 2, "a head, six platforms, and the two sources with a budget"


def test_an_unknown_platform_is_wrong_use() -> None:
    done = probe("shop")
    assert done.returncode == 2
    assert "No platform is called shop; use " in done.stdout + done.stderr
