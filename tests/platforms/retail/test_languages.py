"""Retail pages in other languages: the same listings, with other words."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.platforms.retail.pages import ListingPage
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site

WORDS = {
    "fr": {"In stock": "En stock", "Out of stock": "Épuisé", "Results for": "Résultats pour", "Now ": "Maintenant "},
    "es": {"In stock": "Disponible", "Out of stock": "Agotado", "Results for": "Resultados de", "Now ": "Ahora "},
}


def translated(value: Any, words: dict[str, str]) -> Any:
    """Replace the interface words in a page's data or a record with those of another language."""
    text = orjson.dumps(value).decode()
    for word, other in words.items():
        text = text.replace(word, other)
    return orjson.loads(text.replace("Options from", "From").replace("More options from", "From"))


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("number", [1, 2])
def test_pages_in_other_languages_lose_and_invent_nothing(language: str, number: int) -> None:
    site, words = Site(1), WORDS[language]
    body = site.page(FakeRequest("/browse/976759", {"page": str(number)}))[2].decode()
    start = body.index(">", body.index('<script id="__NEXT_DATA__"')) + 1
    end = body.index("</script>", start)
    block = orjson.dumps(translated(orjson.loads(body[start:end]), words)).decode()
    changed = (body[:start] + block.replace("</", "<\\/") + body[end:]).replace('lang="en-US"', f'lang="{language}-US"')
    response = HttpResponse("https://www.walmart.com/browse/976759", changed.encode())
    page = ListingPage(response=response, page_params=PageParams({"cat_id": "976759", "page": number}))
    found = asyncio.run(page.to_item())
    assert {(each.path.rpartition(".")[2], each.names) for each in page.unread} <= {("…unknown", (words["Now "][:-1],))}
    assert found == translated(site.expected_record({"cat_id": "976759", "page": number}), words)
    assert words["In stock"] in changed
