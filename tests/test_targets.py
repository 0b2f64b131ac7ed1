"""Target sources: what a line, a cell or an argument becomes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crawler.outcomes import Outcome
from crawler.registry import scrapers, spiders
from crawler.targets import Admission, ArgumentSource, FileSource, QueueSource, Rejected, Target, TargetSource

RETAIL = Admission(spiders()["retail"].scrapers)


def collect(source: TargetSource) -> list[Target | Rejected]:
    async def take() -> list[Target | Rejected]:
        return [target async for target in source]

    return asyncio.run(take())


def params(target: Target | Rejected) -> dict[str, Any]:
    assert isinstance(target, Target)
    return target.params.model_dump(exclude_none=True, exclude_defaults=True)


@pytest.mark.parametrize(
    ("raw", "scraper"),
    [
        ({"cat_id": "3944"}, "retail-category-v4"),
        ({"url": "https://www.walmart.com/browse/food/976759"}, "retail-category-v4"),
        ({"query": "mustard"}, "retail-search-v4"),
        ({"scraper": "retail-search-v4", "query": "mustard"}, "retail-search-v4"),
    ],
)
def test_the_scraper_is_the_one_whose_params_fit(raw: dict[str, Any], scraper: str) -> None:
    target = RETAIL.admit(raw)
    assert isinstance(target, Target), target
    assert target.scraper.name == scraper


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ({}, "INVALID_REQUEST"),
        ({"cat_id": "3944", "query": "mustard"}, "INVALID_REQUEST"),
        ({"page": 2}, "INVALID_REQUEST"),
        ({"cat_id": "food"}, "INVALID_REQUEST"),
        ({"cat_id": "3944", "page": "2"}, "INVALID_REQUEST"),
        ({"cat_id": 3944}, "INVALID_REQUEST"),
        ({"cat_id": "3944", "colour": "red"}, "INVALID_REQUEST"),
        ({"scraper": "retail-nothing-v4", "cat_id": "3944"}, "SCRAPER_NOT_FOUND"),
        ({"scraper": 4, "cat_id": "3944"}, "INVALID_REQUEST"),
    ],
)
def test_what_fits_no_scraper_is_rejected(raw: dict[str, Any], code: str) -> None:
    target = RETAIL.admit(raw)
    assert isinstance(target, Rejected), target
    assert target.error.code == code


def test_text_is_converted_for_arguments() -> None:
    (target,) = collect(ArgumentSource(RETAIL, {"cat_id": "3944", "page": "2", "min_price": "1.50"}))
    assert params(target) == {"cat_id": "3944", "page": 2, "min_price": 1.5}
    assert isinstance(target, Target)
    assert not target.batch


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "targets.jsonl"
    file.write_bytes(
        b'{"id": "a", "cat_id": "3944", "page": 2}\n'
        b"\n"
        b"{broken\n"
        b"[1, 2]\n"
        b'{"cat_id": "3944", "page": "two"}\n'
        b"\xff\xfe\n"
        b'{"scraper": "retail-search-v4", "query": "mus\xc3\xa9e"}\n'
    )
    found = collect(FileSource(RETAIL, file))
    assert [(target.line, isinstance(target, Target)) for target in found] == [
        (1, True),
        (3, False),
        (4, False),
        (5, False),
        (6, False),
        (7, True),
    ]
    assert found[0].id == "a"
    assert params(found[0]) == {"cat_id": "3944", "page": 2}
    assert all(target.batch for target in found if isinstance(target, Target))
    broken = found[1]
    assert isinstance(broken, Rejected)
    assert broken.raw == "{broken"
    assert "Line 3" in broken.error.message


def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "targets.csv"
    file.write_text(
        "id,scraper,cat_id,query,page\na,,3944,,2\nb,retail-search-v4,,mustard,\nc,,3944\nd,,3944,,2,extra\ne,,3944,,two\n",
        encoding="utf-8-sig",
    )
    found = collect(FileSource(RETAIL, file))
    assert [(target.line, isinstance(target, Target)) for target in found] == [
        (2, True),
        (3, True),
        (4, False),
        (5, False),
        (6, False),
    ]
    assert params(found[0]) == {"cat_id": "3944", "page": 2}
    assert params(found[1]) == {"query": "mustard"}


def target(number: int) -> Target:
    scraper = scrapers()["retail-search-v4"]
    return Target(str(number), scraper, scraper.params.model_validate({"query": "mustard"}))


def test_the_queue_ends_when_closed_and_gives_what_was_put_before() -> None:
    async def scenario() -> list[str]:
        source = QueueSource(on_outcome=print)
        taken: list[str] = []

        async def take() -> None:
            taken.extend([each.id async for each in source])

        task = asyncio.ensure_future(take())
        source.put(target(1))
        source.put(target(2))
        source.put(target(3))
        assert source.discard("2")
        await asyncio.sleep(0)
        source.put(target(4))
        assert not source.discard("1"), "the spider has it"
        source.close()
        with pytest.raises(RuntimeError):
            source.put(target(5))
        await task
        return taken

    assert asyncio.run(scenario()) == ["1", "3", "4"]


def test_a_renewed_queue_goes_on_where_it_was() -> None:
    async def scenario() -> list[list[str]]:
        source = QueueSource(on_outcome=print)
        taken: list[list[str]] = []
        for number in range(3):
            source.put(target(number))
        for _ in range(2):
            taken.append([])
            async for each in source:
                taken[-1].append(each.id)
                source.renew()
        source.close()
        taken.append([each.id async for each in source])
        return taken

    assert asyncio.run(scenario()) == [["0"], ["1"], ["2"]]


def test_the_queue_forwards_outcomes() -> None:
    heard: list[Outcome] = []
    source = QueueSource(on_outcome=heard.append)
    outcome = Outcome(target(1), {}, None, 5)
    source.settled(outcome)
    assert heard == [outcome]
