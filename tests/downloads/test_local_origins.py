"""Which requests go to a local server, and what they look like there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from crawler.browser.handler import BrowserHandler
from crawler.components import stay_local
from crawler.downloads.handlers import LocalOrigins, restored
from crawler.errors import BlockedByPolicy, ScrapeError, UpstreamBlocked
from crawler.middlewares import AllowedOrigins
from tests.shop import open_shop

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
    ({"retail": LOCAL}, "https://WWW.Walmart.com:443/browse/1", f"{LOCAL}/browse/1"),
    ({"retail": LOCAL}, "http://www.walmart.com:443/browse/1", "http://www.walmart.com:443/browse/1"),
    ({"retail": LOCAL}, "https://me:secret@www.walmart.com/browse/1", "https://me:secret@www.walmart.com/browse/1"),
    ({"https://Books.example:443": "http://LOCALHOST:80"}, "https://books.example/a", "http://localhost/a"),
    ({}, f"{SHOP}/browse/1", f"{SHOP}/browse/1"),
]
"""``PLATFORM_ORIGINS``, the URL of a request, and the URL that is requested."""


def origins(**settings: Any) -> LocalOrigins:
    return LocalOrigins(Settings({"SANDBOX": False, "PLATFORM_ORIGINS": {}, "SANDBOX_RENAMES": {}} | settings))


@pytest.mark.parametrize(("given", "url", "sent"), MAPPED)
def test_an_origin_is_replaced(given: dict[str, str], url: str, sent: str) -> None:
    assert origins(PLATFORM_ORIGINS=given).request(Request(url)).url == Request(sent).url


@pytest.mark.parametrize(
    ("url", "is_closed"), [("https://www.linkedin.com/in/a", True), ("https://se.linkedin.com/in/a", False)]
)
def test_only_a_page_from_a_local_server_cannot_connect_to_public_ones(url: str, *, is_closed: bool) -> None:
    request = Request(url)
    sent = origins(PLATFORM_ORIGINS={"https://www.linkedin.com": LOCAL}).request(request)
    assert BrowserHandler.is_closed(request, sent) is is_closed


@pytest.mark.parametrize(
    ("settings", "url", "meta"),
    [
        pytest.param(
            {"PLATFORM_ORIGINS": {"retail": LOCAL}}, SHOP, {"proxy": None, "egress": "a"}, id="a local server"
        ),
        pytest.param({"SANDBOX": True}, LOCAL, {"proxy": None}, id="in the sandbox, any server on this machine"),
    ],
)
def test_a_local_server_gets_no_proxy_and_no_credentials_for_one(
    settings: dict[str, Any], url: str, meta: dict[str, Any]
) -> None:
    own = {"proxy": "http://a.example:9", "egress": "a"}
    given = Request(url, headers={"Proxy-Authorization": "Basic x"}, meta=own)
    sent = origins(**settings).request(given)
    assert (sent.url, sent.meta) == (Request(LOCAL).url, meta)
    assert "Proxy-Authorization" not in sent.headers
    assert (given.url, given.meta) == (Request(url).url, own), "the spider's request is unchanged"


@pytest.mark.parametrize("local", ["http://shop.example", "http://127.0.0.1.example:8903", "http://10.0.0.1:8903"])
def test_the_sandbox_refuses_servers_of_other_machines(local: str) -> None:
    with pytest.raises(BlockedByPolicy, match="is not on this machine"):
        origins(SANDBOX=True, PLATFORM_ORIGINS={"retail": local}).request(Request(SHOP))


RESTORED = [
    (f"{LOCAL}/browse/2", f"{SHOP}/browse/2"),
    ("/browse/2", "/browse/2"),
    (f"{SHOP}/browse/2", f"{SHOP}/browse/2"),
    ("http://127.0.0.1:8904/browse/2", "http://127.0.0.1:8904/browse/2"),
    ("https://books.example/2", "https://books.example/2"),
]
"""A URL in a response of the local server, and what it is for all other code."""


@pytest.mark.parametrize(("url", "public"), RESTORED)
def test_urls_of_the_local_server_get_their_public_origin(url: str, public: str) -> None:
    request = Request(f"{SHOP}/browse/1")
    assert restored(url, origins(PLATFORM_ORIGINS={"retail": LOCAL}).request(request), request) == public


def test_redirects_stay_on_the_local_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are relative, or name the local server or the platform."""
    with open_shop() as shop:
        answer, prefixes = shop.answer, ["", shop.origin, SHOP, f"{SHOP}:443"]

        def redirecting(path: str) -> tuple[int, dict[str, str], bytes]:
            moved = int(path.partition("moved=")[2] or 0)
            if moved == len(prefixes):
                return answer(path)
            return 302, {"Location": f"{prefixes[moved]}/browse/976759?moved={moved + 1}"}, b""

        monkeypatch.setattr(shop, "answer", redirecting)
        run = shop.crawl("-a", "cat_id=976759", "-O", str(tmp_path / "out.jsonl"))
    assert run.returncode == 0, run.stderr


def test_the_spiders_request_has_the_latency_of_the_download() -> None:
    with open_shop() as shop:
        code = "'download_latency' in response.meta"
        run = shop.scrapy("shell", "--nolog", f"{SHOP}/browse/976759", "-c", code)
    assert run.stdout == "True\n", run.stderr


def test_responses_of_local_servers_are_cached_apart_from_those_of_the_platforms() -> None:
    settings = Settings({"PLATFORM_ORIGINS": {"retail": LOCAL}, "SANDBOX": False, "HTTPCACHE_DIR": "mine"})
    stay_local(settings)
    assert settings["HTTPCACHE_DIR"] == "mine-local"


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
