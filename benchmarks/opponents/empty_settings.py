"""Settings of the smallest spider: those of ``scrapy startproject``, and the add-on of scrapy-poet."""

BOT_NAME = "empty"
SPIDER_MODULES = ["benchmarks.opponents.empty"]
ADDONS = {"scrapy_poet.Addon": 300}
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 0
FEED_EXPORT_ENCODING = "utf-8"
LOG_LEVEL = "WARNING"
