"""The garbage collector's thresholds: collections are rare while a command starts, and as usual later."""

from __future__ import annotations

import subprocess
import sys

from tests.crawls import ROOT

SCRIPT = """
import gc
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings

settings = get_project_settings()
settings.setdict({"SANDBOX": True, "DOWNLOAD_DELAY": 0, "LOG_LEVEL": "ERROR"}, priority="cmdline")
print("started", gc.get_threshold()[0])
process = AsyncCrawlerProcess(settings, install_root_handler=False)
process.crawl("retail", query="mustard", max_pages=1)
process.start()
print("crawled", gc.get_threshold()[0])
"""


def test_a_script_that_crawls_collects_garbage_as_often_as_the_command() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.stdout.split() == ["started", "250000", "crawled", "10000"], run.stderr
