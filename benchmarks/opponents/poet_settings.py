"""Settings of the spider that uses scrapy-poet: those of the plain spider, and the add-on."""

from benchmarks.opponents.plain_settings import *  # noqa: F403  # a settings module

SPIDER_MODULES = ["benchmarks.opponents.poet"]
ADDONS = {"scrapy_poet.Addon": 300}
