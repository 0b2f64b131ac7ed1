"""The download handlers of scrapy-zyte-api, bounded. Needs the extra ``zyte``."""

from __future__ import annotations

from scrapy_zyte_api.handler import ScrapyZyteAPIHTTPDownloadHandler, ScrapyZyteAPIHTTPSDownloadHandler

from crawler.downloads.handlers import BoundedTransfers


class HttpHandler(BoundedTransfers, ScrapyZyteAPIHTTPDownloadHandler):
    """Handler of ``http`` URLs."""


class HttpsHandler(BoundedTransfers, ScrapyZyteAPIHTTPSDownloadHandler):
    """Handler of ``https`` URLs."""
