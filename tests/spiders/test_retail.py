"""``scrapy crawl retail`` end to end: a real process that crawls the sandbox that it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.sandbox.retail.site import FAULTS, Site
from tests.crawls import crawl


def fault_id(name: str) -> str:
    return next(cat_id for cat_id, fault in Site().faults.items() if fault == name)


def test_one_target(tmp_path: Path) -> None:
    code, out, failures, log = crawl(tmp_path, "-a", "cat_id=976759")
    assert (code, failures) == (0, []), log
    assert out == [Site().expected_record({"scraper": "retail-category-v4", "cat_id": "976759"})]
    assert "OK=1" in log


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-a", "cat_id=food"], "INVALID_REQUEST"),
        (["-a", "cat_id=976759", "-a", "page=zero"], "INVALID_REQUEST"),
        (["-a", "url=https://example.com/browse/976759"], "INVALID_REQUEST"),
        (["-a", "scraper=nothing", "-a", "cat_id=976759"], "SCRAPER_NOT_FOUND"),
        ([], "INVALID_REQUEST"),
    ],
)
def test_invalid_arguments_give_a_failed_target(tmp_path: Path, arguments: list[str], code: str) -> None:
    status, out, failures, log = crawl(tmp_path, *arguments)
    assert (status, out) == (4, []), log
    (failure,) = failures
    assert failure["code"] == code
    assert not failure["retryable"]


def test_a_missing_targets_file_fails_the_run(tmp_path: Path) -> None:
    status, _, _, log = crawl(tmp_path, "-a", "targets=/nowhere/targets.jsonl")
    assert status == 1
    assert "no such targets file" in log


def test_pages_are_followed(tmp_path: Path) -> None:
    big = Site().big_category
    status, out, _, log = crawl(tmp_path, "-a", f"cat_id={big}", "-a", "max_pages=3")
    assert status == 0, log
    assert [page["page"] for page in out] == [1, 2, 3]
    assert out == [
        Site().expected_record({"scraper": "retail-category-v4", "cat_id": big, "page": page}) for page in (1, 2, 3)
    ]


def test_plain_paging_stops_at_the_ceiling(tmp_path: Path) -> None:
    status, out, _, log = crawl(tmp_path, "-a", f"cat_id={Site().big_category}", "-a", "max_pages=25")
    assert status == 0, log
    rows = {page["page"]: page["returned"] for page in out}
    assert (rows[5], rows[10], rows[11]) == (49, 36, 12)
    assert sum(rows.values()) < 520
    assert out[-1]["products"] == [] or not out[-1]["has_more"]


@pytest.mark.parametrize("size", [150, pytest.param(2_000, marks=pytest.mark.soak)])
def test_every_line_of_a_mixed_file_has_one_outcome(tmp_path: Path, size: int) -> None:
    names = sorted(FAULTS)
    lines: list[str] = []
    expected: dict[str, str] = {}
    for number in range(size):
        name = names[number // 3 % len(names)]
        if number % 3 == 0:
            lines.append(json.dumps({"id": str(number), "cat_id": fault_id(name)}))
            expected[str(number)] = FAULTS[name].code
        else:
            lines.append(json.dumps({"id": str(number), "cat_id": "976759", "page": number % 2 + 1}))
            expected[str(number)] = "OK"
    lines.insert(10, "{broken")
    targets = tmp_path / "targets.jsonl"
    targets.write_text("\n".join(lines))
    status, out, failures, log = crawl(tmp_path, "-a", f"targets={targets}")
    assert status == 4, log
    malformed = [failure for failure in failures if failure["line"] == 11]
    assert [(failure["params"], failure["code"]) for failure in malformed] == [("{broken", "INVALID_REQUEST")]
    found = {line["id"]: "OK" for line in out} | {line["id"]: line["code"] for line in failures if line["line"] != 11}
    assert len(out) + len(failures) == size + 1
    assert {target: code for target, code in found.items() if expected[target] != code} == {}
    assert set(out[0]) == {"id", "scraper", "params", "fetched_at", "warnings", "data"}


@pytest.mark.soak
def test_exhaustive_finds_what_plain_paging_cannot(tmp_path: Path) -> None:
    site = Site()
    big = site.big_category
    status, out, failures, log = crawl(tmp_path, "-a", f"cat_id={big}", "-a", "exhaustive=true")
    assert (status, failures) == (0, []), log
    ids = [product["item_id"] for page in out for product in page["products"]]
    assert len(ids) == len(set(ids)), "each product once"
    priced, unpriced = site.products_of(big)
    assert len(priced & set(ids)) >= 0.99 * len(priced)
    assert len(unpriced & set(ids)) >= 0.90 * len(unpriced)
    assert "exhaustive_done" in log
