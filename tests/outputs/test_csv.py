"""CSV for spreadsheets: columns, ``-a fields=``, formulas, byte order mark, appended rows."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.settings import Settings

from crawler.errors import TargetNotFound
from crawler.outputs.columns import RecordPath, Struct, column_type_of_models, find_row_path, record_paths
from crawler.outputs.exporters import (
    FORMULA,
    CsvExporter,
    Table,
    UnusableFileError,
    check_existing_files,
    escaped,
    exploded_rows,
)
from crawler.outputs.feed_files import Failure, failure_line
from crawler.outputs.selection import Selection, flat_columns, provenance_columns
from crawler.registry import scrapers, spiders
from crawler.targets.parser import check_params
from crawler.targets.sources import TargetSource
from crawler.targets.target import Outcome, Record, Scraper, Target
from tests.shop import Shop, open_shop

NAMES = sorted({scraper.name for scraper in scrapers().values()})
CATEGORY = scrapers()["retail-category-v4"]
PRODUCTS = find_row_path(column_type_of_models([CATEGORY.data]), "products")
PRICE = [name for name in flat_columns(PRODUCTS.fields) if name.startswith("price.")]


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


def record_of(scraper: Scraper, *, batch: bool = False, own_id: str = "t") -> Record:
    """The record of a scraper's example in the sandbox."""
    site = import_module(f"crawler.sandbox.{scraper.platform}.site").Site()
    data = site.expected_record({"scraper": scraper.name, **scraper.example})
    target = Target(own_id, scraper, check_params(scraper, scraper.example), batch=batch)
    record = scraper.item(data, target, datetime(2026, 11, 1, tzinfo=UTC))
    return record.as_line() if batch else record


class File(io.BytesIO):
    """A file that keeps its content when the exporter closes it."""

    def close(self) -> None:
        """Keep the content."""


def exporter(  # noqa: PLR0913  # the arguments of a crawl
    file: Any,
    scraper: Scraper = CATEGORY,
    *,
    batch: bool = False,
    row_path: RecordPath | None = None,
    fields: str | None = None,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> CsvExporter:
    """The exporter of a crawl of the scraper's spider."""
    its = spiders()[scraper.platform].scrapers
    selection = None if fields is None else Selection.parse(fields, its, row_path, sliced=False)
    spider = SimpleNamespace(
        scrapers=its, row_path=row_path, batch=batch, sliced=False, selection=selection, source=TargetSource()
    )
    known = Settings({"CSV_ESCAPE_FORMULAS": True, "CSV_BOM": False, **(settings or {})})
    return CsvExporter.from_crawler(cast("Any", SimpleNamespace(spider=spider, settings=known)), file, **options)


def table(*items: Any, **options: Any) -> list[list[str]]:
    """The rows of a table with these items, its header first."""
    file = File()
    made = exporter(file, **options)
    made.start_exporting()
    for item in items:
        made.export_item(item)
    made.finish_exporting()
    return list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))


def at(row: Any, name: str) -> Any:
    """The value at a dotted path, None below a null or a missing key."""
    for key in name.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row


def cell(value: Any) -> str:
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "" if value is None else escaped(value) if isinstance(value, str) else str(value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
def test_each_value_of_a_record_is_in_the_cell_of_its_path(name: str, *, batch: bool) -> None:
    record = record_of(scrapers()[name], batch=batch)
    header, row = table(record, scraper=scrapers()[name], batch=batch)
    assert len(set(header)) == len(header) == len(row)
    provenance = record.provenance()
    whole = {**record.data, **({**provenance, "target_id": provenance["id"]} if batch else {})}
    assert row == [cell(at(whole, column)) for column in header]
    assert ("params.sort" in header) == (batch and name.startswith("retail"))
    fields = column_type_of_models([each.data for each in spiders()[record.target.scraper.platform].scrapers])
    nested = [key for key, column_type in fields.of.items() if isinstance(column_type, Struct)]
    assert not set(nested) & set(header), "objects are dotted columns"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ('=HYPERLINK("http://invented.example")', '\'=HYPERLINK("http://invented.example")'),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3+cmd", "'-2+3+cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1+1", "'\t=1+1"),
        ("\r=1+1", "'\r=1+1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("'=1+1", "''=1+1"),
        ("-12.5", "-12.5"),
        ("+49", "+49"),
        ("a=1", "a=1"),
        ("'tis", "'tis"),
        ("", ""),
    ],
)
def test_formulas_are_text_and_can_be_restored(text: str, written: str) -> None:
    data = {**record_of(CATEGORY), "heading": text}
    record = Record(data, record_of(CATEGORY).target, datetime.now(UTC))
    header, row = table(record)
    assert row[header.index("heading")] == written
    restored = written[1:] if written.startswith("'") and FORMULA.match(written) else written
    assert restored == text
    header, row = table(record, settings={"CSV_ESCAPE_FORMULAS": False})
    assert row[header.index("heading")] == text


