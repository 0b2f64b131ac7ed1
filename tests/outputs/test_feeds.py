"""The outputs of real crawls in each format, read back with the usual tools."""

from __future__ import annotations

import csv
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from scrapy.extensions.feedexport import ItemFilter

from crawler.outputs.columns import column_type_of_models, find_row_path
from crawler.outputs.feed_files import repair_last_line
from crawler.registry import scrapers
from tests.shop import Shop, open_shop

CATEGORY = scrapers()["retail-category-v4"]
PRODUCTS = find_row_path(column_type_of_models([CATEGORY.data]), "products")


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


@pytest.fixture(scope="module")
def pages(shop: Shop) -> list[dict[str, Any]]:
    """The expected records of the crawled pages."""
    return [shop.site.expected_record({"cat_id": "976759", "page": page}) for page in range(1, 6)]


FIVE = ("-a", "cat_id=976759", "-a", "max_pages=5")


def lines(path: Path) -> list[Any]:
    body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in body.splitlines()]


def test_gzip_in_batches(shop: Shop, pages: list[dict[str, Any]], tmp_path: Path) -> None:
    run = shop.crawl(*FIVE, "-O", f"{tmp_path}/part-%(batch_id)d.jsonl.gz", FEED_EXPORT_BATCH_ITEM_COUNT=2)
    assert run.returncode == 0, run.stderr
    assert [lines(tmp_path / f"part-{n}.jsonl.gz") for n in (1, 2, 3)] == [pages[:2], pages[2:4], pages[4:]]


def test_exploded_lines_join_to_their_targets(shop: Shop, pages: list[dict[str, Any]], tmp_path: Path) -> None:
    targets = tmp_path / "targets.jsonl"
    targets.write_text('{"id":"a","cat_id":"976759"}\n{"id":"b","cat_id":"976759","page":2}\n')
    run = shop.crawl("-a", f"targets={targets}", "-a", "explode=products", "-O", f"{tmp_path}/rows.jsonl")
    assert run.returncode == 0, run.stderr
    found: dict[str, list[Any]] = {"a": [], "b": []}
    for line in lines(tmp_path / "rows.jsonl"):
        joined = {
            key: line.pop(key)
            for key in ("target_id", "scraper", "params", "fetched_at", "warnings", "note", "position")
        }
        assert joined["warnings"] == []
        assert joined["position"] == len(found[joined["target_id"]])
        found[joined["target_id"]].append(line)
    assert found == {"a": pages[0]["products"], "b": pages[1]["products"]}


@pytest.mark.parametrize(
    ("output", "settings", "message"),
    [
        (["-o", "existing.xlsx"], {}, "nothing can be added to the Excel file"),
        (["-O", "/proc/nowhere/out.jsonl"], {}, "a feed cannot be written"),
        (["-O", "/dev/full:jsonl"], {}, "No space left"),
        (["-O", "/dev/full:xlsx"], {}, "No space left"),
        (["-O", "out.jsonl"], {"FEED_EXPORT_BATCH_ITEM_COUNT": 2}, "The feeds cannot be written as configured"),
    ],
    ids=["append", "no folder", "full", "full workbook", "batches of one name"],
)
def test_a_feed_that_cannot_be_written_ends_the_run(
    shop: Shop, tmp_path: Path, output: list[str], settings: dict[str, Any], message: str
) -> None:
    existing = tmp_path / "existing.xlsx"
    existing.write_bytes(b"kept")
    named = [str(tmp_path / part) if part in {"existing.xlsx", "out.jsonl"} else part for part in output]
    run = shop.crawl(*FIVE, *named, **settings)
    assert run.returncode == 1, run.stderr
    assert message in run.stderr
    assert existing.read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["targets=typo.jsonl"], 2),
        (["cat_idd=976759"], 2),
        ([], 2),
        (["cat_id=976759", "explode=product"], 2),
        (["cat_id=976759", "since=last"], 2),
        (["cat_id=976759", "resume=state"], 2),
        (["cat_id=976759", "queue=x"], 2),
    ],
    ids=str,
)
def test_us_2_a_refused_run_does_not_change_the_last_output(
    shop: Shop, tmp_path: Path, arguments: list[str], code: int
) -> None:
    keep = tmp_path / "keep.jsonl"
    keep.write_text("x\n")
    given = [part for each in arguments for part in ("-a", each)]
    run = shop.crawl(*given, "-O", str(keep), STORE=tmp_path / "store.sqlite3", FAILURES_FEED=tmp_path / "failed")
    assert run.returncode == code, run.stderr
    assert keep.read_text() == "x\n"
    assert not (tmp_path / "failed").exists()
    assert (run.stderr.count("\n") == 1) == (code == 2), "wrong use is explained in one sentence"


