"""Settings of an ordinary project, as ``scrapy startproject`` writes them, without delays and ports."""

SPIDER_MODULES = ["shop.spiders"]
COOKIES_ENABLED = False
DOWNLOAD_DELAY = 0
REMOTE_CONTROL_ENABLED = False
ROBOTSTXT_OBEY = False  # each crawl would request the file again
TELNETCONSOLE_ENABLED = False
