"""scrapyrt's resource with support for records: its own encoder supports dicts and items only.

Separate from the settings module, because this one imports the reactor, which must be installed first.
"""

from typing import Any

from scrapyrt.resources import AdaptedScrapyJSONEncoder, CrawlResource

from crawler.targets.target import Record


class RecordEncoder(AdaptedScrapyJSONEncoder):  # type: ignore[misc]  # scrapyrt is untyped
    """Scrapy's JSON encoder with support for records."""

    def default(self, o: Any) -> Any:
        """Encode a record as its data."""
        return o.data if isinstance(o, Record) else super().default(o)


class RecordResource(CrawlResource):  # type: ignore[misc]  # scrapyrt is untyped
    """``/crawl.json``."""

    json_encoder = RecordEncoder()
