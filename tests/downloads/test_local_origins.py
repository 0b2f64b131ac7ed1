"""Which requests go to a local server, and what they look like there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from crawler.downloads.local_origins import LocalOrigins
from crawler.errors import BlockedByPolicy, ScrapeError, UpstreamBlocked
from crawler.middlewares import AllowedOrigins

LOCAL = "http://127.0.0.1:8903"
SHOP = "https://www.walmart.com"

MAPPED: list[tuple[dict[str, str], str, str]] = [
    ({"retail": LOCAL}, f"{SHOP}/browse/1?page=2#x", f"{LOCAL}/browse/1?page=2#x"),
    ({"retail": LOCAL}, f"{SHOP}", f"{LOCAL}"),
    ({"retail": LOCAL}, "https://x.com/a", "https://x.com/a"),
    ({"retail": LOCAL}, "https://www.walmart.com.example/browse/1", "https://www.walmart.com.example/browse/1"),
    ({"microblog": LOCAL}, "https://api.x.com/1.1/guest/activate.json", f"{LOCAL}/1.1/guest/activate.json"),
    ({"microblog": LOCAL, "https://x.com": "http://[::1]:9"}, "https://x.com/a", "http://[::1]:9/a"),
    ({"microblog": LOCAL, "https://x.com": "http://[::1]:9"}, "https://api.x.com/a", f"{LOCAL}/a"),
    ({"professional": LOCAL}, "https://se.linkedin.com/in/a", f"{LOCAL}/in/a"),
    ({"https://books.example": LOCAL}, "https://books.example/a", f"{LOCAL}/a"),
    ({}, f"{SHOP}/browse/1", f"{SHOP}/browse/1"),
]
"""``PLATFORM_ORIGINS``, the URL of a request, and the URL that is requested."""


def origins(**settings: Any) -> LocalOrigins:
    return LocalOrigins(Settings({"SANDBOX": False, "PLATFORM_ORIGINS": {}, "SANDBOX_RENAMES": {}} | settings))


@pytest.mark.parametrize(("given", "url", "sent"), MAPPED)
def test_an_origin_is_replaced(given: dict[str, str], url: str, sent: str) -> None:
    assert origins(PLATFORM_ORIGINS=given).request(Request(url)).url == Request(sent).url


def test_a_local_server_gets_no_proxy_and_no_credentials_for_one() -> None:
    given = Request(SHOP, headers={"Proxy-Authorization": "Basic x"}, meta={"proxy": "http://127.0.0.1:9"})
    sent = origins(PLATFORM_ORIGINS={"retail": LOCAL}).request(given)
    assert sent.meta["proxy"] is None
    assert "Proxy-Authorization" not in sent.headers
    assert (given.url, given.meta["proxy"]) == (SHOP, "http://127.0.0.1:9"), "the spider's request is unchanged"


def outside(url: str, **meta: Any) -> ScrapeError:
    """Return the error of a request of a spider for the shop."""
    spider = SimpleNamespace(allowed_origins=frozenset({SHOP}), platform="retail")
    with pytest.raises(ScrapeError) as raised:
        AllowedOrigins(cast("Crawler", SimpleNamespace(spider=spider))).process_request(Request(url, meta=meta))
    return raised.value


def test_a_request_to_another_origin_is_a_redirect_only_after_one() -> None:
    redirected = outside("https://books.example/a", redirect_urls=[f"{SHOP}/a"])
    assert isinstance(redirected, UpstreamBlocked)
    assert redirected.reason == "foreign_redirect"
    requested = outside("https://books.example/a")
    assert isinstance(requested, BlockedByPolicy)
    assert requested.message == "https://books.example is not an origin of retail."
