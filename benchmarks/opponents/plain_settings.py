"""Settings of the plain spider: Scrapy's defaults, without settings that would distort the comparison."""

SPIDER_MODULES = ["benchmarks.opponents.plain"]
ASYNCIO_EVENT_LOOP = "uvloop.Loop"  # not a default: this project uses it too
CONCURRENT_REQUESTS = 32
CONCURRENT_REQUESTS_PER_DOMAIN = 16
COOKIES_ENABLED = False
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
DOWNLOAD_DELAY = 0
