"""The prices of recorded rows are read: every price text is in the grammar, and every row with an offer has a price."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from crawler.platforms.retail.payload import Row
from crawler.platforms.retail.product import LEADS, has_wrong_price, read_price, unknown_leads, unread_lines
from crawler.reading.careful import read_plain
from crawler.reading.documents import all_dicts, is_json, script_block
from crawler.reading.values import amount, stated_price
from scripts.captures import CAPTURES, body_of, captures

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are not available"
)

TEXTS = ("linePrice", "linePriceDisplay", "priceRangeString")
PRICE_KEYS = ("PRICE", "LOW_PRICE", "HIGH_PRICE", "WAS_PRICE")


def recorded_objects() -> Iterator[dict[str, Any]]:
    """Yield all JSON objects in the recorded pages and parts of pages."""
    for name, file in captures().items():
        if "retail" in file.parts:
            body = body_of(name)
            block = body if is_json(body) else script_block(body, "__NEXT_DATA__")
            yield from all_dicts(orjson.loads(block)) if block else ()


def test_every_recorded_price_text_is_read() -> None:
    texts = [each[key] for each in recorded_objects() for key in TEXTS if isinstance(each.get(key), str) and each[key]]
    assert len(texts) > 1_000
    read = {text: stated_price(text) for text in texts}
    assert [text for text, price in read.items() if price is None or price.lead not in LEADS] == []
    for text, price in read.items():
        assert price is not None
        numbers = [float(number.replace(",", "")) for number in re.findall(r"[\d,.]*\d", text)]
        assert numbers == [each for each in (price.low, price.high) if each is not None]
    assert {"", *(price.lead for price in read.values() if price)} == LEADS


def test_every_recorded_amount_of_a_price_line_is_read() -> None:
    values = [each["value"] for each in recorded_objects() if each.get("key") in PRICE_KEYS]
    assert len(values) > 10
    assert [each for each in values if amount(each) is None and each not in {"", "0", 0}] == []


def test_recorded_rows_have_prices_that_do_not_contradict_each_other() -> None:
    found: Counter[str] = Counter()
    for each in recorded_objects():
        if "usItemId" not in each or "linePrice" not in (each.get("priceInfo") or {}):
            continue
        row, _ = read_plain(Row, {"__typename": "Product", **each})
        assert row is not None
        assert row.price is not None
        price = read_price(row.price)
        assert not price.is_contradictory
        assert unknown_leads(row.price) == unread_lines(row.price) == []
        found["offers"] += bool(row.offer_id)
        assert not has_wrong_price(row)
        assert (price.low or 0) <= (price.current or price.low or 0) <= (price.high or float("inf"))
    assert found["offers"] > 400
