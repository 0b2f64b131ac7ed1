"""The outputs of real crawls in each format, read back with the usual tools."""

from __future__ import annotations

import asyncio
import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import openpyxl
import pytest
from scrapy.extensions.feedexport import ItemFilter
from scrapy.utils.test import get_crawler

from crawler.outputs.feed_files import repair_last_line
from crawler.outputs.feeds import Feeds
from crawler.spiders.retail import RetailSpider
from crawler.targets.target import FAILURE_KEYS
from tests.crawls import lines
from tests.http_server import Handler, served
from tests.shop import Shop, open_shop


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


@pytest.fixture(scope="module")
def pages(shop: Shop) -> list[dict[str, Any]]:
    """The expected records of the crawled pages."""
    return [shop.site.expected_record({"cat_id": "976759", "page": page}) for page in range(1, 6)]


FIVE = ("-a", "cat_id=976759", "-a", "max_pages=5")
TARGETS = "id,cat_id,page,sku,shop\na,976759,,A-1,=1+1\nb,1_2_3,,B-2,\nc,976759,2,,\nd,976759,,D-4,\n"
FIELDS = ["target_id", "position", "item_id", "price.current_price", "params.cat_id"]
FAILURES = {"item_classes": ["crawler.outputs.feed_files.Failure"]}


class Everything(ItemFilter):
    """A user's filter that accepts all items."""

    def accepts(self, item: Any) -> bool:
        return True


def crawled(shop: Shop, folder: Path, feeds: dict[str, dict[str, Any]], *arguments: str) -> None:
    """Crawl the targets, of which one is not found, and one is that of an earlier row."""
    (folder / "targets.csv").write_text(TARGETS)
    located = {str(folder / name): {"format": name.partition(".")[2], **options} for name, options in feeds.items()}
    settings = {"FEEDS": json.dumps(located), "FAILURES_FEED": folder / "failed-%(name)s.jsonl"}
    run = shop.crawl("-a", f"targets={folder / 'targets.csv'}", *arguments, TARGETS_IN_FLIGHT=1, **settings)
    assert run.returncode == 4, run.stderr


