"""The parts of the Scrapy Cloud support that can be tested locally: the metadata of its forms, and its job runner."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
from scrapy_spider_metadata import get_spider_metadata  # type: ignore[attr-defined]  # it has no __all__

from crawler.registry import scrapers, spider_for, spiders
from tests.copies import FILES
from tests.crawls import ROOT, comparable, expected_record


@pytest.mark.parametrize("name", sorted(spiders()))
def test_forms_describe_every_argument(name: str) -> None:
    spider = spiders()[name]
    metadata = get_spider_metadata(spider, normalize=True)
    assert metadata["title"]
    assert metadata["description"]
    fields: dict[str, Any] = metadata["param_schema"]["properties"]
    params = {field for scraper in spider.scrapers for field in scraper.params.model_fields}
    assert params | {"scraper", "targets", "shard", "job", "max_pages", "since"} <= set(fields)
    assert [field for field, schema in fields.items() if not schema.get("description")] == []


def test_requirements_match_those_of_the_package(tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    make = "from setuptools import build_meta; build_meta.prepare_metadata_for_build_wheel('.')"
    subprocess.run([sys.executable, "-c", make], check=True, cwd=tmp_path, capture_output=True)
    (metadata,) = tmp_path.glob("*.dist-info/METADATA")
    required = message_from_string(metadata.read_text()).get_all("Requires-Dist", [])
    dependencies = [line for line in required if "extra ==" not in line]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert [found for line in lines if (found := line.partition("#")[0].strip())] == dependencies


def cloud_job(folder: Path, spider: str, arguments: dict[str, Any], **settings: str) -> tuple[list[Any], str]:
    """Run a job with ``scrapinghub-entrypoint-scrapy``, as Scrapy Cloud does. Return its items and its whole output.

    The runner writes items, log records and the outcome into a named pipe.
    """
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.extend(pipe.read_bytes().splitlines()), daemon=True)
    reader.start()
    job = {
        "key": "1/2/3",
        "auth": "none",
        "spider": spider,
        "spider_args": arguments,
        "settings": {"SANDBOX": "1", "FAILURES_FEED": str(folder / "failures.jsonl"), **settings},
    }
    # Scrapy Cloud's runner closes a crawl above 950 MiB, and Linux includes the peak memory of the parent process in a
    # program's peak. So a shell starts the runner: the test process may be larger than that.
    start_crawl = [sys.executable, str(Path(sys.executable).parent / "start-crawl")]
    run = subprocess.run(
        ["/bin/sh", "-c", '"$@"; exit $?', "sh", *start_crawl],
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "SHUB_FIFO_PATH": str(pipe),
            "SHUB_JOB_DATA": json.dumps(job),
            "SHUB_SETTINGS": "{}",
            "OWN_LOG": str(folder / "own.log"),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    if not received:
        with contextlib.suppress(OSError):  # unblock the reader if it still waits for a writer
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    reader.join(timeout=300)
    items = [json.loads(line.removeprefix(b"ITM ")) for line in received if line.startswith(b"ITM ")]
    return items, run.stderr + b"\n".join(received).decode()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak] * (name != "microblog-profile"))  # the runner takes 2 s to start
        for name in sorted({scraper.name for scraper in scrapers().values()})
    ],
)
def test_the_cloud_runner_gets_items_as_feed_lines(tmp_path: Path, name: str) -> None:
    scraper = scrapers()[name]
    items, log = cloud_job(tmp_path, spider_for(scraper).name, {"scraper": name, **scraper.example})
    expected = {**expected_record(scraper), "_type": scraper.item.__name__}
    assert comparable(items) == comparable([expected]), log


def test_the_outcome_of_a_cloud_job_is_its_close_reason_and_its_log_ends_with_the_exit_code(tmp_path: Path) -> None:
    items, log = cloud_job(tmp_path, "retail", {"query": "gone"})
    assert not items
    assert '\nFIN {"outcome":"finished"}\n' in log
    assert log.endswith('event=crawl_ended exit_code=4"}')
