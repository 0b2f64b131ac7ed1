"""Crawls and jobs that write to databases: each row once after repeated runs, exit codes, passwords, killed crawls."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import sqlalchemy as sa

from crawler.outputs.sql import ScraperTables
from crawler.sandbox.retail.site import Site
from crawler.spiders.retail import RetailSpider
from tests import forks
from tests.crawls import ROOT, lines
from tests.jobs.test_collect import Commands, commands, write
from tests.outputs.test_sql import OWN, Content, rebuilt, without_null
from tests.shop import Shop, open_shop

__all__ = ["commands"]
SIX = ("-a", "cat_id=976759", "-a", "max_pages=6")
SECRET = "top secret"


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


def tables(url: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables of a database."""
    content = Content(url)
    found = content.tables()
    content.close()
    return {name: rows for name, rows in found.items() if not name.startswith("shop_")}


def with_password(url: str) -> str:
    return url.replace("://tests@", f"://tests:{SECRET.replace(' ', '%20')}@")


def test_jobs_of_all_scrapers_export_each_row_once_to_both_databases(
    commands: Commands, tmp_path: Path, postgresql_store: str
) -> None:
    """The short-video record needs Chromium."""
    targets = write(
        tmp_path / "targets.jsonl", [{"id": name, "scraper": name, **each.example} for name, each in OWN.items()]
    )
    lite = f"sqlite:///{tmp_path}/out.db"
    run = commands.run("collect", targets, "--job", "all", "-O", lite)
    assert run.returncode == 0, run.stderr
    assert f"  data:       {lite}" in run.stderr
    first = tables(lite)
    for _ in range(2):
        for url in (lite, with_password(postgresql_store)):
            export = commands.run("jobs", "export", "all", "-O", url)
            assert export.returncode == 0, export.stderr
            assert url.replace("top%20secret", "").replace(":@", "@") in export.stderr.splitlines()
    assert tables(lite) == tables(postgresql_store) == first
    out = tmp_path / "out.jsonl"
    commands.run("jobs", "export", "all", "-O", out)
    data = {line["scraper"]: line["data"] for line in lines(out)}
    assert set(data) == set(OWN)
    for name, scraper in OWN.items():
        if "products" in data[name]:
            data[name]["products"] = organic(data[name]["products"])
        assert rebuilt(scraper, first) == without_null(data[name]), name