@pytest.mark.parametrize(
    ("tail", "repaired"),
    [(b'{"a": 2}', b'{"a": 1}\n{"a": 2}\n'), (b'{"a": 2, "b', b'{"a": 1}\n'), (b"\0" * 9, b'{"a": 1}\n')],
    ids=["whole", "torn", "zeros"],
)
def test_rb_16_appended_lines_start_on_a_new_line(
    shop: Shop, pages: list[dict[str, Any]], tmp_path: Path, tail: bytes, repaired: bytes
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(b'{"a": 1}\n' + tail)
    run = shop.crawl("-a", "cat_id=976759", "-o", str(out))
    assert run.returncode == 0, run.stderr
    assert out.read_bytes().startswith(repaired)
    assert lines(out) == [json.loads(line) for line in repaired.splitlines()] + pages[:1]
    assert ("torn_line_truncated" in run.stderr) == (not repaired.startswith(b'{"a": 1}\n' + tail))


def test_text_that_is_not_a_record_is_not_truncated(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("mine, without a line break")
    repair_last_line(notes)
    assert notes.read_text() == "mine, without a line break\n"


def test_failures_reach_the_feeds_that_name_them(shop: Shop, tmp_path: Path) -> None:
    targets = tmp_path / "targets.jsonl"
    targets.write_text('{"id":"a","cat_id":"976759"}\n{"id":"b","cat_id":"1_2_3"}\n')
    feeds = {
        str(tmp_path / "out.jsonl"): {"format": "jsonlines"},
        str(tmp_path / "filtered.jsonl"): {"format": "jsonlines", "item_filter": "tests.outputs.test_feeds.Everything"},
        str(tmp_path / "failed.csv"): {"format": "csv", "item_classes": ["crawler.outputs.failures.Failure"]},
    }
    run = shop.crawl(
        "-a", f"targets={targets}", FEEDS=json.dumps(feeds), FAILURES_FEED=tmp_path / "failed-%(name)s.jsonl"
    )
    assert run.returncode == 4, run.stderr
    for name in ("out.jsonl", "filtered.jsonl"):
        assert [line["id"] for line in lines(tmp_path / name)] == ["a"]
    assert [line["code"] for line in lines(tmp_path / "failed-retail.jsonl")] == ["TARGET_NOT_FOUND"]
    with (tmp_path / "failed.csv").open() as file:
        assert [(row["id"], row["code"]) for row in csv.DictReader(file)] == [("b", "TARGET_NOT_FOUND")]


class Everything(ItemFilter):
    """A user's filter that accepts all items."""

    def accepts(self, item: Any) -> bool:
        return True


def test_a_run_without_data_writes_an_empty_table(shop: Shop, tmp_path: Path) -> None:
    run = shop.crawl("-a", "cat_id=1_2_3", "-O", f"{tmp_path}/out.csv")
    assert run.returncode == 4
    with (tmp_path / "out.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert "heading" in header
    assert rows == []


def test_each_batch_is_uploaded_to_an_object_store(shop: Shop, pages: list[dict[str, Any]]) -> None:
    stored: dict[str, bytes] = {}

    class Bucket(BaseHTTPRequestHandler):
        """The part of S3 that stores an object."""

        def do_PUT(self) -> None:  # http.server's name
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
            self.send_response(200)
            self.send_header("ETag", '"0"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = shop.crawl(
            *FIVE,
            *("-O", "s3://bucket/retail/%(batch_id)03d.jsonl.gz"),
            FEED_EXPORT_BATCH_ITEM_COUNT=3,
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{server.server_address[1]}",
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY="secret",
        )
        server.shutdown()
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