@pytest.fixture(scope="module")
def whole(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The feeds of one crawl with whole records."""
    folder = tmp_path_factory.mktemp("whole")
    batches = {"part%(batch_id)d.jsonl.gz": {"batch_item_count": 2, "format": "jsonlines"}}
    filtered = {"filtered.jsonl": {"item_filter": "tests.outputs.test_feeds.Everything"}}
    tables = {"out.csv": {}, "out.xlsx": {}, "failed.csv": FAILURES, "failed.xlsx": FAILURES}
    crawled(shop, folder, {"out.jsonl": {}} | tables | batches | filtered)
    return folder


@pytest.fixture(scope="module")
def rows(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The feeds of one crawl with some fields of each product."""
    folder = tmp_path_factory.mktemp("rows")
    chosen = ("-a", "explode=products", "-a", f"fields={','.join(FIELDS)}")
    crawled(shop, folder, {"out.jsonl": {}, "out.csv": {}, "out.xlsx": {}}, *chosen)
    return folder


def read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def read_xlsx(path: Path) -> list[list[Any]]:
    return [[cell.value for cell in row] for row in openpyxl.load_workbook(path)["records"].rows]


def test_records_have_the_columns_of_their_rows_and_are_in_batches(whole: Path, pages: list[dict[str, Any]]) -> None:
    found = lines(whole / "out.jsonl")
    assert [(each["id"], each.get("columns")) for each in found] == [
        ("a", {"sku": "A-1", "shop": "=1+1"}),
        ("d", {"sku": "D-4"}),
        ("c", None),
    ]
    assert [each["data"] for each in found] == [pages[0], pages[0], pages[1]]
    assert list(found[0]) == ["id", "scraper", "params", "columns", "fetched_at", "warnings", "note", "data"]
    parts = [[*map(json.loads, gzip.decompress(p.read_bytes()).splitlines())] for p in sorted(whole.glob("part*"))]
    assert parts == [found[:2], found[2:]]


def test_failures_reach_the_feeds_that_name_them(whole: Path) -> None:
    assert lines(whole / "filtered.jsonl") == lines(whole / "out.jsonl")
    (failed,) = lines(whole / "failed-retail.jsonl")
    assert (failed["id"], failed["code"], failed["line"]) == ("b", "TARGET_NOT_FOUND", 3)
    assert failed["columns"] == {"sku": "B-2"}
    for header, row in (read_csv(whole / "failed.csv"), read_xlsx(whole / "failed.xlsx")):
        assert header == [*FAILURE_KEYS[:4], "columns.sku", "columns.shop", *FAILURE_KEYS[4:]]
        found = dict(zip(header, row, strict=True))
        assert (found["id"], found["code"], found["columns.sku"]) == ("b", "TARGET_NOT_FOUND", "B-2")
        assert json.loads(found["params"]) == failed["params"]


def test_the_own_columns_of_targets_are_in_tables(whole: Path) -> None:
    own: list[list[Any]] = [
        ["target_id", "columns.sku", "columns.shop"],
        ["a", "A-1", "=1+1"],
        ["d", "D-4", None],
        ["c", None, None],
    ]
    tables: list[tuple[list[list[Any]], str]] = [
        (read_xlsx(whole / "out.xlsx"), ""),
        (read_csv(whole / "out.csv"), "'"),
    ]
    for (header, *found), escape in tables:
        shown = [[row[header.index(name)] or None for name in own[0]] for row in found]
        assert shown == [[*own[1][:2], f"{escape}=1+1"], *own[2:]]


def test_rows_have_the_same_fields_in_each_format(rows: Path, pages: list[dict[str, Any]]) -> None:
    """``price.current_price`` is a column of a table, and an object in JSON."""
    expected = [
        [target, position, each["item_id"], each["price"]["current_price"], "976759"]
        for target, page in (("a", 0), ("d", 0), ("c", 1))
        for position, each in enumerate(pages[page]["products"])
    ]
    assert [list(each.values()) for each in lines(rows / "out.jsonl")] == [
        [*row[:3], {"current_price": row[3]}, {"cat_id": row[4]}] for row in expected
    ]
    assert read_xlsx(rows / "out.xlsx") == [FIELDS, *expected]
    assert read_csv(rows / "out.csv") == [
        FIELDS,
        *(["" if cell is None else str(cell) for cell in e] for e in expected),
    ]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (["-o", "existing.xlsx"], "nothing can be added to the Excel file"),
        (["-O", "/dev/full:jsonl"], "No space left"),
        (["-O", "/dev/full:xlsx"], "No space left"),
    ],
    ids=["append", "full", "full workbook"],
)
def test_a_feed_that_cannot_be_written_ends_the_run(
    shop: Shop, tmp_path: Path, output: list[str], message: str
) -> None:
    existing = tmp_path / "existing.xlsx"
    existing.write_bytes(b"kept")
    run = shop.crawl(*FIVE, *(str(existing) if part == existing.name else part for part in output))
    assert run.returncode == 1, run.stderr
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert existing.read_bytes() == b"kept"


def test_items_without_a_target_are_written_until_writing_has_failed(tmp_path: Path) -> None:
    feed = tmp_path / "out.jsonl"
    crawler = get_crawler(settings_dict={"FEEDS": {str(feed): {"format": "jsonlines"}}})
    crawler.spider = spider = Mock(RetailSpider, row_path=None, selection=None)
    feeds = Feeds.from_crawler(crawler)
    feeds.open_spider(spider)
    feeds.item_scraped({"page": 1}, spider)
    assert lines(feed) == [{"page": 1}], "a process that is killed has written it"
    feeds.failed = True
    feeds.item_scraped({"page": 2}, spider)
    asyncio.run(feeds.close_spider(spider))
    assert lines(feed) == [{"page": 1}]


@pytest.mark.parametrize("argument", ["targets=typo.jsonl", "cat_idd=976759", "resume=state"])
def test_a_refused_run_does_not_change_the_last_output(shop: Shop, tmp_path: Path, argument: str) -> None:
    keep = tmp_path / "keep.jsonl"
    keep.write_text("x\n")
    run = shop.crawl("-a", argument, "-O", str(keep), FAILURES_FEED=tmp_path / "failed")
    assert run.returncode == 2, run.stderr
    assert keep.read_text() == "x\n"
    assert not (tmp_path / "failed").exists()
    assert run.stderr.count("\n") == 1, "wrong use is explained in one sentence"


