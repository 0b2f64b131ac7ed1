"""Optional dependencies are imported only when they are used, and a message names the missing extra."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.exceptions import CloseSpider
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from crawler.components import COMPONENTS
from crawler.outputs.sql.pipeline import SqlPipeline
from crawler.spiders.retail import RetailSpider
from tests.crawls import ROOT
from tests.forks.server import import_installed

OPTIONAL = {"sqlalchemy", "psycopg", "spidermon", "jinja2", "boto3", "duckdb", "httpx2", "mcp", "xlsxwriter"}


def test_components_of_every_crawl_import_no_optional_library() -> None:
    extensions, pipelines, exporters = map(COMPONENTS.__getitem__, ("EXTENSIONS", "ITEM_PIPELINES", "FEED_EXPORTERS"))
    components = [*extensions, *pipelines, *exporters.values()]
    loads = "; ".join(f"load_object({name!r})" for name in components)
    program = (
        f"import sys; from scrapy.utils.misc import load_object; {loads}; import crawler.registry; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert set(loaded) & OPTIONAL == set()
    assert all(load_object(name) for name in components)


def test_the_tests_import_only_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "crawler.downloads.zyte_handlers", raising=False)
    monkeypatch.setitem(sys.modules, "scrapy_zyte_api.handler", None)  # importing it raises ModuleNotFoundError
    import_installed("crawler.downloads.zyte_handlers")
    with pytest.raises(ModuleNotFoundError):
        import_installed("crawler.downloads.nothing")


HEAVY = OPTIONAL | {"aiobotocore", "openpyxl", "pandas", "playwright", "prometheus_client", "scrapy_playwright"}
AT_EXIT = """
import atexit, gc, sys
atexit.register(lambda: print("at exit:", gc.get_freeze_count(), len(gc.get_objects()), *sys.modules))
from scrapy.cmdline import execute
execute()
"""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("--help",), id="help"),
        pytest.param(("crawl", "retail", "-a", "cat_id=976759", "-s", "SANDBOX=1"), id="a crawl of one target"),
    ],
)
def test_sp_4_a_command_starts_without_what_only_others_need(command: tuple[str, ...], tmp_path: Path) -> None:
    folder = ("-s", f"STORE={tmp_path / 'store.sqlite3'}") if command[1:] else ()
    run = subprocess.run(
        [sys.executable, "-c", AT_EXIT, *command, *folder], check=True, capture_output=True, text=True, cwd=ROOT
    )
    frozen, left, *modules = run.stdout.rpartition("at exit: ")[2].split()
    assert set(modules) & HEAVY == set()
    assert int(frozen) > 100 * int(left), "the collector searches all modules when the process exits"


def crawler(**values: Any) -> Any:
    spider = SimpleNamespace(name="retail", on_demand=False, scrapers=RetailSpider.scrapers)
    return SimpleNamespace(settings=Settings(values), spider=spider)


def test_sql_sinks_name_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    pipeline = SqlPipeline.from_crawler(crawler(SQL_SINK="postgresql://x/y"))
    with pytest.raises(CloseSpider) as raised:
        asyncio.run(pipeline.open_spider())
    assert "install the extra 'postgresql'" in raised.value.reason
