"""The download handlers of scrapy-zyte-api, bounded. Needs the extra ``zyte``."""

from __future__ import annotations

from scrapy_zyte_api.handler import ScrapyZyteAPIHTTPDownloadHandler, ScrapyZyteAPIHTTPSDownloadHandler

from crawler.downloads.handlers import BoundedTransfers


class HttpHandler(BoundedTransfers, ScrapyZyteAPIHTTPDownloadHandler):  # type: ignore[misc]  # its response may be None
    """Handler of ``http`` URLs."""


class HttpsHandler(BoundedTransfers, ScrapyZyteAPIHTTPSDownloadHandler):  # type: ignore[misc]  # as above
    """Handler of ``https`` URLs."""
