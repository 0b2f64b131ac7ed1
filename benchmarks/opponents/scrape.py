"""The work that all servers with the endpoint's page object share: params, request, page object, validation."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.utils.project import get_project_settings
from web_poet import HttpResponse, PageParams

from crawler.downloads.local_origins import moved
from crawler.pipelines import validated
from crawler.platforms.retail.pages import SearchPage
from crawler.platforms.retail.requests import listing_request
from crawler.platforms.retail.schema import SearchListing, SearchParams


def platform_origin() -> str:
    """Return the origin of the pages, from the setting ``PLATFORM_ORIGINS``."""
    return str(get_project_settings().getdict("PLATFORM_ORIGINS")["retail"])


def page_request(origin: str, params: bytes) -> Request:
    """Return the request of the page for the params of a search, given as JSON."""
    request = listing_request(query=SearchParams.model_validate_json(params).query)
    return request.replace(url=moved(request.url, origin))


async def read(url: str, status: int, body: bytes, page_params: dict[str, Any]) -> dict[str, Any]:
    """Return the validated record of a page of search results."""
    page = SearchPage(response=HttpResponse(url, body, status=status), page_params=PageParams(page_params))
    return validated(SearchListing, await page.to_item())
