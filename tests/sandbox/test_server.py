"""``scrapy sandbox``, from outside: a real process, its routes, and what each fault looks like on the wire."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import FAULTS, Site

ROOT = Path(__file__).parents[2]
CHALLENGE = (b"Robot or human?", b'id="px-captcha"', b"blockScript")
DATA = b'<script id="__NEXT_DATA__"'


@pytest.fixture(scope="module")
def sandbox() -> Iterator[subprocess.Popen[str]]:
    """The command, running."""
    command = [sys.executable, "-m", "scrapy", "sandbox"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def origin(sandbox: subprocess.Popen[str]) -> str:
    """Where the shop is, as the command's only line says."""
    assert sandbox.stdout is not None
    origins = json.loads(sandbox.stdout.readline())["origins"]
    assert urlsplit(origins["retail"]).hostname == "127.0.0.1"
    return str(origins["retail"])


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


def get(origin: str, path: str, *, timeout: float = 10) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


def search(name: str) -> str:
    return f"/search?{urlencode({'q': name})}"


def category(name: str) -> str:
    return "/browse/faults/" + next(cat_id for cat_id, fault in Site.fault_ids.items() if fault == name)


@dataclass(frozen=True)
class Look:
    """What an answer must be like: its status, what its body holds and lacks."""

    status: int = 200
    holds: tuple[bytes, ...] = (DATA,)
    lacks: tuple[bytes, ...] = ()
    headers: tuple[str, ...] = ()
    kind: str = "text/html"
    repeat: Look | None = None
    """The look of the second answer, where it differs."""


GOOD = Look(holds=(DATA, b'"itemStacks":[{'), lacks=CHALLENGE)
NO_PAGE = Look(holds=(), lacks=(DATA, *CHALLENGE))
LOOKS = {
    "gone": Look(404, holds=(b"<html",), lacks=(DATA, *CHALLENGE)),
    "rate-limited": Look(429, holds=(), lacks=(DATA,), headers=("Retry-After",)),
    "forbidden": Look(403, holds=(), lacks=(DATA,)),
    "browser-only": Look(403, holds=(b'<script src="http://localhost:',), lacks=(DATA,)),
    "server-error": Look(500, holds=(), lacks=(DATA,)),
    "bad-gateway": Look(502, holds=(), lacks=(DATA,)),
    "unavailable": Look(503, holds=(), lacks=(DATA,)),
    "flaky": Look(503, holds=(), lacks=(DATA,), repeat=GOOD),
    "empty-body": NO_PAGE,
    "not-html": Look(holds=(b"\x00\x01\x02",), lacks=(DATA,)),
    "foreign-redirect": Look(302, holds=(), headers=("Location",)),
    "slow": GOOD,
    "slow-once": GOOD,
    "challenge": Look(holds=CHALLENGE, lacks=(DATA,)),
    "challenge-412": Look(412, holds=CHALLENGE, lacks=(DATA,)),
    "challenge-redirect": Look(307, holds=(), headers=("Location",)),
    "challenge-json": Look(
        412, holds=(b'"redirectUrl":"/blocked', b"blockScript"), lacks=(DATA,), kind="application/json"
    ),
    "teapot": Look(418, holds=(), lacks=(DATA,)),
    "soft-gone": Look(holds=(DATA, b'"page":"/404"'), lacks=(b'"searchResult"',)),
    "home": Look(302, holds=(), headers=("Location",)),
    "no-listing": Look(holds=(DATA, b'"searchResult":null')),
    "editorial": Look(holds=(DATA, b'"contentLayout"'), lacks=(b'"searchResult"',)),
    "product-page": Look(holds=(DATA, b'"product":{'), lacks=(b'"searchResult"',)),
    "reported-error": Look(holds=(DATA, b'"errorType":')),
    "wrong-category": Look(holds=(DATA, b'"cat_id":"5438"')),
    "wrong-category-once": Look(holds=(DATA, b'"cat_id":"5438"'), repeat=Look(lacks=(b'"cat_id":"5438"',))),
    "wrong-page": Look(holds=(DATA, b'"page":2,')),
    "no-data": NO_PAGE,
    "broken-json": Look(holds=(DATA, b"</html>")),
    "deep-json": Look(holds=(DATA, b"[" * 10_000 + b"]" * 10_000)),
    "missing-name": Look(holds=(DATA, b'"name":null,"checkStore')),
    "no-prices": Look(holds=(DATA, b'"priceInfo":{'), lacks=(b'"lineType":"CURRENT_PRICE"', b'"linePrice":"$')),
    "blind": Look(holds=(DATA, b'"__typename":"Product"'), lacks=(b'"canonicalUrl":',)),
}
CUT_OFF = ("hang", "reset", "truncated")
"""Faults that are no answer; each has a test of its own."""


