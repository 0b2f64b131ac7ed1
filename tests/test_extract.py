"""``scrapy extract``: saved responses in, data or the typed error out, and an exit code that says which."""

from __future__ import annotations

import argparse
import gzip
import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from scrapy.settings import Settings

from crawler.commands.extract import Command
from crawler.pipelines import validated
from crawler.platforms.retail.schema import Listing, SearchListing
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site

ROOT = Path(__file__).parents[1]
WORLD = Site(light=True)
CATEGORY, SEARCH = "retail-category-v4", "retail-search-v4"


def page(path: str = "/browse/976759", **args: str) -> bytes:
    return WORLD.page(FakeRequest(path, args))[2]


def data_block(html: bytes) -> bytes:
    return html.split(b'id="__NEXT_DATA__"')[1].partition(b">")[2].partition(b"</script>")[0]


@dataclass
class Extracted:
    code: int
    out: Any
    said: str


class Extract:
    """Runs the command in this process."""

    def __init__(self, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self.folder = folder
        self.captured = capsysbinary

    def file(self, body: bytes, name: str = "page.html") -> str:
        path = self.folder / name
        path.write_bytes(body)
        return str(path)

    def __call__(self, *arguments: str) -> Extracted:
        command = Command()
        command.settings = Settings()
        parser = argparse.ArgumentParser()
        command.add_options(parser)
        try:
            opts, args = parser.parse_known_args(arguments)
            command.run(args, opts)
            code = command.exitcode
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = self.captured.readouterr()
        return Extracted(code, orjson.loads(captured.out) if captured.out else None, captured.err.decode())


@pytest.fixture
def extract(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Extract:
    return Extract(tmp_path, capsysbinary)


@pytest.mark.parametrize(
    "saved",
    [
        page(),
        gzip.compress(page()),
        data_block(page()),
        b"\xef\xbb\xbf" + page(),
        orjson.dumps(orjson.loads(data_block(page())), option=orjson.OPT_INDENT_2),
    ],
    ids=["html", "gzip", "data block", "byte order mark", "indented"],
)
def test_a_saved_listing_is_the_data_that_a_crawl_gives(extract: Extract, saved: bytes) -> None:
    done = extract(CATEGORY, extract.file(saved))
    assert (done.code, done.said) == (0, "")
    assert validated(Listing, done.out) == done.out
    expected = WORLD.expected_record({"cat_id": "976759"})
    if not saved.startswith(b"{"):
        assert done.out == expected
    assert done.out["products"] == expected["products"]


def test_stdin(extract: Extract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(page()))))
    assert extract(CATEGORY, "-").out == WORLD.expected_record({"cat_id": "976759"})


def test_a_saved_search(extract: Extract) -> None:
    done = extract(SEARCH, extract.file(page("/search", q="mustard")), "-a", "query=mustard")
    assert done.code == 0
    assert validated(SearchListing, done.out)["query"] == "mustard"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        (["cat_id=976759"], 0),
        (["cat_id=976759", "page=1", "sort=best_match"], 0),
        (["url=https://www.walmart.com/browse/food/976759?x=1"], 0),
        (["page=1"], 0),
        (["cat_id=5438"], 2),
        (["page=2"], 2),
        (["sort=new"], 2),
    ],
)
def test_the_echo_is_compared_with_what_was_asked_for_only(extract: Extract, params: list[str], code: int) -> None:
    done = extract(CATEGORY, extract.file(page()), *[word for param in params for word in ("-a", param)])
    assert done.code == code
    if code:
        assert (done.out["code"], done.out["upstream"]["reason"]) == ("EXTRACTION_FAILED", "wrong_echo")


def test_rows_alone_have_no_category_but_the_one_of_their_url(extract: Extract) -> None:
    rows = extract.file(orjson.dumps([{"usItemId": "1", "name": "Thing"}]), "rows.json")
    assert extract(CATEGORY, rows).out["details"][0]["loc"] == ["cat_id"]
    assert extract(CATEGORY, rows, "--url", "https://www.walmart.com/cp/eggs/1001469").out["cat_id"] == "1001469"
    assert extract(CATEGORY, rows, "-a", "cat_id=4044").out["cat_id"] == "4044"
    assert extract(SEARCH, rows).out["cat_id"] == "0"


@pytest.mark.parametrize(
    ("saved", "code", "reason"),
    [
        (WORLD.damaged("challenge", FakeRequest("/browse/976759"))[2], "UPSTREAM_BLOCKED", "challenge"),
        (WORLD.damaged("product-page", FakeRequest("/browse/976759"))[2], "TARGET_NOT_FOUND", "wrong_page_kind"),
        (WORLD.damaged("soft-gone", FakeRequest("/browse/976759"))[2], "TARGET_NOT_FOUND", "not_found"),
        (WORLD.damaged("blind", FakeRequest("/browse/976759"))[2], "EXTRACTION_FAILED", "blind"),
        (WORLD.damaged("deep-json", FakeRequest("/browse/976759"))[2], "EXTRACTION_FAILED", "broken_data_block"),
        (b"<html><h1>It works!</h1></html>", "EXTRACTION_FAILED", "unknown_response"),
        (b"", "EXTRACTION_FAILED", "unknown_response"),
        (bytes(range(256)) * 64, "EXTRACTION_FAILED", "unknown_response"),
        (b"<?xml version='1.0'?><feed/>", "EXTRACTION_FAILED", "unknown_response"),
    ],
)
def test_a_failure_is_the_error_object_of_the_envelope(extract: Extract, saved: bytes, code: str, reason: str) -> None:
    done = extract(CATEGORY, extract.file(saved))
    assert (done.code, done.said) == (2, "")
    assert (done.out["code"], done.out["upstream"]) == (code, {"status": None, "reason": reason})
    assert list(done.out) == ["code", "type", "message", "details", "retry_after", "upstream", "doc_url"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name a scraper"),
        ([CATEGORY], "Name a scraper and at least one file"),
        (["retail-category", "FILE"], "There is no scraper 'retail-category'; there are "),
        ([CATEGORY, "/no/such/file"], "No such file"),
        ([CATEGORY, "FILE", "FILE"], "2 of the files are a listing each"),
        ([CATEGORY, "CUT"], "end-of-stream"),
        ([CATEGORY, "FILE", "--unheard-of"], "No such file"),
        ([CATEGORY, "FILE", "--url"], "expected one argument"),
        ([CATEGORY, "FILE", "-a", "page"], "-a name=value"),
        ([CATEGORY, "FILE", "-a", "page=first"], "page: Input should be a valid integer"),
        ([CATEGORY, "FILE", "-a", "page=0"], "page: Input should be greater than or equal to 1"),
        ([CATEGORY, "FILE", "-a", "query=mustard"], "query: "),
        ([CATEGORY, "FILE", "-a", "url=https://evil.example/browse/1"], "expected a category page of"),
    ],
)
def test_wrong_usage_is_one_sentence(extract: Extract, arguments: list[str], said: str) -> None:
    files = {"FILE": extract.file(page()), "CUT": extract.file(gzip.compress(page())[:100], "page.html.gz")}
    done = extract(*[files.get(argument, argument) for argument in arguments])
    assert (done.code, done.out) == (3, None)
    assert said in done.said
    assert done.said.count("\n") == 1


def test_as_it_is_typed(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(page())
    run = subprocess.run(
        [sys.executable, "-m", "scrapy", "extract", CATEGORY, str(path)], cwd=ROOT, capture_output=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert orjson.loads(run.stdout) == WORLD.expected_record({"cat_id": "976759"})