def test_a_run_of_only_invalid_lines_does_not_change_the_last_output(shop: Shop, tmp_path: Path) -> None:
    keep, targets = tmp_path / "keep.jsonl", tmp_path / "targets.jsonl"
    keep.write_text("x\n")
    targets.write_text('{"cat_id": "?"}\n')
    run = shop.crawl("-a", f"targets={targets}", "-O", str(keep), FAILURES_FEED=tmp_path / "failed.jsonl")
    assert run.returncode == 4, run.stderr
    assert (keep.read_text(), len(lines(tmp_path / "failed.jsonl"))) == ("x\n", 1)


@pytest.mark.parametrize(
    ("tail", "repaired"),
    [(b'{"a": 2}', b'{"a": 1}\n{"a": 2}\n'), (b'{"a": 2, "b', b'{"a": 1}\n'), (b"\0" * 9, b'{"a": 1}\n')],
    ids=["whole", "torn", "zeros"],
)
def test_appended_lines_start_on_a_new_line(
    shop: Shop, pages: list[dict[str, Any]], tmp_path: Path, tail: bytes, repaired: bytes
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(b'{"a": 1}\n' + tail)
    run = shop.crawl("-a", "cat_id=976759", "-o", str(out))
    assert run.returncode == 0, run.stderr
    assert out.read_bytes().startswith(repaired)
    assert lines(out) == [json.loads(line) for line in repaired.splitlines()] + pages[:1]
    assert ("torn_line_truncated" in run.stderr) == (not repaired.startswith(b'{"a": 1}\n' + tail))


def test_an_empty_or_missing_file_needs_no_repair(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("empty", "missing"):
        repair_last_line(tmp_path / name)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("empty", b"")]


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("mine, without a line break", "mine, without a line break\n"),  # text that is not a record is not truncated
        ('\n{"a": 1, "b', "\n"),
    ],
)
def test_only_a_torn_record_is_truncated(tmp_path: Path, text: str, repaired: str) -> None:
    notes = tmp_path / "notes"
    notes.write_text(text)
    repair_last_line(notes)
    assert notes.read_text() == repaired


def test_a_run_without_data_writes_an_empty_table(shop: Shop, tmp_path: Path) -> None:
    run = shop.crawl("-a", "cat_id=1_2_3", "-O", f"{tmp_path}/out.csv")
    assert run.returncode == 4
    with (tmp_path / "out.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert "heading" in header
    assert rows == []


def test_each_batch_is_uploaded_to_an_object_store(shop: Shop, pages: list[dict[str, Any]]) -> None:
    stored: dict[str, bytes] = {}

    class Bucket(Handler):
        """The part of S3 that stores an object."""

        def do_PUT(self) -> None:  # noqa: N802  # http.server's name
            if "chunked" in self.headers.get("Content-Encoding", ""):
                body = b""
                while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
            else:
                body = self.rfile.read(int(self.headers["Content-Length"]))
            stored[self.path] = body
            self.answer(headers={"ETag": '"0"'})

    with served(Bucket) as origin:
        run = shop.crawl(
            *FIVE,
            *("-O", "s3://bucket/retail/%(batch_id)03d.jsonl.gz"),
            FEED_EXPORT_BATCH_ITEM_COUNT=3,
            AWS_ENDPOINT_URL=origin,
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY="secret",
        )
    assert run.returncode == 0, run.stderr
    found = {path: [json.loads(line) for line in gzip.decompress(body).splitlines()] for path, body in stored.items()}
    assert found == {"/bucket/retail/001.jsonl.gz": pages[:3], "/bucket/retail/002.jsonl.gz": pages[3:]}


def test_a_failed_upload_fails_the_run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    run = shop.crawl(
        *("-a", "cat_id=976759", "-O", "s3://bucket/out.jsonl"),
        AWS_ENDPOINT_URL="http://127.0.0.1:9",
        AWS_ACCESS_KEY_ID="key",
        AWS_SECRET_ACCESS_KEY="secret",
    )
    assert run.returncode == 1, run.stderr
    assert "Error storing" in run.stderr
