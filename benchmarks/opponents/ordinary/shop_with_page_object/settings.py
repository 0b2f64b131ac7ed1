"""Settings of an ordinary project whose spider uses this project's page object."""

SPIDER_MODULES = ["shop_with_page_object.spiders"]
COOKIES_ENABLED = False
DOWNLOAD_DELAY = 0
REMOTE_CONTROL_ENABLED = False
ROBOTSTXT_OBEY = False  # each crawl would request the file again
TELNETCONSOLE_ENABLED = False
