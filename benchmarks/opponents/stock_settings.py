"""Settings of the spider with the page object: Scrapy's defaults, with the concurrency of the other crawls."""

from benchmarks.opponents.work import DOWNLOADS

SPIDER_MODULES = ["benchmarks.opponents.stock"]
ASYNCIO_EVENT_LOOP = "uvloop.Loop"  # not a default: all opponents use it
CONCURRENT_REQUESTS_PER_DOMAIN = DOWNLOADS
DOWNLOAD_DELAY = 0
