"""scrapyrt's settings in the benchmarks for this project, whose items are records."""

from benchmarks.opponents.scrapyrt_settings import CRAWL_MANAGER, DEBUG

__all__ = ["CRAWL_MANAGER", "DEBUG", "RESOURCES"]

RESOURCES = {"crawl.json": "benchmarks.opponents.scrapyrt_records.RecordResource"}
