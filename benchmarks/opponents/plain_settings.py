"""Settings of ``benchmarks/crawl.py`` for plain Scrapy: its defaults, without settings that distort the comparison."""

from __future__ import annotations

from typing import Any

SPIDER_MODULES = ["benchmarks.plain"]
ADDONS = {"scrapy_poet.Addon": 300}
ASYNCIO_EVENT_LOOP = "uvloop.Loop"
CONCURRENT_REQUESTS = 32
CONCURRENT_REQUESTS_PER_DOMAIN = 16
COOKIES_ENABLED = False
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
DOWNLOAD_DELAY = 0
PLATFORM_ORIGINS: dict[str, Any] = {}
