"""The CSV files of each scraper, opened by pandas, DuckDB and LibreOffice: same rows and columns, and no formulas."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import duckdb
import pytest

from crawler.outputs.columns import column_type_of_models, find_row_path
from crawler.outputs.exporters import exploded_rows
from crawler.registry import scrapers
from tests.outputs.test_csv import record_of, table

pytestmark = pytest.mark.soak

NAMES = sorted({scraper.name for scraper in scrapers().values()})
LISTS = {
    "microblog-profile": "posts",
    "photoapp-post-v4": "data.xdt_shortcode_media.edge_media_to_comment.edges",
    "professional-profile": "experience",
    "professional-profile-v4": "posts",
    "retail-category-v4": "products",
    "retail-search-v4": "products",
    "shortvideo-photo-search-v4": "search_item_list",
    "videosite-profile": "posts",
    "videosite-profile-v3": "posts",
}
SHAPES = ("record", "batch", "rows")
TABLE, TEXT, OFFICE = (f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("table", "text", "office"))
UTF_8_COMMAS = "CSV:44,34,76,1"
"""LibreOffice's import options: commas, double quotes, UTF-8, from line 1. Formulas are evaluated (the default)."""

MAX_CELL_CHARACTERS = 60_000
"""Longer cells are not compared: LibreOffice truncates them after about 65,535 characters."""


def rows_in(name: str, shape: str) -> list[list[str]]:
    """The rows of a table with the sandbox's records of a scraper, its header first."""
    scraper = scrapers()[name]
    if shape == "rows":
        row_path = find_row_path(column_type_of_models([scraper.data]), LISTS[name])
        return table(*exploded_rows(record_of(scraper), row_path), scraper=scraper, row_path=row_path)
    own_ids = ("=1+1", "plain") if shape == "batch" else ("t",)
    batch = shape == "batch"
    return table(*(record_of(scraper, batch=batch, own_id=each) for each in own_ids), scraper=scraper, batch=batch)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """(Scraper, table shape) -> CSV file."""
    folder = tmp_path_factory.mktemp("csv")
    found = {(name, shape): folder / f"{name}-{shape}.csv" for name in NAMES for shape in SHAPES}
    for (name, shape), path in found.items():
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows_in(name, shape))
    return found


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_files_have_rows_and_dotted_columns(files: dict[tuple[str, str], Path]) -> None:
    for (name, shape), path in files.items():
        header, *rows = rows_of(path)
        assert len(rows) == {"record": 1, "batch": 2}.get(shape, len(rows)) > 0, path
        assert len(set(header)) == len(header)
        assert {len(row) for row in rows} == {len(header)}
        if shape == "batch":
            assert [row[header.index("target_id")] for row in rows] == ["'=1+1", "plain"]
            assert {f"params.{param}" for param in scrapers()[name].example} <= {*header}
        if shape == "rows":
            assert {"target_id", "position"} <= {*header}


def test_pandas_reads_the_same_table(files: dict[tuple[str, str], Path]) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas (pip install pandas)")
    for path in files.values():
        header, *rows = rows_of(path)
        frame = pandas.read_csv(path, dtype=str, keep_default_na=False)
        assert list(frame.columns) == header, path
        found = [[cell.replace("\r\n", "\n") for cell in row] for row in frame.values.tolist()]
        assert found == [[cell.replace("\r\n", "\n") for cell in row] for row in rows], path


def test_duckdb_reads_the_same_table(files: dict[tuple[str, str], Path]) -> None:
    for path in files.values():
        header, *rows = rows_of(path)
        query = f"select * from read_csv('{path}', all_varchar=true, header=true)"  # noqa: S608
        read = duckdb.execute(query)
        assert [column[0] for column in read.description or ()] == header, path
        assert [["" if cell is None else cell for cell in row] for row in read.fetchall()] == rows, path
        duckdb.execute(f"select * from read_csv('{path}')").fetchall()  # noqa: S608  # with types


def opened(folder: Path, *paths: Path) -> list[ET.Element]:
    """Open files in LibreOffice. Return the XML of each document."""
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("needs LibreOffice (Debian: apt-get install --no-install-recommends libreoffice-calc)")
    options = [f"-env:UserInstallation=file://{folder}/profile", f"--infilter={UTF_8_COMMAS}"]
    out = folder / "out"
    start = [office, *options, "--headless", "--convert-to", "fods", "--outdir", str(out), *map(str, paths)]
    subprocess.run(start, check=True, capture_output=True, timeout=600)
    return [ET.parse(out / f"{path.stem}.fods").getroot() for path in paths]  # noqa: S314  # written by LibreOffice


def cells(document: ET.Element) -> list[list[ET.Element]]:
    """Return the cells of each row, without empty rows and trailing empty cells."""
    rows = []
    for row in document.iter(f"{TABLE}table-row"):
        found = list(_repeated(row))
        while found and not _text(found[-1]):
            found.pop()
        if found:
            rows += [found] * int(row.get(f"{TABLE}number-rows-repeated", 1))
    return rows


def _repeated(row: ET.Element) -> Iterator[ET.Element]:
    for cell in row.iter(f"{TABLE}table-cell"):
        yield from [cell] * min(int(cell.get(f"{TABLE}number-columns-repeated", 1)), 1_000)


def _text(cell: ET.Element) -> str:
    return "".join("".join(each.itertext()) for each in cell.iter(f"{TEXT}p"))


def test_libreoffice_shows_the_same_table_without_formulas(files: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    paths = list(files.values())
    for path, document in zip(paths, opened(tmp_path, *paths), strict=True):
        assert not [cell for cell in document.iter(f"{TABLE}table-cell") if cell.get(f"{TABLE}formula")], path
        rows, shown = rows_of(path), cells(document)
        assert len(shown) == len(rows), path
        assert [_text(cell) for cell in shown[0]] == rows[0], path
        for expected, row in zip(rows[1:], shown[1:], strict=True):
            for text, cell in zip(expected, row, strict=False):
                if cell.get(f"{OFFICE}value-type") in {
                    "string",
                    None,
                }:  # numbers are not compared: they are formatted for the locale
                    expected_text, shown_text = ("".join(each.split()) for each in (text, _text(cell)))
                    assert shown_text == expected_text[: len(shown_text)], path
                    assert len(shown_text) == len(expected_text) or len(_text(cell)) >= MAX_CELL_CHARACTERS, path


FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(1)", '=HYPERLINK("http://127.0.0.1/")', "\t=1+1", "=cmd|' /C calc'!A0")


@pytest.mark.parametrize("escape", [True, False])
def test_libreoffice_calculates_no_escaped_formula(tmp_path: Path, *, escape: bool) -> None:
    """Without escaping, the file contains formulas, and the check must find them."""
    record = record_of(scrapers()["retail-category-v4"])
    records = [type(record)({"heading": text}, record.target, record.fetched_at) for text in FORMULAS]
    path = tmp_path / "formulas.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(table(*records, fields="heading", settings={"CSV_ESCAPE_FORMULAS": escape}))
    (document,) = opened(tmp_path, path)
    formulas = [cell for cell in document.iter(f"{TABLE}table-cell") if cell.get(f"{TABLE}formula")]
    assert bool(formulas) != escape
    if escape:
        assert [_text(row[0])[0] for row in cells(document)[1:]] == ["'"] * len(FORMULAS)
