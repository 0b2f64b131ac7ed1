"""``fields=`` of single calls, synchronous and asynchronous."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.client import SEARCH, call
from tests.service.conftest import Service

PARAMS = {"query": "mustard"}
FIELDS = "total_results,products.name,products.price.current_price"


def assert_selected(data: dict[str, Any], whole: dict[str, Any]) -> None:
    products = [
        {"name": each["name"], "price": {"current_price": each["price"]["current_price"]}} for each in whole["products"]
    ]
    assert data == {"total_results": whole["total_results"], "products": products}
    assert len(products) > 1


def test_fi3_4_a_call_returns_the_selected_fields(service: Service) -> None:
    whole = call(service.url, SEARCH, PARAMS).body["data"]
    reply = call(service.url, f"{SEARCH}?fields={FIELDS}", PARAMS)
    assert reply.status == 200
    assert_selected(reply.body["data"], whole)


@pytest.mark.parametrize("fields", ["nosuch", "products.nosuch", "", "scraper", "returned&fields=page"])
def test_fi3_4_unknown_fields_are_refused_before_the_call(service: Service, fields: str) -> None:
    reply = call(service.url, f"{SEARCH}?fields={fields}", PARAMS)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert reply.body["error"]["details"][0]["loc"] == ["fields"]


def test_a_failed_call_is_not_changed_by_fields(service: Service) -> None:
    assert call(service.url, f"{SEARCH}?fields=returned", {"query": "gone"}).code == "TARGET_NOT_FOUND"