@pytest.mark.parametrize("batch", [False, True])
def test_a_table_without_rows_has_a_header(*, batch: bool) -> None:
    (header,) = table(batch=batch)
    assert header == table(record_of(CATEGORY, batch=batch), batch=batch)[0]


def test_keys_that_a_pipeline_adds_are_columns_at_the_end() -> None:
    record = Record({**record_of(CATEGORY), "shop": {"id": 1}}, record_of(CATEGORY).target, datetime.now(UTC))
    header, row = table(record)
    assert (header[-1], row[-1]) == ("shop", '{"id":1}')


def test_failures_have_their_own_columns() -> None:
    outcome = Outcome(record_of(CATEGORY).target, None, TargetNotFound("=not found"), 0)
    header, row = table(Failure(failure_line(outcome)), fields_to_export=["id", "code", "message"])
    assert (header, row) == (["id", "code", "message"], ["t", "TARGET_NOT_FOUND", "'=not found"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("heading,page\r\nold,1\r\n", "heading,page\r\nold,1\r\nnew,2\r\n"),
        ("heading,page\nold,1", "heading,page\nold,1\r\nnew,2\r\n"),
        ("\ufeffheading,page\r\nold,1\r\n", "\ufeffheading,page\r\nold,1\r\nnew,2\r\n"),
        ("", "heading,page\r\nnew,2\r\n"),
    ],
    ids=["lines", "no last newline", "byte order mark", "empty"],
)
@pytest.mark.parametrize("bom", [False, True])
def test_rows_are_appended_below_the_existing_header(tmp_path: Path, before: str, after: str, *, bom: bool) -> None:
    path = tmp_path / "out.csv"
    path.write_bytes(before.encode())
    with path.open("ab") as file:
        made = exporter(file, fields="heading,page", settings={"CSV_BOM": bom})
        made.export_item(Record({"heading": "new", "page": 2}, record_of(CATEGORY).target, datetime.now(UTC)))
        made.finish_exporting()
    assert path.read_bytes() == (b"\xef\xbb\xbf" if bom and not before else b"") + after.encode()


