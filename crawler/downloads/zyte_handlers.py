"""The download handlers of scrapy-zyte-api, limited by ``CLOSE_GRACE``. Needs the extra ``zyte``."""

from __future__ import annotations

from scrapy_zyte_api.handler import ScrapyZyteAPIHTTPDownloadHandler, ScrapyZyteAPIHTTPSDownloadHandler

from crawler.downloads.handlers import BoundedTransfers


class HttpHandler(BoundedTransfers, ScrapyZyteAPIHTTPDownloadHandler):  # type: ignore[misc]  # the type of its response includes None
    """Downloads ``http`` URLs through Zyte API."""


class HttpsHandler(BoundedTransfers, ScrapyZyteAPIHTTPSDownloadHandler):  # type: ignore[misc]  # the type of its response includes None
    """Downloads ``https`` URLs through Zyte API."""
