"""Results of ``scrapy mcp`` have a maximum size: large records and long errors are shortened."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.mcp.endpoint import Reply
from crawler.mcp.results import fit, result, size
from crawler.mcp.tools import View
from tests.mcp.clients import MAX_BYTES, call, text_of
from tests.service.conftest import Service


def test_limit_and_fields_choose_a_part_of_the_record(service: Service) -> None:
    fields = ["products.name", "products.price.current_price", "cat_id"]
    arguments = {"cat_id": "976759", "fields": fields, "limit": 2}
    content = call(service.url, "retail-category-v4", arguments).structured_content
    assert content["data"].keys() == {"products", "cat_id"}
    assert [list(product) for product in content["data"]["products"]] == [["name", "price"]] * 2
    assert [list(product["price"]) for product in content["data"]["products"]] == [["current_price"]] * 2
    (part,) = content["cut"]["parts"]
    assert part == {"path": "products", "kept": 2, "total": part["total"], "unit": "entries"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fields": ["products.nonsense"]}, "fields: fields=products.nonsense: no field is called 'products.nonsense'"),
    ],
)
def test_the_error_for_a_wrong_argument_names_it(service: Service, arguments: dict[str, Any], message: str) -> None:
    answer = call(service.url, "retail-category-v4", {"cat_id": "976759", "limit": 1, **arguments})
    assert answer.is_error
    assert answer.structured_content["status"]["message"].startswith(message)


LARGE: dict[str, Any] = {
    "name": "a shop",
    "rows": [{"number": number, "text": f'"ä{number}\n' * 20} for number in range(4_000)],
    "text": "long \u0001 \U0001f600 text " * 20_000,
    "wide": {f"key{number}": {"a": [1, 2, 3]} for number in range(3_000)},
}


def reply_with(data: Any) -> Reply:
    status = {"code": "OK", "message": "The scrape is complete.", "retryable": False}
    return Reply(
        {
            "request_id": "req_1",
            "success": True,
            "status": status,
            "data": data,
            "error": None,
            "meta": {"billable": True},
        }
    )


def test_a_record_of_a_megabyte_is_shortened_and_described_in_cut() -> None:
    assert size(LARGE) > 1_000_000
    answer = result(reply_with(LARGE), View())
    content = answer.structured_content
    assert len(text_of(answer).encode()) <= MAX_BYTES
    assert not answer.is_error
    assert content["cut"]["bytes"] == size(LARGE)
    assert "call the tool again with `fields`" in content["cut"]["message"]
    parts = {part["path"]: part for part in content["cut"]["parts"]}
    rows = content["data"]["rows"]
    assert rows == LARGE["rows"][: len(rows)]  # whole entries
    assert parts["rows"] == {"path": "rows", "kept": len(rows), "total": 4_000, "unit": "entries"}
    assert len(rows) > 5
    assert parts["text"]["unit"] == "characters"
    assert content["data"]["text"] == f"{LARGE['text'][: parts['text']['kept']]}…"
    assert parts["wide"]["unit"] == "keys"
    assert content["data"]["name"] == "a shop"


@pytest.mark.parametrize("max_kb", [5, 6, 20, 100, 500])
def test_results_are_never_larger_than_max_kb(max_kb: int) -> None:
    for view in (View(max_kb=max_kb), View(max_kb=max_kb, limit=100)):
        answer = result(reply_with(LARGE), view)
        assert len(text_of(answer).encode()) <= max_kb * 1_000
        assert answer.structured_content["cut"]


@pytest.mark.parametrize(
    "error",
    [
        {"code": "INVALID_REQUEST", "message": "x" * 50_000, "details": [], "retry_after": None},
        {
            "code": "INVALID_REQUEST",
            "message": "x",
            "details": [{"loc": [f"key {number}"], "msg": "extra", "type": "extra"} for number in range(2_000)],
            "retry_after": None,
        },
    ],
    ids=["message", "details"],
)
def test_long_errors_are_shortened_and_say_so(error: dict[str, Any]) -> None:
    status = {"code": error["code"], "message": error["message"], "retryable": False}
    envelope = {"request_id": "req_1", "success": False, "status": status, "data": None, "error": error, "meta": None}
    content = result(Reply(envelope), View()).structured_content
    assert content is not None
    assert size(content) <= MAX_BYTES
    assert (content["status"]["code"], content["error"]["code"]) == ("INVALID_REQUEST", "INVALID_REQUEST")
    assert content["cut"]["message"].startswith("`error` is shortened.")
    assert {part["path"].partition(".")[0] for part in content["cut"]["parts"]} <= {"status", "error"}


def test_long_keys_of_a_record_do_not_make_the_result_larger() -> None:
    record = {f"{number}{'k' * 900}": "x" * 5_000 for number in range(20)}
    content = result(reply_with(record), View()).structured_content
    assert content is not None
    assert size(content) <= MAX_BYTES
    assert content["cut"]["bytes"] == size(record)


@pytest.mark.parametrize("room", [4, 30, 50, 80, 130, 300, 1_000, 5_000])
@pytest.mark.parametrize(
    "value",
    [
        LARGE,
        {"a": "x" * 200, "b": [1] * 200, "c": {"d": {"e": ["y" * 300]}}, "f": None, "g": 1.5},
        ["\u0000" * 500, "z" * 500],
        [[[["deep" * 100]]]],
        {"k" * 400: 1, "short": 2},
        [12_345_678_901_234] * 50,
        "😀" * 400,
    ],
    ids=["large", "mixed", "escapes", "deep", "long-key", "numbers", "emoji"],
)
def test_a_value_fits_any_room(value: Any, room: int) -> None:
    shortened, parts = fit(value, room)
    assert size(shortened) <= room
    assert (shortened == value) == (not parts) == (size(value) <= room)
