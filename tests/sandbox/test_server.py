"""``scrapy sandbox`` in a real process: its routes, encodings and end."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import brotli
import pytest

from crawler.commands.sandbox import listed
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests import forks
from tests.service.client import Reply, call

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROOT = Path(__file__).parents[2]


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


def get(origin: str, path: str, **headers: str) -> Reply:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(origin, path, method="GET", headers=given)


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
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json; charset=utf-8")
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
    assert answer.headers["content-encoding"] == encoding
    assert DECODERS[encoding](answer.body) == get(origin, "/browse/food/976759?page=2").body


def test_a_client_that_accepts_all_encodings_gets_all(origin: str) -> None:
    pages = [get(origin, f"/browse/976759?page={n}", Accept_Encoding="gzip, deflate, br, zstd") for n in range(1, 17)]
    assert {page.headers["content-encoding"] for page in pages} == DECODERS.keys()


def test_responses_without_a_body_have_no_encoding(origin: str) -> None:
    answer = get(origin, "/search?q=empty-body", Accept_Encoding="gzip")
    assert (answer.headers.get("content-encoding"), answer.body) == (None, None)


@pytest.mark.parametrize("path", ["/browse/976759", "/nothing/here", "/search?q=challenge", "/search?q=home"])
def test_all_responses_set_a_cookie(origin: str, path: str) -> None:
    assert get(origin, path).headers["set-cookie"].startswith("visitor=")


@pytest.mark.usefixtures("origin")
def test_sigterm_ends_the_process_without_errors(sandbox: subprocess.Popen[str]) -> None:
    # This test must be the last one: it checks the process after it has served every fault and lost clients.
    sandbox.send_signal(signal.SIGTERM)
    out, err = sandbox.communicate(timeout=300)
    assert (sandbox.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert "Unhandled" not in err
