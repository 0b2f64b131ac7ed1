"""Crawls and jobs that write to databases: each row once after repeated runs, exit codes, passwords, killed crawls."""

from __future__ import annotations

import json
import signal
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
from tests.crawls import ROOT
from tests.jobs.test_collect import Commands, commands, write
from tests.outputs.test_sql import Content
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


def test_a_job_exports_each_row_once_to_both_databases_and_new_rows_after_a_cursor(
    commands: Commands, tmp_path: Path, postgresql_store: str
) -> None:
    rows = [{"scraper": "retail-search-v4", "query": "mustard", "id": "own", "sku": "7"}]
    rows.append({"scraper": "microblog-profile", "username": "quiet_harbor"})
    targets = write(tmp_path / "targets.jsonl", rows)
    refused = commands.run("collect", targets, "--job", "one", "-O", "sqlite:////proc/%(name)s/out.db")
    assert (refused.returncode, commands.show("one")["targets"]["done"]) == (1, 0), "no request was sent"
    assert "sqlite:////proc/one/out.db: [Errno 2]" in refused.stderr
    run = commands.run("collect", targets, "--job", "one", "-O", f"sqlite:///{tmp_path}/%(name)s.db")
    assert run.returncode == 0, run.stderr
    lite = f"sqlite:///{tmp_path}/one.db"
    assert f"  data:       {lite}" in run.stderr
    first = tables(lite)
    for url in (lite, with_password(postgresql_store), with_password(postgresql_store)):
        export = commands.run("jobs", "export", "one", "-O", url, "--after", "0")
        assert export.returncode == 0, export.stderr
        assert url.replace("top%20secret", "").replace(":@", "@") in export.stderr.splitlines()
    assert tables(lite) == tables(postgresql_store) == first
    (row,) = first["retail_search_v4"]
    assert (row["target_id"], row["columns"], row["query"]) == ("own", {"sku": "7"}, "mustard")
    assert len(first["microblog_profile"]) == 1
    assert commands.run("jobs", "export", "one", "-O", f"{lite}.new", "--after", export.stdout.strip()).returncode == 0
    assert not any(tables(f"{lite}.new").values()), "nothing is new"
    for options, code, message in (
        ([lite, "--explode", "products"], 2, "a database gets whole records, in tables of each scraper"),
        (["postgresql://me:secret@127.0.0.1:9/db"], 1, "postgresql://me@127.0.0.1:9/db: connection failed"),
    ):
        run = commands.run("jobs", "export", "one", "-O", *options)
        assert (run.returncode, message in run.stderr, "secret" in run.stderr) == (code, True, False), run.stderr


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
        (["-O", "sqlite:///out.db", "-a", "explode=products"], 2, "sqlite:///out.db: a database gets whole records"),
        (["-O", "sqlite:///out.db", "-a", "fields=page"], 2, "sqlite:///out.db: a database gets whole records"),
        (["-O", "sqlite:///out.db:csv"], 2, "sqlite:///out.db: a database gets records in the format sql, not csv"),
        (["-O", "out.sql"], 2, "out.sql: the format sql needs the URL of a database, such as sqlite:///out.sql"),
        (["-s", "FAILURES_FEED=sqlite:///out.db"], 2, "FAILURES_FEED: a database gets only records: name a file"),
        (["-s", "FAILURES_FEED=f.csv"], 2, "FAILURES_FEED: the failures are JSON Lines, not CSV: name a file such as"),
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


def test_a_database_that_refuses_a_row_ends_the_crawl(shop: Shop, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/out.db"
    run = shop.crawl("-a", "cat_id=1_2_3", "-O", url)
    assert run.returncode == 4, run.stderr
    made = [ScraperTables(each) for each in RetailSpider.scrapers]
    assert tables(url) == {table.table.name: [] for each in made for table in (each.records, *each.lists)}
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


def number_of_lines(feed: Path) -> int:
    return feed.read_bytes().count(b"\n") if feed.exists() else 0


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
        before = number_of_lines(feed)
        run = forks.Popen([*command, *options, "-o", str(feed)], cwd=ROOT, stderr=subprocess.DEVNULL)
        for _ in range(6_000):
            if number_of_lines(feed) > before:
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
