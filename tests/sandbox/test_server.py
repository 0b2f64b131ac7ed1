"""``scrapy sandbox`` in a real process: its routes, and each fault as an HTTP client sees it."""

from __future__ import annotations

import gzip
import http.client
import json
import signal
import socket
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import brotli
import pytest

from crawler.commands.sandbox import listed
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import FAULTS, Site
from tests import forks

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROOT = Path(__file__).parents[2]
CHALLENGE = (b"Robot or human?", b'id="px-captcha"', b"blockScript")
DATA = b'<script id="__NEXT_DATA__"'


@pytest.fixture(scope="module")
def sandbox() -> Iterator[subprocess.Popen[str]]:
    """The process of a running ``scrapy sandbox``."""
    command = [sys.executable, "-m", "scrapy", "sandbox"]
    with forks.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def origin(sandbox: subprocess.Popen[str]) -> str:
    """The origin of the simulated shop, from the single line that the command prints."""
    assert sandbox.stdout is not None
    origins = json.loads(sandbox.stdout.readline())["origins"]
    assert urlsplit(origins["retail"]).hostname == "127.0.0.1"
    return str(origins["retail"])


@dataclass(frozen=True)
class FakeResponse:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes


def get(origin: str, path: str, *, timeout: float = 10, **headers: str) -> FakeResponse:
    connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=timeout)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return FakeResponse(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


def search(name: str) -> str:
    return f"/search?{urlencode({'q': name})}"


def category(name: str) -> str:
    return "/browse/faults/" + next(cat_id for cat_id, fault in Site.fault_ids.items() if fault == name)


@dataclass(frozen=True)
class Expected:
    """The expected response: its status, and texts that its body must or must not contain."""

    status: int = 200
    contains: tuple[bytes, ...] = (DATA,)
    lacks: tuple[bytes, ...] = ()
    headers: tuple[str, ...] = ()
    kind: str = "text/html"
    repeat: Expected | None = None
    """The expected response to a second request, if it differs."""


GOOD = Expected(contains=(DATA, b'"itemStacks":[{'), lacks=CHALLENGE)
EMPTY = Expected(contains=(), lacks=(DATA, *CHALLENGE))
EXPECTED = {
    "gone": Expected(404, contains=(b"<html",), lacks=(DATA, *CHALLENGE)),
    "rate-limited": Expected(429, contains=(), lacks=(DATA,), headers=("Retry-After",)),
    "forbidden": Expected(403, contains=(), lacks=(DATA,)),
    "browser-only": Expected(403, contains=(b'<script src="http://localhost:',), lacks=(DATA,)),
    "server-error": Expected(500, contains=(), lacks=(DATA,)),
    "bad-gateway": Expected(502, contains=(), lacks=(DATA,)),
    "unavailable": Expected(503, contains=(), lacks=(DATA,)),
    "flaky": Expected(503, contains=(), lacks=(DATA,), repeat=GOOD),
    "empty-body": EMPTY,
    "not-html": Expected(contains=(b"\x00\x01\x02",), lacks=(DATA,)),
    "foreign-redirect": Expected(302, contains=(), headers=("Location",)),
    "slow": GOOD,
    "slow-once": GOOD,
    "challenge": Expected(contains=CHALLENGE, lacks=(DATA,)),
    "challenge-412": Expected(412, contains=CHALLENGE, lacks=(DATA,)),
    "challenge-redirect": Expected(307, contains=(), headers=("Location",)),
    "challenge-json": Expected(
        412, contains=(b'"redirectUrl":"/blocked', b"blockScript"), lacks=(DATA,), kind="application/json"
    ),
    "teapot": Expected(418, contains=(), lacks=(DATA,)),
    "soft-gone": Expected(contains=(DATA, b'"page":"/404"'), lacks=(b'"searchResult"',)),
    "home": Expected(302, contains=(), headers=("Location",)),
    "no-listing": Expected(contains=(DATA, b'"searchResult":null')),
    "editorial": Expected(contains=(DATA, b'"contentLayout"'), lacks=(b'"searchResult"',)),
    "product-page": Expected(contains=(DATA, b'"product":{'), lacks=(b'"searchResult"',)),
    "reported-error": Expected(contains=(DATA, b'"errorType":')),
    "wrong-category": Expected(contains=(DATA, b'"cat_id":"5438"')),
    "wrong-category-once": Expected(contains=(DATA, b'"cat_id":"5438"'), repeat=Expected(lacks=(b'"cat_id":"5438"',))),
    "wrong-page": Expected(contains=(DATA, b'"page":2,')),
    "no-data": EMPTY,
    "broken-json": Expected(contains=(DATA, b"</html>")),
    "deep-json": Expected(contains=(DATA, b"[" * 10_000 + b"]" * 10_000)),
    "missing-name": Expected(contains=(DATA, b'"name":null,"checkStore')),
    "no-prices": Expected(contains=(DATA, b'"priceInfo":{'), lacks=(b'"lineType":"CURRENT_PRICE"', b'"linePrice":"$')),
    "blind": Expected(contains=(DATA, b'"__typename":"Product"'), lacks=(b'"canonicalUrl":',)),
    "filter-ignored": GOOD,
    "filter-stated": GOOD,
    "filter-unasked": Expected(contains=(DATA, b'"selectedMin":5.0')),
    "total-low": Expected(contains=(DATA, b'"aggregatedCount":350,')),
    "blind-later": GOOD,
}
CUT_OFF = ("hang", "reset", "truncated")
"""Faults without a complete response. Each has a separate test."""


def test_every_fault_has_an_expected_response() -> None:
    assert set(EXPECTED) | set(CUT_OFF) == set(FAULTS)


@pytest.mark.parametrize("path_of", [search, category])
@pytest.mark.parametrize("name", EXPECTED)
def test_faults_give_the_expected_responses(origin: str, name: str, path_of: Any) -> None:
    first = EXPECTED[name]
    for expected in (first, first.repeat or first):
        answer = get(origin, path_of(name))
        assert answer.status == expected.status
        assert answer.headers["Content-Type"].startswith(expected.kind)
        assert int(answer.headers["Content-Length"]) == len(answer.body)
        assert [part for part in expected.contains if part not in answer.body] == []
        assert [part for part in expected.lacks if part in answer.body] == []
        assert set(expected.headers) <= answer.headers.keys()


def test_a_layout_changes_between_two_pages(origin: str) -> None:
    for path in (f"{search('blind-later')}&", f"{category('blind-later')}?"):
        pages = [get(origin, f"{path}page={number}").body for number in (1, 2)]
        assert [b'"canonicalUrl":' in page for page in pages] == [True, False]


def test_an_ignored_filter_is_stated_or_not(origin: str) -> None:
    prices = "&min_price=20&max_price=30"
    for name, states in (("filter-ignored", b'"selectedMin":null'), ("filter-stated", b'"selectedMin":20.0')):
        filtered, whole = get(origin, search(name) + prices).body, get(origin, search(name)).body
        assert filtered.count(b'"__typename":"Product"') == whole.count(b'"__typename":"Product"')
        assert states in filtered


def test_the_challenge_has_the_real_size(origin: str) -> None:
    assert 10_000 < len(get(origin, search("challenge")).body) < 20_000


def test_the_challenge_redirect_leads_to_the_challenge(origin: str) -> None:
    location = get(origin, category("challenge-redirect")).headers["Location"]
    assert location.startswith("/blocked?url=")
    assert all(part in get(origin, location).body for part in CHALLENGE)


def test_the_home_redirect_leads_to_a_page_without_a_listing(origin: str) -> None:
    assert get(origin, category("home")).headers["Location"] == "/"
    body = get(origin, "/").body
    assert DATA in body
    assert b'"searchResult"' not in body


def test_a_reset_closes_the_connection_without_a_response(origin: str) -> None:
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        get(origin, search("reset"))


def test_a_truncated_page_is_shorter_than_its_content_length(origin: str) -> None:
    with pytest.raises(http.client.IncompleteRead) as caught:
        get(origin, search("truncated"))
    assert DATA in caught.value.partial or len(caught.value.partial) > 100_000


def test_a_hanging_target_does_not_affect_others(origin: str) -> None:
    with socket.create_connection((urlsplit(origin).hostname, urlsplit(origin).port)) as hanging:
        hanging.sendall(f"GET {category('hang')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert get(origin, "/browse/976759").status == 200
        hanging.settimeout(0.5)
        with pytest.raises(TimeoutError):
            hanging.recv(1)


def test_the_server_listens_on_loopback_only(origin: str) -> None:
    # Every address in 127.0.0.0/8 is local, so a server on 0.0.0.0 would accept this connection.
    with pytest.raises(OSError, match=r"refused|unreachable|assign"):
        socket.create_connection(("127.0.0.2", urlsplit(origin).port), timeout=2)


@pytest.mark.parametrize(
    "params",
    [
        {"scraper": "retail-category-v4", "cat_id": "4044", "page": "10", "sort": "price_low"},
        {"scraper": "retail-category-v4", "cat_id": "976759", "min_price": "5.5", "max_price": "30"},
        {"scraper": "retail-category-v4", "url": "https://www.walmart.com/browse/food/976759?povid=x"},
        {"scraper": "retail-search-v4", "query": "kettle"},
    ],
)
def test_expected_records_are_served(origin: str, params: dict[str, str]) -> None:
    answer = get(origin, f"/__truth__?{urlencode(params)}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert json.loads(answer.body) == Site().expected_record(params)


def test_the_catalogue_is_served(origin: str) -> None:
    assert json.loads(get(origin, "/__world__").body) == Site().catalogue()


def test_a_platforms_targets_and_faults_are_listed_as_arguments_of_a_crawl() -> None:
    site = Site()
    lines = [line.split("\t") for line in listed(site).splitlines()]
    assert ["-a cat_id=976759", "OK", "a department with 25 pages"] in lines
    assert ["-a query=gone", "TARGET_NOT_FOUND", "gone: 404 with an error page"] in lines
    assert len(lines) == len(site.catalogue()["targets"]) + len(site.catalogue()["faults"])


@pytest.mark.parametrize(
    "query", ["", "cat_id=1", "cat_id=976759&sort=random", "cat_id=976759&page=one", "cat_id=976759&page=0"]
)
def test_unknown_targets_have_no_expected_record(origin: str, query: str) -> None:
    answer = get(origin, f"/__truth__?{query}")
    assert answer.status == 400
    assert "error" in json.loads(answer.body)


@pytest.mark.parametrize(
    "path", ["/browse/food/1", "/nothing/here", "/browse/976759?page=x", "/browse/976759?page=-1", f"/{quote('Œ')}"]
)
def test_unknown_pages_are_404(origin: str, path: str) -> None:
    assert get(origin, path).status == 404


def test_pages_are_sent_unchanged(origin: str) -> None:
    assert (
        get(origin, "/browse/food/976759?page=2").body == Site().page(FakeRequest("/browse/976759", {"page": "2"}))[2]
    )


DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "br": brotli.decompress,
    "deflate": zlib.decompress,
    "gzip": gzip.decompress,
    "zstd": zstd.decompress,
}


@pytest.mark.parametrize("encoding", DECODERS)
def test_responses_have_the_accepted_encoding(origin: str, encoding: str) -> None:
    answer = get(origin, "/browse/food/976759?page=2", Accept_Encoding=f"identity, {encoding};q=0.8")
    assert answer.headers["Content-Encoding"] == encoding
    assert DECODERS[encoding](answer.body) == get(origin, "/browse/food/976759?page=2").body


def test_a_client_that_accepts_all_encodings_gets_all(origin: str) -> None:
    pages = [get(origin, f"/browse/976759?page={n}", Accept_Encoding="gzip, deflate, br, zstd") for n in range(1, 17)]
    assert {page.headers["Content-Encoding"] for page in pages} == DECODERS.keys()


def test_responses_without_a_body_have_no_encoding(origin: str) -> None:
    answer = get(origin, search("empty-body"), Accept_Encoding="gzip")
    assert (answer.headers.get("Content-Encoding"), answer.body) == (None, b"")


@pytest.mark.parametrize("path", ["/browse/976759", "/nothing/here", "/search?q=challenge", "/search?q=home"])
def test_all_responses_set_a_cookie(origin: str, path: str) -> None:
    assert get(origin, path).headers["Set-Cookie"].startswith("visitor=")


@pytest.mark.usefixtures("origin")
def test_sigterm_ends_the_process_without_errors(sandbox: subprocess.Popen[str]) -> None:
    # This test must be the last one: it checks the process after it has served every fault and lost clients.
    sandbox.send_signal(signal.SIGTERM)
    out, err = sandbox.communicate(timeout=10)
    assert (sandbox.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert "Unhandled" not in err
