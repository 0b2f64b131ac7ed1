"""The page objects of the short-video search: expected records, typed errors, and damaged data."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.browser.sessions import CapturedResponse
from crawler.pipelines import validated
from crawler.platforms.shortvideo.schema import PhotoSearch, PhotoSearchParams
from crawler.sandbox.shortvideo.site import PAGE_SIZE, Site
from crawler.spiders.shortvideo import SearchSession

URL = "https://www.tiktok.com/api/search/photo/full/?keyword=whales"


def session_data(site: Site, words: str, **params: Any) -> dict[str, Any] | None:
    """Return the data of a browser session that receives the site's responses one after the other."""

    async def run() -> dict[str, Any] | None:
        session = SearchSession(PhotoSearchParams(keywords=words, **params), quiet=1, pause=0)
        offset = 0
        while True:
            answer = site.answer(words, offset)
            offset = answer["cursor"]
            if await session.take(CapturedResponse(URL, 200, {}, orjson.dumps(answer))):
                return session.data()

    return asyncio.run(run())


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(5, 200))])
@pytest.mark.parametrize("words", ["whales", "long list"])
def test_sites_of_all_seeds_give_the_expected_records(seed: int, words: str) -> None:
    site = Site(seed)
    for cursor, count in (("0", 30), ("7", 11), ("25", 30), ("990", 30)):
        data = session_data(site, words, cursor=cursor, count=count)
        assert data is not None
        assert validated(PhotoSearch, data) == site.expected_record(
            {"keywords": words, "cursor": cursor, "count": count}
        )


@pytest.mark.parametrize(
    "count", [pytest.param(1, marks=pytest.mark.soak), 7, pytest.param(12, marks=pytest.mark.soak), 30]
)
@pytest.mark.parametrize("words", ["whales", "long list"])
def test_cursors_return_each_row_once(words: str, count: int) -> None:
    site = Site(3)
    rows: list[str] = []
    cursor, more = "0", True
    while more:
        data = session_data(site, words, cursor=cursor, count=count)
        assert data is not None
        assert len(data["search_item_list"]) <= count
        rows += [row["aweme_id"] for row in data["search_item_list"]]
        cursor, more = data["cursor"], data["has_more"]
    assert rows == [p.id for p in site.posts(words) if p.kind == "photo" and not p.hidden]
    assert len(rows) == len(set(rows)) > 2 * PAGE_SIZE
