"""``scrapy extract``: reads saved responses, and prints data or a typed error with the right exit code."""

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
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from web_poet import ApplyRule, field

from crawler.commands.extract import Command
from crawler.pipelines import validated
from crawler.platforms.retail.pages import ListingPage
from crawler.platforms.retail.schema import Listing, SearchListing
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests import forks, saved_parts

ROOT = Path(__file__).parents[1]
SITE = Site(light=True)
CATEGORY, SEARCH = "retail-category-v4", "retail-search-v4"


def page(path: str = "/browse/976759", **args: str) -> bytes:
    return SITE.page(FakeRequest(path, args))[2]


def data_block(html: bytes) -> bytes:
    return html.split(b'id="__NEXT_DATA__"')[1].partition(b">")[2].partition(b"</script>")[0]


@dataclass
class Extracted:
    code: int
    out: Any
    stderr: str


class Extract:
    """Runs ``scrapy extract`` in the test's process."""

    def __init__(self, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        self.folder = folder
        self.captured = capsysbinary
        self.settings = Settings()

    def file(self, body: bytes, name: str = "page.html") -> str:
        path = self.folder / name
        path.write_bytes(body)
        return str(path)

    def __call__(self, *arguments: str) -> Extracted:
        command = Command()
        command.settings = self.settings
        parser = argparse.ArgumentParser()
        command.add_options(parser)
        try:
            opts, args = parser.parse_known_args(arguments)
            command.run(args, opts)
            code = command.exitcode
        except UsageError as error:  # Scrapy handles it like this
            with pytest.raises(SystemExit) as exit_:
                parser.error(str(error))
            code = int(exit_.value.code or 0)
        except SystemExit as error:
            code = int(error.code or 0)
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
def test_a_saved_listing_has_the_data_of_a_crawl(extract: Extract, saved: bytes) -> None:
    done = extract(CATEGORY, extract.file(saved))
    assert (done.code, done.stderr) == (0, "")
    assert validated(Listing, done.out) == done.out
    expected = SITE.expected_record({"cat_id": "976759"})
    if not saved.startswith(b"{"):
        assert done.out == expected
    assert done.out["products"] == expected["products"]


def test_a_response_is_read_from_stdin(extract: Extract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(page()))))
    assert extract(CATEGORY, "-").out == SITE.expected_record({"cat_id": "976759"})


def test_a_saved_search_is_extracted(extract: Extract) -> None:
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
        (["cat_id=5438"], 4),
        (["page=2"], 4),
        (["sort=new"], 4),
    ],
)
def test_the_echo_is_compared_with_the_given_params_only(extract: Extract, params: list[str], code: int) -> None:
    done = extract(CATEGORY, extract.file(page()), *[word for param in params for word in ("-a", param)])
    assert done.code == code
    if code:
        assert (done.out["code"], done.out["upstream"]["reason"]) == ("EXTRACTION_FAILED", "wrong_echo")


def test_a_page_without_its_category_takes_it_from_the_url_or_the_params(extract: Extract) -> None:
    saved = orjson.dumps([{"__typename": "Product", "usItemId": "1", "name": "Thing"}])
    rows = extract.file(saved_parts.whole("retail", saved), "rows.json")
    assert extract(CATEGORY, rows).out["details"][0]["loc"] == ["cat_id"]
    assert extract(CATEGORY, rows, "--url", "https://www.walmart.com/cp/eggs/1001469").out["cat_id"] == "1001469"
    assert extract(CATEGORY, rows, "-a", "cat_id=4044").out["cat_id"] == "4044"
    assert extract(SEARCH, rows).out["cat_id"] == "0"


