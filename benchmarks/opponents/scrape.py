"""The work that all servers with the endpoint's page object share: params, request, page object, validation."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.utils.project import get_project_settings
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms import origins
from crawler.platforms.retail.pages import SearchPage
from crawler.platforms.retail.requests import listing_request
from crawler.platforms.retail.schema import SearchListing, SearchParams


def platform_origin() -> str:
    """Return the origin of the pages, from the setting ``PLATFORM_ORIGINS``."""
    origin = origins("retail", get_project_settings())
    assert isinstance(origin, str)
    return origin


def page_request(origin: str, params: bytes) -> Request:
    """Return the request of the page for the params of a search, given as JSON."""
    return listing_request(origin, query=SearchParams.model_validate_json(params).query)


async def read(url: str, status: int, body: bytes, page_params: dict[str, Any]) -> dict[str, Any]:
    """Return the validated record of a page of search results."""
    page = SearchPage(response=HttpResponse(url, body, status=status), page_params=PageParams(page_params))
    return validated(SearchListing, await page.to_item())