def test_rows_with_other_columns_are_not_appended(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("page,heading\r\n")
    with path.open("ab") as file, pytest.raises(UnusableFileError, match="has different columns from this run's"):
        exporter(file, fields="heading,page")


@pytest.mark.parametrize(
    ("fields", "row_path", "columns"),
    [
        ("price.current_price,item_id", PRODUCTS, ["price.current_price", "item_id"]),
        ("price", PRODUCTS, PRICE),
        ("price.currency,item_id,price", PRODUCTS, [*PRICE, "item_id"]),
        ("price,item_id,price.currency", PRODUCTS, [*PRICE, "item_id"]),
        ("params.cat_id, position", PRODUCTS, ["params.cat_id", "position"]),
        ("products.item_id,page", None, ["products", "page"]),
        ("target_id,page", None, ["target_id", "page"]),
    ],
)
def test_chosen_fields_are_the_columns(fields: str, row_path: RecordPath | None, columns: list[str]) -> None:
    record = record_of(CATEGORY)
    made = Selection.parse(fields, spiders()["retail"].scrapers, row_path, sliced=False)
    items = [made.record(record)] if row_path is None else [made.row(row) for row in exploded_rows(record, row_path)]
    header, *rows = table(*items, fields=fields, row_path=row_path)
    assert header == columns
    assert len(rows) == len(items)
    assert all(any(row) for row in rows)


def test_chosen_fields_of_a_json_line_are_in_its_data() -> None:
    record = record_of(CATEGORY, batch=True)
    made = Selection.parse("products.price.currency,page", spiders()["retail"].scrapers, None, sliced=False)
    line = made.record(record)
    assert [*line] == [*record]
    assert line["data"]["page"] == record.data["page"]
    assert [*line["data"]] == ["products", "page"]
    assert line["data"]["products"][0] == {"price": {"currency": "USD"}}


@pytest.mark.parametrize(
    ("fields", "row_path", "message"),
    [
        ("itemid", PRODUCTS, "fields=itemid: no field is called 'itemid'; did you mean item_id?"),
        ("item_id,price.curent_price", PRODUCTS, "did you mean price.current_price?"),
        ("item_id,", PRODUCTS, "no field is called ''; the fields are target_id, scraper,"),
        ("position", None, "no field is called 'position'"),
    ],
)
def test_an_unknown_field_is_refused_with_the_nearest(fields: str, row_path: RecordPath | None, message: str) -> None:
    with pytest.raises(ValueError, match="fields=") as error:
        Selection.parse(fields, spiders()["retail"].scrapers, row_path, sliced=False)
    assert message in str(error.value)


def test_a_file_with_other_columns_is_refused_before_the_first_request(shop: Shop, tmp_path: Path) -> None:
    table, second = tmp_path / "rows.csv", tmp_path / "second.jsonl"
    feeds = {str(table): {"format": "csv"}, str(second): {"format": "jsonlines", "overwrite": True}}
    first = shop.crawl("-a", "cat_id=976759", "-a", "explode=products", "-o", str(table))
    assert first.returncode == 0, first.stderr
    table.write_bytes(table.read_bytes().removesuffix(b"\r\n"))  # a spreadsheet may omit the line end of the last line
    before, requests = table.read_bytes(), []
    shop.alter = lambda body: requests.append(body) or body  # type: ignore[func-returns-value]
    for way in ({"FEEDS": json.dumps(feeds)}, {}):
        out = () if way else ("-o", str(table))
        other = shop.crawl("-a", "cat_id=976759", "-a", "fields=page,heading", *out, **way)
        assert other.returncode == 2
        assert other.stderr == f"{table} has different columns from this run's: use -O, or another file.\n"
        assert (table.read_bytes(), requests) == (before, [])
        assert not second.exists()
    again = shop.crawl("-a", "cat_id=976759", "-a", "explode=products", "-o", str(table))
    assert again.returncode == 0, again.stderr
    assert len(table.read_bytes().splitlines()) == 2 * len(before.splitlines()) - 1


@pytest.mark.parametrize(
    ("uri", "options", "is_refused"),
    [
        ("old.csv", {}, True),
        ("%(name)s.csv", {}, True),
        ("file://{folder}/old.csv", {}, True),
        ("old.csv", {"fields": ["page"]}, True),
        ("old.csv", {"fields": ["other"]}, False),
        ("more.csv", {"fields": ["other"]}, True),
        ("old.csv", {"fields": {"page": "other"}}, False),
        ("semicolons.csv", {"fields": ["other", "more"], "item_export_kwargs": {"delimiter": ";"}}, False),
        ("old.csv", {"overwrite": True}, False),
        ("old.csv", {"format": "jsonlines"}, False),
        ("old.csv", {"postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}, False),
        ("old.csv.gz", {"format": "csv"}, False),
        ("old.csv", {"item_classes": ["crawler.outputs.feed_files.Failure"]}, False),
        ("empty.csv", {}, False),
        ("new.csv", {}, False),
        ("%(time)s.csv", {}, False),
        ("s3://bucket/old.csv", {}, False),
        ("stdout:", {"format": "csv"}, False),
    ],
)
def test_only_files_to_which_records_are_appended_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, options: dict[str, Any], *, is_refused: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("old.csv", "retail.csv", "old.csv.gz"):
        (tmp_path / name).write_text("other\r\n")
    (tmp_path / "semicolons.csv").write_text("other;more\r\n")
    (tmp_path / "more.csv").write_text("other,more\r\n")
    (tmp_path / "empty.csv").touch()
    spider: Any = spiders()["retail"](cat_id="976759", scraper="retail-category-v4")
    settings = Settings({"FEEDS": {uri.format(folder=tmp_path): options}})
    with pytest.raises(UnusableFileError) if is_refused else contextlib.nullcontext():
        check_existing_files(spider, settings)


@pytest.mark.parametrize("platform", sorted(spiders()))
def test_columns_of_targets_differ_from_keys_of_data(platform: str) -> None:
    its = spiders()[platform].scrapers
    fields = column_type_of_models([scraper.data for scraper in its])
    for row_path in (None, *(each for each in record_paths(fields) if each.is_list)):
        keys = fields.of if row_path is None else row_path.fields.of
        assert not provenance_columns(its, row_path, sliced=True).of.keys() & keys.keys()


def test_only_lists_are_offered_to_explode() -> None:
    fields = column_type_of_models([scraper.data for scraper in spiders()["retail"].scrapers])
    with pytest.raises(ValueError, match=r"its lists are: breadcrumbs, products$"):
        find_row_path(fields, "product")
    for path in ("products.price", "price"):
        with pytest.raises(ValueError, match="no such list"):
            find_row_path(fields, path)
    videos = column_type_of_models([scraper.data for scraper in spiders()["videosite"].scrapers])
    with pytest.raises(ValueError, match=r"its lists are: posts$"):
        find_row_path(videos, "posts.media_links")


def test_the_first_row_decides_which_further_columns_a_table_has() -> None:
    file = io.BytesIO()
    exporter = CsvExporter(file, Table(Struct({"id": "text"}), has_more_keys=True))
    exporter.start_exporting()
    for row in ({"id": "1", "mine": "a"}, {"id": "2", "mine": "b", "late": "c"}):
        exporter.export_item(row)
    exporter.finish_exporting()
    assert file.getvalue().decode().splitlines() == ["id,mine", "1,a", "2,b"]