def test_every_fault_has_a_look() -> None:
    assert set(LOOKS) | set(CUT_OFF) == set(FAULTS)


@pytest.mark.parametrize("path_of", [search, category])
@pytest.mark.parametrize("name", LOOKS)
def test_a_fault_looks_as_it_should(origin: str, name: str, path_of: Any) -> None:
    look = LOOKS[name]
    for expected in (look, look.repeat or look):
        answer = get(origin, path_of(name))
        assert answer.status == expected.status
        assert answer.headers["Content-Type"].startswith(expected.kind)
        assert int(answer.headers["Content-Length"]) == len(answer.body)
        assert [part for part in expected.holds if part not in answer.body] == []
        assert [part for part in expected.lacks if part in answer.body] == []
        assert set(expected.headers) <= answer.headers.keys()


def test_the_challenge_is_a_page_of_its_weight(origin: str) -> None:
    assert 10_000 < len(get(origin, search("challenge")).body) < 20_000


def test_the_challenge_s_redirect_leads_to_the_challenge(origin: str) -> None:
    location = get(origin, category("challenge-redirect")).headers["Location"]
    assert location.startswith("/blocked?url=")
    assert all(part in get(origin, location).body for part in CHALLENGE)


def test_the_way_home_leads_to_a_page_without_a_listing(origin: str) -> None:
    assert get(origin, category("home")).headers["Location"] == "/"
    body = get(origin, "/").body
    assert DATA in body
    assert b'"searchResult"' not in body


def test_a_reset_is_no_answer(origin: str) -> None:
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        get(origin, search("reset"))


def test_a_truncated_page_ends_before_its_length(origin: str) -> None:
    with pytest.raises(http.client.IncompleteRead) as caught:
        get(origin, search("truncated"))
    assert DATA in caught.value.partial or len(caught.value.partial) > 100_000


def test_a_hanging_target_never_answers_and_harms_no_other(origin: str) -> None:
    with socket.create_connection((urlsplit(origin).hostname, urlsplit(origin).port)) as hanging:
        hanging.sendall(f"GET {category('hang')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert get(origin, "/browse/976759").status == 200
        hanging.settimeout(0.5)
        with pytest.raises(TimeoutError):
            hanging.recv(1)


def test_no_other_interface_is_listened_on(origin: str) -> None:
    # All of 127.0.0.0/8 is this machine: a server on 0.0.0.0 would answer here too.
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
def test_the_truth_can_be_asked_for(origin: str, params: dict[str, str]) -> None:
    answer = get(origin, f"/__truth__?{urlencode(params)}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert json.loads(answer.body) == Site().expected_record(params)


def test_the_world_can_be_asked_for(origin: str) -> None:
    assert json.loads(get(origin, "/__world__").body) == Site().catalogue()


@pytest.mark.parametrize(
    "query", ["", "cat_id=1", "cat_id=976759&sort=random", "cat_id=976759&page=one", "cat_id=976759&page=0"]
)
def test_what_has_no_truth_is_said_so(origin: str, query: str) -> None:
    answer = get(origin, f"/__truth__?{query}")
    assert answer.status == 400
    assert "error" in json.loads(answer.body)


@pytest.mark.parametrize(
    "path", ["/browse/food/1", "/nothing/here", "/browse/976759?page=x", "/browse/976759?page=-1", f"/{quote('Œ')}"]
)
def test_what_the_shop_has_not_is_404(origin: str, path: str) -> None:
    assert get(origin, path).status == 404


def test_pages_come_over_the_wire_as_the_world_makes_them(origin: str) -> None:
    assert (
        get(origin, "/browse/food/976759?page=2").body == Site().page(FakeRequest("/browse/976759", {"page": "2"}))[2]
    )


@pytest.mark.usefixtures("origin")
def test_it_ends_when_told_and_has_complained_of_nothing(sandbox: subprocess.Popen[str]) -> None:
    # The last test of the module: the process has met every fault by now, and clients that went away.
    sandbox.send_signal(signal.SIGTERM)
    out, err = sandbox.communicate(timeout=10)
    assert (sandbox.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert "Unhandled" not in err
