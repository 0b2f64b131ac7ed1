"""Crawls into both databases: after runs with changed prices, their rows and price histories are equal."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import sqlalchemy as sa
from scrapy.exceptions import CloseSpider
from scrapy.settings import Settings

from crawler.outputs.sql.pipeline import SqlPipeline
from crawler.outputs.sql.rows import tables_of
from crawler.outputs.sql.sink import SqlSink
from crawler.sandbox.retail.site import Site
from crawler.spiders.retail import RetailSpider
from tests import forks
from tests.outputs.sql.conftest import empty_database
from tests.shop import ROOT, Shop, open_shop

TIME_COLUMNS = {"row_first_seen", "row_changed", "row_seen"}
SIX = ("-a", "cat_id=976759", "-a", "max_pages=6")


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


def content(url: str, *, with_times: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables, by default without the columns with times of the crawl."""
    sink = SqlSink(url, tables_of(RetailSpider.scrapers).values())
    with sink.engine.connect() as connection:
        found = {
            table.name: [
                {k: v for k, v in row.items() if with_times or k not in TIME_COLUMNS}
                for row in connection.execute(sa.select(table).order_by(*table.primary_key.columns)).mappings()
            ]
            for table in sink.metadata.sorted_tables
        }
    sink.close()
    return found


def test_both_databases_record_changed_prices(shop: Shop, tmp_path: Path, postgresql: str) -> None:
    urls = [str(tmp_path / "out.db"), empty_database(postgresql, "two_runs")]
    before = {p.item_id: p.cents for p in shop.site.products}
    first: dict[str, str] = {}
    for turn in range(3):
        for url in urls:
            run = shop.crawl(*SIX, SQL_SINK=url)
            assert run.returncode == 0, run.stderr
            if turn == 1:  # nothing had changed
                assert "'sql/new': 0" in run.stderr
                assert "'sql/changed': 0" in run.stderr
            first |= {row["item_id"]: row["row_digest"] for row in content(url)["retail_products"]} if not turn else {}
        if turn == 1:
            shop.reprice(lambda cents: cents + 100 if cents % 2 else cents)
    lite, post = map(content, urls)
    assert lite == post
    rows = {row["item_id"]: row for row in lite["retail_products"]}
    pages = [shop.site.expected_record({"cat_id": "976759", "page": page}) for page in range(1, 7)]
    expected = {product["item_id"]: product for page in pages for product in page["products"]}
    assert {k: row["price_current_price"] for k, row in rows.items()} == {
        k: product["price"]["current_price"] for k, product in expected.items()
    }
    changed = {key for key in rows if before[key] and before[key] % 2}  # type: ignore[operator]
    assert changed
    assert {key for key in rows if rows[key]["row_digest"] != first[key]} == changed
    past: dict[str, list[float | None]] = {}
    with_times = content(urls[0], with_times=True)["retail_products_history"]
    for row in sorted(with_times, key=lambda row: row["row_seen"]):
        past.setdefault(row["item_id"], []).append(row["price_current_price"])
    for key, prices in past.items():
        cents = before[key]
        old = None if cents is None else cents / 100
        assert prices == ([old, rows[key]["price_current_price"]] if key in changed else [old])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://x/y", "writes to SQLite and PostgreSQL, not to mysql"),
        ("postgresql://127.0.0.1:9/y", "Connection refused"),
        ("/nowhere/out.db", "unable to open database file"),
        ("postgresql://::bad", "SQL_SINK cannot be used"),
        ("sqlite:///nowhere/at/all.db", "unable to open database file"),
    ],
)
def test_an_unusable_database_ends_the_run(url: str, message: str) -> None:
    spider = SimpleNamespace(name="retail", on_demand=False, scrapers=RetailSpider.scrapers)
    crawler: Any = SimpleNamespace(settings=Settings({"SQL_SINK": url}), spider=spider)
    with pytest.raises(CloseSpider) as raised:
        asyncio.run(SqlPipeline.from_crawler(crawler).open_spider())
    assert message in raised.value.reason
    assert "\n" not in raised.value.reason


def test_a_crawl_without_its_database_fails(shop: Shop) -> None:
    run = shop.crawl("-a", "cat_id=976759", SQL_SINK="/nowhere/out.db")
    assert run.returncode == 1, run.stderr
    assert "SQL_SINK cannot be used: unable to open database file" in run.stderr


def test_a_rejected_record_does_not_fail_other_targets(shop: Shop, tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    shop.crawl("-a", "cat_id=1_2_3", SQL_SINK=str(path))
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "create trigger no before insert on retail_listings when new.page = 3 begin select raise(abort, 'no'); end"
        )
    targets = tmp_path / "targets.csv"
    targets.write_text("id,cat_id,page\n" + "".join(f"{page},976759,{page}\n" for page in range(1, 7)))
    failures = tmp_path / "failures.jsonl"
    run = shop.crawl("-a", f"targets={targets}", SQL_SINK=str(path), FAILURES_FEED=str(failures))
    assert run.returncode == 4, run.stderr
    with engine.connect() as connection:
        pages = connection.exec_driver_sql("select page from retail_listings order by page").scalars().all()
    assert pages == [1, 2, 4, 5, 6]
    (failure,) = failures.read_text().splitlines()
    assert '"id":"3"' in failure
    assert "INTERNAL_ERROR" in failure
    engine.dispose()


def test_a_killed_crawl_has_committed_the_rows_of_all_outcomes(shop: Shop, tmp_path: Path) -> None:
    """Lines are written to the feed after the outcome. The database must contain the rows of each line."""
    path, feed = tmp_path / "out.db", tmp_path / "out.jsonl"
    big = Site().big_category
    options = [part for k, v in (shop.settings() | {"SQL_SINK": str(path)}).items() for part in ("-s", f"{k}={v}")]
    command = [sys.executable, "-m", "scrapy", "crawl", "retail", "-a", "targets=" + str(tmp_path / "t.csv")]
    (tmp_path / "t.csv").write_text(
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
    rows = content(str(path))
    stored = {tuple(sorted(orjson.loads(row["target_params"]).items())) for row in rows["retail_listings"]}
    items = [row["item_id"] for row in rows["retail_products"]]
    assert len(items) == len(set(items))
    whole = [
        line for line in feed.read_text().splitlines(keepends=True) if line.startswith("{") and line[-3:] == "}}\n"
    ]
    written = {tuple(sorted(orjson.loads(line)["params"].items())) for line in whole}
    assert written
    assert written <= stored
