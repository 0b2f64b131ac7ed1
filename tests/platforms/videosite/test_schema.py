"""Valid and invalid params of the video site's scraper."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator

from crawler.errors import InvalidRequest
from crawler.platforms.requests import encode_cursor
from crawler.platforms.videosite.schema import CURSOR_KIND, Continuation, ProfileParams, continuation_of
from crawler.targets.parser import check_params
from tests.videosite import SCRAPER

CHANNEL = "UCuAXFkgsw1L7xaCfnd5JJOw"
PAYLOAD: dict[str, Any] = {
    "channel": CHANNEL,
    "names": ["harborlights", CHANNEL.lower()],
    "type": "video",
    "tabs": ["videos"],
    "token": "4qmFsg%3D",
    "seen": [1],
}


def cursor(kind: str = CURSOR_KIND, **changed: Any) -> str:
    return encode_cursor(kind, PAYLOAD | changed)


def invalid_request(**params: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        check_params(SCRAPER, params)
    return raised.value


@pytest.mark.parametrize(
    "username",
    [
        "harborlights",
        "@harborlights",
        "@some.body",
        "some-body_1",
        "@a·b",
        "@АсельИсакова-т4ц",
        "名前",
        CHANNEL,
        "-dash",
        "@h",
    ],
)
def test_valid_usernames(username: str) -> None:
    params = check_params(SCRAPER, {"username": username})
    assert isinstance(params, ProfileParams)
    assert (params.name, params.type, params.include_about) == (username.removeprefix("@"), "video", False)


@pytest.mark.parametrize(
    "username",
    [
        *(
            "",
            "@",
            "@@a",
            "a b",
            "a/b",
            "../etc",
            "..",
            ".",
            "a?b",
            "a#b",
            "a%2fb",
            "a\\b",
            "a\nb",
            "a\x00",
            "a&b",
            "a:b",
        ),
        *("https://www.youtube.com/@a", "http://127.0.0.1/", "//evil.example", "@a@evil.example", "youtube.com/@a"),
        *("a" * 101, "@" + "a" * 101, "a\u2028b", "a\r\nHost: evil"),
    ],
)
def test_malformed_usernames_are_refused(username: str) -> None:
    assert invalid_request(username=username).details[0]["loc"] == ["username"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *[(True, True), (False, False), (1, True), (0, False), ("true", True), ("false", False), ("1", True)],
        *[("TRUE", True), ("FALSE", False)],  # as spreadsheets write them
        *[("0", False), ("True", True), ("False", False)],
    ],
)
def test_switch_values(given: Any, expected: bool) -> None:  # noqa: FBT001
    for text in (False, True):
        if text and not isinstance(given, str):
            continue
        params = check_params(SCRAPER, {"username": "a", "include_about": given}, text=text)
        assert isinstance(params, ProfileParams)
        assert params.include_about is expected


@pytest.mark.parametrize(
    "value",
    [True, False, 1, 0, 2, -1, "true", "True", "TRUE", "tRUE", "false", "False", "FALSE", "1", "0", "2", "", "yes", []],
)
def test_the_json_schema_accepts_the_same_switch_values(value: object) -> None:
    schema = ProfileParams.model_json_schema()["properties"]["include_about"]
    try:
        check_params(SCRAPER, {"username": "a", "include_about": value})
    except InvalidRequest:
        assert not OAS31Validator(schema).is_valid(value)
    else:
        assert OAS31Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"username": 1}, "username"),
        ({"username": None}, "username"),
        ({"username": "a", "type": "shorts"}, "type"),
        ({"username": "a", "type": ""}, "type"),
        ({"username": "a", "include_about": "maybe"}, "include_about"),
        ({"username": "a", "include_about": 2}, "include_about"),
        ({"username": "a", "include_about": 1.0}, "include_about"),
        ({"username": "a", "include_about": []}, "include_about"),
        ({"username": "a", "cursor": ""}, "cursor"),
        ({"username": "a", "url": "https://www.youtube.com/watch?v=a"}, "url"),
        ({"username": "a", "max_pages": 2}, "max_pages"),
    ],
)
def test_invalid_params_are_refused(params: dict[str, Any], field: str) -> None:
    assert invalid_request(**params).details[0]["loc"] == [field]


# Cursors


@pytest.mark.parametrize("username", ["harborlights", "@HarborLights", CHANNEL])
def test_cursor_is_valid_for_every_name_of_its_channel(username: str) -> None:
    params = check_params(SCRAPER, {"username": username, "cursor": cursor()})
    assert isinstance(params, ProfileParams)
    assert params.continuation == Continuation(**PAYLOAD)


@pytest.mark.parametrize(
    ("username", "kind", "sent"),
    [
        ("somebody", "video", cursor()),
        ("harborlights", "short", cursor()),
        ("harborlights", "all", cursor()),
        ("harborlights", "video", cursor("microblog-profile-1")),
        ("harborlights", "video", cursor(channel="UCshort")),
        ("harborlights", "video", cursor(channel=f"../{CHANNEL}")),
        ("harborlights", "video", cursor(tabs=[])),
        ("harborlights", "video", cursor(tabs=["playlists"])),
        ("harborlights", "video", cursor(seen=["x"])),
        ("harborlights", "video", cursor(more=1)),
        ("harborlights", "video", cursor(token=None)),
        ("harborlights", "video", cursor()[:-3]),
        ("harborlights", "video", cursor() + "AAAA"),
        ("harborlights", "video", cursor().swapcase()),
        ("harborlights", "video", "4qmFsgLZCRIYVUNUd0VD"),
        ("harborlights", "video", "a" * 20_000),
        ("harborlights", "video", "ä"),
    ],
)
def test_foreign_and_tampered_cursors_are_refused(username: str, kind: str, sent: str) -> None:
    error = invalid_request(username=username, type=kind, cursor=sent)
    assert error.code == "INVALID_REQUEST"
    assert "4qmFsg" not in error.message


@given(st.text(max_size=200))
def test_random_text_is_not_a_cursor(text: str) -> None:
    with pytest.raises(ValueError, match="not a cursor"):
        continuation_of(text)
