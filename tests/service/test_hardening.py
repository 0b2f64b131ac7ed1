"""Hardening: listens on loopback only, verifies certificates, logs request ids."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawler.registry import spiders
from tests.service.client import SEARCH, many
from tests.service.conftest import Service, running


def listening(pid: int) -> set[str]:
    """Return the IP addresses on which a process listens, in the hexadecimal form of ``/proc``."""
    inodes = {
        found[1]
        for entry in Path(f"/proc/{pid}/fd").iterdir()
        if (found := re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink())))
    }
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def test_nothing_listens_beyond_loopback(service: Service) -> None:
    assert listening(service.pid) == {"0100007F"}


def test_unsafe_features_are_off() -> None:
    settings: Settings = get_project_settings()
    assert not settings.getbool("TELNETCONSOLE_ENABLED")
    assert not settings.getbool("REMOTE_CONTROL_ENABLED")
    assert settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")
    assert settings.getint("DOWNLOAD_MAXSIZE") <= 32 * 1024 * 1024


@pytest.mark.parametrize("spider", spiders().values(), ids=spiders())
def test_unsafe_schemes_are_off(spider: type[Spider]) -> None:
    """The project's add-on turns them off, so the settings are checked after the add-ons were applied."""
    crawler = Crawler(spider, get_project_settings())
    crawler.addons.load_settings(crawler.settings)
    handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    assert {scheme for scheme, handler in handlers.items() if handler is not None} == {"http", "https"}


def test_every_log_line_of_a_target_has_its_request_id(tmp_path: Path) -> None:
    """Two kinds of retries are logged: of failed downloads by a middleware, and of unreadable pages by the spider."""
    calls = [(SEARCH, {"query": query, "page": page}) for query in ("flaky", "wrong-page") for page in range(1, 6)]
    with running(tmp_path / "log") as service:
        replies = asyncio.run(many(service.url, calls))
        log = service.logged()
    ids = {
        (params["query"], str(params["page"])): reply.body["request_id"]
        for (_, params), reply in zip(calls, replies, strict=True)
    }
    lines = [dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line)) for line in log.splitlines()]
    seen = set()
    for line in lines:
        if line.get("event") == "retried":
            query = parse_qs(urlsplit(line["url"].strip('"')).query)
            search = (query["q"][0], query.get("page", ["1"])[0])
            assert line["request_id"] == ids[search], line
            seen.add(search)
    assert seen == ids.keys()
    logged_codes = {line["request_id"]: line["code"] for line in lines if line.get("event") == "call"}
    assert logged_codes == {reply.body["request_id"]: reply.code for reply in replies}
    log = log[log.index("time=") :]  # Python prints warnings from imports before it
    assert [line for line in log.splitlines() if not re.match(r"time=\S+ level=\S+ logger=\S+ event=", line)] == []