@pytest.mark.parametrize(
    ("saved", "code", "reason"),
    [
        (SITE.damaged("challenge", FakeRequest("/browse/976759"))[2], "UPSTREAM_BLOCKED", "challenge"),
        (SITE.damaged("product-page", FakeRequest("/browse/976759"))[2], "TARGET_NOT_FOUND", "wrong_page_kind"),
        (SITE.damaged("soft-gone", FakeRequest("/browse/976759"))[2], "TARGET_NOT_FOUND", "not_found"),
        (SITE.damaged("blind", FakeRequest("/browse/976759"))[2], "EXTRACTION_FAILED", "blind"),
        (SITE.damaged("deep-json", FakeRequest("/browse/976759"))[2], "EXTRACTION_FAILED", "broken_data_block"),
        (b"<html><h1>It works!</h1></html>", "EXTRACTION_FAILED", "unknown_form"),
        (b"", "EXTRACTION_FAILED", "unknown_form"),
        (bytes(range(256)) * 64, "EXTRACTION_FAILED", "unknown_form"),
        (b"<?xml version='1.0'?><feed/>", "EXTRACTION_FAILED", "unknown_form"),
    ],
)
def test_a_failure_is_printed_as_the_error_of_the_envelope(
    extract: Extract, saved: bytes, code: str, reason: str
) -> None:
    done = extract(CATEGORY, extract.file(saved))
    assert (done.code, done.stderr) == (4, "")
    assert (done.out["code"], done.out["upstream"]) == (code, {"status": None, "reason": reason})
    assert list(done.out) == ["code", "type", "message", "details", "retry_after", "upstream", "doc_url"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Expected a scraper"),
        ([CATEGORY], "Expected a scraper and at least one file"),
        (["retail-category", "FILE"], "Unknown scraper 'retail-category'; known scrapers are "),
        ([CATEGORY, "/no/such/file"], "No such file"),
        ([CATEGORY, "FILE", "FILE"], "2 files are of the page type listing"),
        ([CATEGORY, "CUT"], "end-of-stream"),
        ([CATEGORY, "FILE", "--unheard-of"], "No such file"),
        ([CATEGORY, "FILE", "--url"], "expected one argument"),
        ([CATEGORY, "FILE", "-a", "page"], "-a name=value"),
        ([CATEGORY, "FILE", "-a", "page=first"], "page: Input should be a valid integer"),
        ([CATEGORY, "FILE", "-a", "page=0"], "page: Input should be greater than or equal to 1"),
        ([CATEGORY, "FILE", "-a", "query=mustard"], "query: "),
        ([CATEGORY, "FILE", "-a", "url=https://evil.example/browse/1"], "'evil.example' is not a host of a platform"),
    ],
)
def test_wrong_usage_prints_one_line(extract: Extract, arguments: list[str], message: str) -> None:
    files = {"FILE": extract.file(page()), "CUT": extract.file(gzip.compress(page())[:100], "page.html.gz")}
    done = extract(*[files.get(argument, argument) for argument in arguments])
    assert (done.code, done.out) == (2, None)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(page())
    run = subprocess.run(
        [sys.executable, "-m", "scrapy", "extract", CATEGORY, str(path)], cwd=ROOT, capture_output=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert orjson.loads(run.stdout) == SITE.expected_record({"cat_id": "976759"})


# Overridden page objects work as in crawls

OVERRIDE = """
from web_poet import field, handle_urls

from crawler.platforms.retail.pages import ListingPage


@handle_urls({pattern!r}, instead_of=ListingPage)
class OwnPage(ListingPage):
    @field
    def heading(self) -> str:
        return f"own: {{super().heading}}"

    def entry(self, row) -> dict:
        return super().entry(row) | {{"short_description": f"{{row.item_id}}"}}
"""


@pytest.mark.parametrize(
    ("pattern", "prefix"), [("www.walmart.com", "own: "), ("elsewhere.example", ""), ("", "own: ")]
)
def test_extract_uses_page_objects_that_override_others(tmp_path: Path, pattern: str, prefix: str) -> None:
    """Both a crawl and ``scrapy extract`` find the overriding page object through ``SCRAPY_POET_DISCOVER``."""
    (tmp_path / "own_pages.py").write_text(OVERRIDE.format(pattern=pattern))
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = crawler.settings\n")
    (tmp_path / "page.html").write_bytes(page())

    def scrapy(*arguments: str) -> Any:
        command = [sys.executable, "-m", "scrapy", *arguments, "-s", "SCRAPY_POET_DISCOVER=own_pages"]
        run = forks.run(command, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        return run.stdout

    read = orjson.loads(scrapy("extract", CATEGORY, "page.html"))
    assert read["heading"] == f"{prefix}Food"
    described = [each["short_description"] == each["item_id"] for each in read["products"]]
    assert described == [bool(prefix)] * len(described)
    if not pattern:  # an empty pattern also matches the URLs of the sandbox
        scrapy("crawl", "retail", "-a", "cat_id=976759", "-s", "SANDBOX=1", "-O", "out.jsonl")
        assert orjson.loads((tmp_path / "out.jsonl").read_bytes())["heading"] == "own: Food"


def test_extract_uses_the_rules_of_the_settings(extract: Extract) -> None:
    class OwnPage(ListingPage):
        @field
        def heading(self) -> str:
            return "own"

    saved = extract.file(page())
    extract.settings.set("SCRAPY_POET_RULES", [ApplyRule("www.walmart.com", use=OwnPage, instead_of=ListingPage)])
    assert extract(CATEGORY, saved).out["heading"] == "own"
    assert extract(CATEGORY, saved, "--url", "https://elsewhere.example/").out["heading"] == "Food"