def organic(products: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the products of a page without repeated ones: of those with one id, the first that is not advertised."""
    chosen: dict[str, dict[str, Any]] = {}
    for product in products:
        known = chosen.get(product["item_id"])
        if known is None or (known["is_sponsored"] and not product["is_sponsored"]):
            chosen[product["item_id"]] = product
    assert len(chosen) < len(products), "the sandbox has advertised products that it also lists"
    return [product for product in products if chosen[product["item_id"]] is product]


def test_crawls_write_to_both_databases_and_change_no_row_of_an_unchanged_page(
    shop: Shop, tmp_path: Path, postgresql_store: str
) -> None:
    lite = f"sqlite:///{tmp_path}/new/out.db"
    for way in ("-O", "-o"):
        run = shop.crawl(*SIX, way, lite, way, with_password(postgresql_store))
        assert run.returncode == 0, run.stderr
        assert "top" not in run.stderr.replace("stop", "")
        assert "Stored sql feed (6 items) in: " + postgresql_store in run.stderr
        found = tables(lite)
        assert found == tables(postgresql_store)
        pages = [shop.site.expected_record({"cat_id": "976759", "page": page}) for page in range(1, 7)]
        expected = {
            product["item_id"]: product["price"]["current_price"] for page in pages for product in page["products"]
        }
        rows = found["retail_category_v4_products"]
        assert {row["item_id"]: row["price_current_price"] for row in rows} == expected
        assert len(rows) == len(expected)
        assert [row["page"] for row in found["retail_category_v4"]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-O", "sqlite:////proc/nothing/out.db"], 1, "sqlite:////proc/nothing/out.db: [Errno 2]"),
        (["-O", "postgresql://me:top%20secret@127.0.0.1:9/db"], 1, "postgresql://me@127.0.0.1:9/db: connection failed"),
        (["-O", "postgresql://me:top/secret@host/db"], 2, "postgresql://…: expected postgresql://user:password@host"),
        (
            ["-O", "postgresql://me:topsecret@host:port/db"],
            2,
            "postgresql://me@host:port/db is not the URL of a database",
        ),
        (["-O", "sqlite://"], 2, "sqlite:// names no database"),
        (["-O", "sqlite:///out.db", "-a", "explode=products"], 2, "sqlite:///out.db: a database gets whole records"),
        (["-O", "sqlite:///out.db", "-a", "fields=page"], 2, "sqlite:///out.db: a database gets whole records"),
        (["-O", "sqlite:///out.db:csv"], 2, "sqlite:///out.db: a database gets records in the format sql, not csv"),
        (["-O", "out.sql"], 2, "out.sql: the format sql needs the URL of a database, such as sqlite:///out.sql"),
        (["-s", "FAILURES_FEED=sqlite:///out.db"], 2, "FAILURES_FEED: a database gets only records: name a file"),
    ],
)
def test_an_unusable_database_ends_the_run_before_the_first_request(
    shop: Shop, options: list[str], code: int, message: str
) -> None:
    requests: list[bytes] = []
    shop.alter = lambda body: requests.append(body) or body  # type: ignore[func-returns-value]
    run = shop.scrapy("crawl", "retail", "-a", "cat_id=976759", *options)
    assert run.returncode == code, run.stderr
    assert message in " ".join(run.stderr.split()).replace("' '", "")
    assert "secret" not in run.stderr
    assert requests == []
    assert not (ROOT / "out.db").exists()


def test_an_export_to_a_database_has_no_rows_of_lists(commands: Commands, tmp_path: Path) -> None:
    targets = write(tmp_path / "targets.jsonl", ["rubbish"])
    commands.run("collect", targets, "--job", "one")
    run = commands.run("jobs", "export", "one", "-O", f"sqlite:///{tmp_path}/out.db", "--explode", "products")
    assert run.returncode == 2, run.stderr
    assert "a database gets whole records, in tables of each scraper" in run.stderr


def test_an_export_to_an_unusable_database_fails(commands: Commands, tmp_path: Path) -> None:
    targets = write(tmp_path / "targets.jsonl", ["rubbish"])
    commands.run("collect", targets, "--job", "one")
    run = commands.run("jobs", "export", "one", "-O", "postgresql://me:secret@127.0.0.1:9/db")
    assert run.returncode == 1, run.stderr
    assert "postgresql://me@127.0.0.1:9/db: connection failed" in run.stderr
    assert "secret" not in run.stderr


def test_a_job_with_an_unusable_database_sends_no_request(commands: Commands, tmp_path: Path) -> None:
    targets = write(tmp_path / "targets.jsonl", [{"scraper": "retail-search-v4", "query": "mustard"}])
    run = commands.run("collect", targets, "--job", "one", "-O", "sqlite:////proc/%(name)s/out.db")
    assert run.returncode == 1, run.stderr
    assert "sqlite:////proc/one/out.db: [Errno 2]" in run.stderr
    assert commands.show("one")["targets"]["done"] == 0
    again = commands.run("collect", targets, "--job", "one", "-O", f"sqlite:///{tmp_path}/%(name)s.db")
    assert again.returncode == 0, again.stderr
    assert len(tables(f"sqlite:///{tmp_path}/one.db")["retail_search_v4"]) == 1
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["one.db"]


def test_new_records_of_a_job_are_added_after_a_cursor(commands: Commands, tmp_path: Path) -> None:
    targets = write(
        tmp_path / "targets.jsonl", [{"scraper": "retail-search-v4", "query": "mustard", "id": "own", "sku": "7"}]
    )
    commands.run("collect", targets, "--job", "one")
    url = f"sqlite:///{tmp_path}/out.db"
    cursor = commands.run("jobs", "export", "one", "-O", url, "--after", "0").stdout.strip()
    (row,) = tables(url)["retail_search_v4"]
    assert (row["target_id"], row["columns"], row["query"]) == ("own", {"sku": "7"}, "mustard")
    sqlite3.connect(tmp_path / "out.db").executescript(
        "DELETE FROM retail_search_v4; DELETE FROM retail_search_v4_products"
    )
    assert commands.run("jobs", "export", "one", "-O", url, "--after", cursor).returncode == 0
    assert tables(url)["retail_search_v4"] == []


def test_a_database_that_refuses_a_row_ends_the_crawl(shop: Shop, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/out.db"
    shop.crawl("-a", "cat_id=1_2_3", "-O", url)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "create trigger t before insert on retail_category_v4 when new.page=3 begin select raise(abort, 'no'); end"
        )
    engine.dispose()
    run = shop.crawl(*SIX, "-O", url)
    assert run.returncode == 1, run.stderr
    assert f"a feed cannot be written: {url}: no" in " ".join(run.stderr.split()).replace("' '", "")
    found = tables(url)
    assert [row["page"] for row in found["retail_category_v4"]] == [1, 2]
    assert {row["record_params"] for row in found["retail_category_v4_products"]} <= {
        row["params"] for row in found["retail_category_v4"]
    }, "each record is one transaction"


def test_a_killed_crawl_has_committed_the_rows_of_all_lines(shop: Shop, tmp_path: Path) -> None:
    """The feeds are written in their order, so the database must contain the rows of each complete line of the file."""
    path, feed, targets = tmp_path / "out.db", tmp_path / "out.jsonl", tmp_path / "t.csv"
    big = Site().big_category
    options = [part for k, v in shop.settings().items() for part in ("-s", f"{k}={v}")]
    command = [sys.executable, "-m", "scrapy", "crawl", "retail", "-a", f"targets={targets}", "-o", f"sqlite:///{path}"]
    targets.write_text(
        "cat_id,min_price,max_price\n" + "".join(f"{big},{n / 20:.2f},{(n + 1) / 20:.2f}\n" for n in range(3_000))
    )
    for _ in range(2):
        before = feed.stat().st_size if feed.exists() else 0
        run = forks.Popen([*command, *options, "-o", str(feed)], cwd=ROOT, stderr=subprocess.DEVNULL)
        for _ in range(600):
            if feed.exists() and feed.stat().st_size > before:
                break
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
        run.wait()
    found = tables(f"sqlite:///{path}")
    stored = {tuple(sorted(orjson.loads(row["params"]).items())) for row in found["retail_category_v4"]}
    items = [row["item_id"] for row in found["retail_category_v4_products"]]
    assert len(items) == len(set(items))
    whole = [
        text for text in feed.read_text().splitlines(keepends=True) if text.startswith("{") and text[-3:] == "}}\n"
    ]
    written = {tuple(sorted(json.loads(text)["params"].items())) for text in whole}
    assert written
    assert written <= stored


def test_a_crawl_without_records_creates_the_tables_of_its_scrapers(shop: Shop, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/out.db"
    run = shop.crawl("-a", "cat_id=1_2_3", "-O", url)
    assert run.returncode == 4, run.stderr
    made = [ScraperTables(each) for each in RetailSpider.scrapers]
    names = {table.table.name for each in made for table in (each.records, *each.lists)}
    assert tables(url) == {name: [] for name in names}
