"""``scrapy crawl retail`` end to end, in a real process that also runs the sandbox."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawler.platforms.retail.plan import Fact, Page, Row, Slice, Step
from crawler.sandbox.retail.site import FAULTS, Site
from crawler.spiders.retail import RetailSpider
from tests.crawls import crawl


def fault_id(name: str) -> str:
    return next(cat_id for cat_id, fault in Site().faults.items() if fault == name)


def test_one_target(tmp_path: Path) -> None:
    code, out, failures, log = crawl(tmp_path, "-a", "cat_id=976759")
    assert (code, failures) == (0, []), log
    assert out == [Site().expected_record({"scraper": "retail-category-v4", "cat_id": "976759"})]
    assert "OK=1" in log


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-a", "cat_id=food"], "cat_id: a category's id is a number"),
        (["-a", "cat_id=976759", "-a", "page=zero"], "page: Input should be a valid integer"),
        (["-a", "url=https://example.com/browse/976759"], "url: "),
        (["-a", "targets=/nowhere/targets.jsonl"], "no such targets file: /nowhere/targets.jsonl."),
        (["-a", "scraper=nothing", "-a", "cat_id=976759"], "Unknown scraper 'nothing'"),
        ([], "The crawl has no target: give targets=FILE, or the params of one of retail-category-v4: "),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    status, out, failures, log = crawl(tmp_path, *arguments)
    assert (status, out, failures) == (2, [], []), log
    assert message in log
    assert log.count("\n") == 1


def test_pages_are_followed(tmp_path: Path) -> None:
    big = Site().big_category
    status, out, _, log = crawl(tmp_path, "-a", f"cat_id={big}", "-a", "max_pages=3")
    assert status == 0, log
    assert [page["page"] for page in out] == [1, 2, 3]
    assert out == [
        Site().expected_record({"scraper": "retail-category-v4", "cat_id": big, "page": page}) for page in (1, 2, 3)
    ]


@pytest.mark.parametrize("size", [150, pytest.param(2_000, marks=pytest.mark.soak)])
def test_every_line_of_a_mixed_file_has_one_outcome(tmp_path: Path, size: int) -> None:
    names = sorted(FAULTS.keys() - {"hang"})  # it would end by the timeout that others need on a busy machine
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
    assert set(out[0]) == {"id", "scraper", "params", "fetched_at", "warnings", "note", "data"}


def products_of(lines: list[Any]) -> list[str]:
    """Return the item ids in the lines of an exhaustive crawl, and check that each occurs once."""
    ids = [product["item_id"] for line in lines for product in line["data"]["products"]]
    assert len(ids) == len(set(ids)), "each product once"
    return ids


def test_each_line_names_its_target_and_slice(tmp_path: Path) -> None:
    targets = tmp_path / "targets.jsonl"
    targets.write_text('{"id": "big", "cat_id": "4044_28309"}\n{"id": "small", "cat_id": "976759_6837314_30279539"}\n')
    status, out, failures, log = crawl(tmp_path, "-a", f"targets={targets}", "-a", "exhaustive=true")
    assert (status, failures) == (0, []), log
    assert {line["root"] for line in out} == {"big", "small"}
    assert all(line["data"]["products"] for line in out), "slices without new products have no line"
    assert all(line["data"]["cat_id"] == line["params"]["cat_id"] for line in out)
    priced, unpriced = Site().products_of("4044_28309")
    assert set(products_of([line for line in out if line["root"] == "big"])) == priced | unpriced


def test_a_category_without_the_products_of_a_dropped_record_is_incomplete(tmp_path: Path) -> None:
    pipelines = json.dumps({"tests.own_components.LosesSecondPages": 500})
    arguments = ("-a", "cat_id=4044_28309", "-a", "exhaustive=true", "-s", f"ITEM_PIPELINES={pipelines}")
    status, out, failures, log = crawl(tmp_path, *arguments)
    assert status == 4, log
    *dropped, category = failures
    assert {failure["code"] for failure in dropped} == {"ITEM_DROPPED"}
    collected, expected = len(products_of(out)), sum(map(len, Site().products_of("4044_28309")))
    found = f"{collected:,} of {expected:,} collected (fewer_than_stated)"
    assert category["message"] == f"The category is incomplete: {found}."
    assert 0 < collected < expected


@pytest.mark.parametrize("explode", [[], ["-a", "explode=products"]], ids=["pages", "products"])
def test_rows_of_a_table_name_their_target(tmp_path: Path, explode: list[str]) -> None:
    arguments = ("-a", "cat_id=976759_6837314_30279539", "-a", "exhaustive=true", *explode)
    status, out, _, log = crawl(tmp_path, *arguments, "-O", str(tmp_path / "out.csv"))
    assert status == 0, log
    with (tmp_path / "out.csv").open(newline="") as file:
        before = csv.field_size_limit(10_000_000)
        table = list(csv.DictReader(file))
        csv.field_size_limit(before)
    assert list(table[0])[:3] == ["target_id", "root", "scraper"]
    key = "target_id" if explode else "id"
    assert [(row["target_id"], row["root"]) for row in table] == [(line[key], line["root"]) for line in out]


def test_max_requests_is_a_partial_outcome(tmp_path: Path) -> None:
    arguments = ("-a", f"cat_id={Site().big_category}", "-a", "exhaustive=true", "-a", "max_requests=3")
    status, out, failures, log = crawl(tmp_path, *arguments)
    assert status == 4, log
    message = f"max_requests=3 reached: {len(products_of(out))} of about 6,446 products found."
    (failure,) = failures
    assert (failure["code"], failure["message"]) == ("BLOCKED_BY_POLICY", message)
    assert failure["params"]["cat_id"] == Site().big_category
    assert {line["root"] for line in [*out, failure]} == {out[0]["id"]}
    assert message in log


@pytest.mark.soak
@pytest.mark.parametrize(("cat_id", "most"), [("4044", 158), ("880001", 488), ("880002", 600)])
def test_exhaustive_finds_what_plain_paging_cannot(tmp_path: Path, cat_id: str, most: int) -> None:
    arguments = ("-a", f"cat_id={cat_id}", "-a", "exhaustive=true")
    status, out, failures, log = crawl(tmp_path, *arguments)
    assert (status, failures) == (0, []), log
    found = set(products_of(out))
    priced, unpriced = Site().products_of(cat_id)
    assert found == priced | unpriced
    (requests,) = re.findall(r"exhaustive_done .* requests=(\d+)", log)
    assert int(requests) <= most


@pytest.mark.soak
@pytest.mark.parametrize(
    ("cat_id", "least", "of", "reasons"),
    [
        ("880003", 19_200, "20,000", "no_price"),
        ("880004", 6_446, "6,639", "fewer_than_stated"),
        ("880005", 6_446, "6,253", "more_than_stated"),
        ("880006", 1_900, "3,000", "ceiling, filter_ignored"),
    ],
)
def test_an_incomplete_category_states_both_numbers_and_why(
    tmp_path: Path, cat_id: str, least: int, of: str, reasons: str
) -> None:
    arguments = ("-a", f"cat_id={cat_id}", "-a", "exhaustive=true")
    status, out, failures, log = crawl(tmp_path, *arguments)
    found = products_of(out)
    (failure,) = failures
    assert status == 4, log
    lacks = "may be" if reasons == "more_than_stated" else "is"
    assert failure["message"] == f"The category {lacks} incomplete: {len(found):,} of {of} collected ({reasons})."
    assert len(found) >= least


def test_the_products_of_a_page_without_a_record_are_collected_after_a_restart() -> None:
    spider = RetailSpider(cat_id="976759", exhaustive="true")
    spider.settings = Settings({"LISTING_CEILING": 400})
    steps = [Step(Slice("976759"), number) for number in (1, 2, 3)]
    pages = [Page([Row(f"{step.page}", 100)], has_more=True, total=3) for step in steps]
    notes = [
        Fact(step=step, page=page, ids=[page.rows[0].item_id]).model_dump(mode="json")
        for step, page in zip(steps, pages, strict=True)
    ]
    pending = spider.restore("a", list(zip(("OK", "EXTRACTION_FAILED", "OK"), notes, strict=True)), [])
    assert pending
    assert "2 of 3 collected" in spider.status_lines[0]
