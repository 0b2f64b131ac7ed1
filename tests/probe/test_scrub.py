"""Secrets are removed from pages, wherever they occur, and nothing else is changed."""

from __future__ import annotations

import time

import pytest

from crawler.storage.scrub import Scrubber


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ('{"csrfToken":"aB3-9z"}', '{"csrfToken":"xx0-0x"}'),
        ('{"visitorData" : "Cgt4%3D"}', '{"visitorData" : "xxx0%0x"}'),
        (r'"{\"session_id\":\"abcd12\"}"', r'"{\"session_id\":\"xxxx00\"}"'),
        ("var accessToken = 'abcdef';", "var accessToken = 'xxxxxx';"),
        ('<meta name="csrf-token" content="abc123">', '<meta name="csrf-token" content="xxx000">'),
        ('<input type="hidden" name="lsd_token" value="abc">', '<input type="hidden" name="lsd_token" value="xxx">'),
        ("https://x.example/a?b=1&msToken=abc1&sig=ff00", "https://x.example/a?b=1&msToken=xxx0&sig=xx00"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "xxxxxxxxxxxx.xxxxxxxxxxxx.x0xxxxx0xxxx"),
        ("a-eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "a-xxxxxxxxxxxx.xxxxxxxxxxxx.x0xxxxx0xxxx"),
        ("mail jo.doe+x@mail.example.org now", "mail someone@example.com now"),
        ("from 203.0.113.77:8080 here", "from 192.0.2.1:8080 here"),
        ("to 2a00:1450:4001:82b::200e.", "to 2001:db8::1."),
    ],
)
def test_secrets_are_removed(text: str, scrubbed: str) -> None:
    assert Scrubber()(text) == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        '{"author":"Jo","authority":"abcdef","signature":"my bio text","keywords":"a,b,c"}',
        '{"offer_id":"1987F4FB020615D4C3DB978A67C12B58"}',
        "at 12:30:45 on 2026-11-21T12:30:45.000Z",
        "version 1.2.3 and 999.1.2.3",
        "a::before{content:''} x{margin:0:0}",
        "https://cdn.example/logo@2x.png",
        "@somebody wrote to us @ noon",
        '{"token":""}',
        "key=value; path=/",
    ],
)
def test_other_text_is_unchanged(text: str) -> None:
    assert Scrubber()(text) == text


def test_secrets_of_the_headers_are_removed_anywhere_in_a_page() -> None:
    scrubber = Scrubber()
    scrubber.learn(
        [
            ("Set-Cookie", "vtc=Zk9%3Dabc123; Path=/; Domain=.shop.example; Expires=Wed, 21 Oct 2026 07:28:00 GMT"),
            ("Cookie", 'lang=en; guest="g-778899"'),
            ("X-Guest-Token", "1234567890"),
            ("Content-Type", "text/html; charset=utf-8"),
        ]
    )
    page = "a Zk9%3Dabc123 b Zk9=abc123 c g-778899 d 1234567890 e .shop.example text/html en"
    assert scrubber(page) == "a xx0%0xxxx000 b xx0=xxx000 c x-000000 d 0000000000 e .shop.example text/html en"


def test_short_values_of_headers_are_kept_because_they_are_parts_of_words() -> None:
    scrubber = Scrubber()
    scrubber.learn([("Cookie", "a=wordy; b=secret")])
    assert scrubber("wordy secret secrets") == "wordy xxxxxx xxxxxxs"


def test_a_secret_that_begins_with_another_one_is_removed_as_a_whole() -> None:
    assert Scrubber({"secret", "secret-of-mine", "secret-of"})("secret-of-mine\n") == "xxxxxx-xx-xxxx\n"


def test_values_of_kept_names_are_unchanged() -> None:
    assert Scrubber(keep=["token"])('{"token":"abcd","csrf":"abcd"}') == '{"token":"abcd","csrf":"xxxx"}'


@pytest.mark.parametrize("piece", ["a", "token", "1.", ":", "a@"])
def test_hostile_pages_are_scrubbed_in_linear_time(piece: str) -> None:
    began = time.process_time()
    Scrubber()(piece * (400_000 // len(piece)))
    assert time.process_time() - began < 60, "minutes mean quadratic backtracking"
