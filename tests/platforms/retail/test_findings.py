"""Listings that were once read incorrectly, each on the smallest page that shows the defect. The pages are made up."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import orjson
import pytest

from crawler.configuration.descriptions import description
from crawler.platforms.retail.schema import Availability, Price
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests.platforms.retail.test_blocks import GRID, LISTING, PRICE, ROWS, html, page_of, read, refusal
from tests.platforms.retail.test_rows import read as row


def member(*content: dict[str, Any]) -> dict[str, Any]:
    return {"__typename": "BadgeGroupMember", "content": list(content)}


def piece(kind: str, value: str | None, description: str | None = "") -> dict[str, Any]:
    return {"type": kind, "value": value, "contDesc": description}


def badges(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"flags": [], "tags": [], "groups": [], "groupsV2": list(groups)}


# RE-2: moved badges


def test_re_2_badges_of_groups_are_read() -> None:
    group = {"name": "badges", "members": [member(piece("TEXT", "Fresh pick")), member(piece("TEXT", "Rollback"))]}
    assert row(badges=badges(group))["badges"] == ["Fresh pick", "Rollback"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([piece("TEXT", "Save "), piece("TEXT", "with")], ["Save with"]),
        ([piece("TEXT", "Save with"), piece("SEPARATOR", None), piece("ICON", None, "Plus")], ["Save with Plus"]),
        ([piece("ICON", None, None), piece("TEXT", "Fresh")], ["Fresh"]),
        ([piece("ICON", "plus-logo", "Plus"), piece("TEXT", "Save")], ["Plus Save"]),
        ([piece("ICON", "plus-logo", "Plus member")], ["Plus member"]),
        ([piece("ICON", "plus-logo")], None),
        ([piece("VIDEO", "x")], None),
        ([], None),
    ],
)
def test_re_2_re3_3_a_badge_is_its_texts_and_the_descriptions_of_its_icons(
    content: list[dict[str, Any]], expected: Any
) -> None:
    assert row(badges=badges({"name": "badges", "members": [member(*content)]})).get("badges") == expected


@pytest.mark.parametrize("group", ["fulfillment", "ProdTileBadgeModule5"])
def test_re_2_re3_3_promises_of_delivery_are_not_badges(group: str) -> None:
    delivery = {"name": group, "members": [member(piece("TEXT", "Free pickup tomorrow"))]}
    assert "badges" not in row(badges=badges(delivery))


def test_re_2_badges_in_old_and_new_lists_are_listed_once() -> None:
    both = badges({"name": "badges", "members": [member(piece("TEXT", "Deal"))]}) | {
        "flags": [{"key": "", "text": "Deal"}]
    }
    assert row(badges=both)["badges"] == ["Deal"]


# RE-3: other shops

PRICED = [{**each, "priceInfo": {**PRICE, "linePrice": "$5.00"}} for each in ROWS]
PRICES = {**LISTING, "itemStacks": [{"meta": GRID, "items": PRICED}]}


@pytest.mark.parametrize(
    "url",
    [
        "https://www.walmart.ca/en/browse/1_2",
        "https://www.walmart.com.mx/browse/1_2",
        "https://super.walmart.com.mx/browse/1_2",
        "https://business.walmart.com/browse/1_2",
    ],
)
def test_re_3_pages_of_other_hosts_are_refused(url: str) -> None:
    error = refusal(html({"searchResult": PRICES}), url=url)
    assert (error.code, error.reason, error.details[0]["loc"]) == ("EXTRACTION_FAILED", "other_shop", ["url"])


@pytest.mark.parametrize(
    "url", ["https://www.walmart.com/browse/1_2", "https://walmart.com/x", "http://127.0.0.1:80/x"]
)
def test_re_3_the_own_hosts_and_stand_ins_are_accepted(url: str) -> None:
    found = read(html({"searchResult": PRICES}), url=url)
    assert {product["price"]["currency"] for product in found["products"]} == {"USD"}


@pytest.mark.parametrize("language", ["en-CA", "fr-CA", "es-CL", "es-MX"])
def test_re_3_pages_of_other_countries_are_refused(language: str) -> None:
    body = html({"searchResult": PRICES}).replace("<html>", f'<html lang="{language}">')
    assert refusal(body).reason == "other_shop"


@pytest.mark.parametrize("country", ["CA", "not-available", "", None, 3])
@pytest.mark.parametrize("language", ["en-US", "es-US", "en", ""])
def test_re3_1_the_visitors_country_in_the_data_is_not_the_shops(country: Any, language: str) -> None:
    page = {"initialData": {"searchResult": PRICES}, "countryRegion": {"countryCode": country}}
    block = orjson.dumps({"props": {"pageProps": page}, "page": "/search"}).decode()
    body = f'<html lang="{language}"><script id="__NEXT_DATA__">{block}</script></html>'
    assert read(body)["returned"] == len(ROWS)


# RE-6: the category's own name


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"breadCrumb": [{"id": "1", "name": "Food"}], "title": "Condiments"}, "Condiments"),
        ({"breadCrumb": [{"id": "1", "name": "Food"}, {"id": "1_2", "name": "Sauces"}], "title": "X"}, "Sauces"),
        ({"catInfo": {"catId": "1", "name": "Food"}, "title": "Condiments"}, "Condiments"),
        ({"catInfo": {"catId": "1_2", "name": "Sauces"}, "title": "X"}, "Sauces"),
        ({"requestContext": {"categories": {"id": "1", "name": "Food"}}, "title": "Condiments"}, "Condiments"),
        ({"requestContext": {"categories": {"id": "1_2", "name": "Sauces"}}}, "Sauces"),
        ({"breadCrumb": [{"name": "Food"}]}, ""),
    ],
)
def test_re_6_a_name_needs_the_categorys_id(parts: dict[str, Any], name: str) -> None:
    assert read(html({"searchResult": {**LISTING, **parts}}), cat_id="1_2")["category_name"] == name


# RE-8: searches, payloads that are only a list of rows, availability statuses


def test_re_8_a_search_has_no_category_name() -> None:
    site = Site(1, light=True)
    body = site.page(FakeRequest("/search", {"q": "mustard"}))[2].decode()
    found = read(body, search=True, query="mustard")
    assert (found["cat_id"], found["category_name"], found["query"]) == ("0", "", "mustard")


def test_re_8_a_listing_that_does_not_state_its_pages_may_have_more() -> None:
    listing = {**LISTING, "paginationV2": {**LISTING["paginationV2"], "maxPage": None}}
    assert read(html({"searchResult": listing}), warns=True)["has_more"] is True


@pytest.mark.parametrize(
    ("status", "in_stock"), [("IN_STOCK", True), ("OUT_OF_STOCK", False), ("PRE_ORDER", None), ("UNKNOWN", None)]
)
def test_re_8_the_stock_of_other_statuses_is_unknown(status: str, in_stock: bool | None) -> None:  # noqa: FBT001
    assert row(availabilityStatusV2={"value": status, "display": None})["availability"]["in_stock"] is in_stock
    assert "PRE_ORDER" in description(Availability, "in_stock")
    assert "default store" in (Price.__doc__ or "")


# Rows and grids of unknown types


def test_a_grid_without_rows_costs_the_grid_and_a_warning() -> None:
    listing = copy.deepcopy(LISTING)
    listing["itemStacks"].append({"meta": GRID, "rows": []})
    page = page_of(html({"searchResult": listing}))
    assert page.returned == 3
    (unread,) = page.unread
    assert unread.path.endswith(".itemStacks[].items[]")
    assert (unread.cause, unread.rows, unread.of, unread.loses_rows) == ("missing", 1, 2, True)


# Pages in other languages

WORDS = {
    "de": {
        "In stock": "Auf Lager",
        "Out of stock": "Nicht vorrätig",
        "Results for": "Ergebnisse für",
        "Now ": "Jetzt ",
    },
    "fr": {"In stock": "En stock", "Out of stock": "Épuisé", "Results for": "Résultats pour", "Now ": "Maintenant "},
    "es": {"In stock": "Disponible", "Out of stock": "Agotado", "Results for": "Resultados de", "Now ": "Ahora "},
    "pt": {"In stock": "Em estoque", "Out of stock": "Esgotado", "Results for": "Resultados para", "Now ": "Agora "},
}


def translated(value: Any, words: dict[str, str]) -> Any:
    text = orjson.dumps(value).decode()
    for word, other in words.items():
        text = text.replace(word, other)
    return orjson.loads(text.replace("Options from", "From").replace("More options from", "From"))


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("page", [1, 2])
def test_pages_in_other_languages_lose_and_invent_nothing(language: str, page: int) -> None:
    site, words = Site(1), WORDS[language]
    body = site.page(FakeRequest("/browse/976759", {"page": str(page)}))[2].decode()
    start = body.index(">", body.index('<script id="__NEXT_DATA__"')) + 1
    end = body.index("</script>", start)
    block = orjson.dumps(translated(orjson.loads(body[start:end]), words)).decode()
    changed = (body[:start] + block.replace("</", "<\\/") + body[end:]).replace('lang="en-US"', f'lang="{language}-US"')
    found = asyncio.run((shown := page_of(changed, cat_id="976759", page=page)).to_item())
    assert {(each.path.rpartition(".")[2], each.names) for each in shown.unread} <= {
        ("…unknown", (words["Now "][:-1],))
    }
    assert found == translated(site.expected_record({"cat_id": "976759", "page": page}), words)
    assert words["In stock"] in changed
