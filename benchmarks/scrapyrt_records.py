"""scrapyrt's resource, writing our records as their data: its encoder knows dicts and items only.

Not in the settings module: this one imports the reactor, which must be installed first.
"""

from typing import Any

from scrapyrt.resources import AdaptedScrapyJSONEncoder, CrawlResource

from crawler.targets.target import Record


class RecordEncoder(AdaptedScrapyJSONEncoder):  # type: ignore[misc]  # scrapyrt is untyped
    """Scrapy's JSON encoder, and records."""

    def default(self, o: Any) -> Any:
        """A record is its data."""
        return o.data if isinstance(o, Record) else super().default(o)


class RecordResource(CrawlResource):  # type: ignore[misc]  # scrapyrt is untyped
    """``/crawl.json``."""

    json_encoder = RecordEncoder()
