"""Optional dependencies are imported only when they are used, and a message names the missing extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scrapy.utils.misc import load_object

from crawler.components import COMPONENTS
from crawler.outputs.sql import Database
from tests.crawls import ROOT
from tests.forks.server import import_installed

OPTIONAL = {"sqlalchemy", "psycopg", "spidermon", "jinja2", "boto3", "duckdb", "httpx2", "mcp", "uvicorn", "xlsxwriter"}


def test_components_of_every_crawl_import_no_optional_library() -> None:
    names = ("EXTENSIONS", "ITEM_PIPELINES", "FEED_EXPORTERS", "FEED_STORAGES")
    extensions, pipelines, exporters, storages = map(COMPONENTS.__getitem__, names)
    components = [*extensions, *pipelines, *exporters.values(), *storages.values()]
    loads = "; ".join(f"load_object({name!r})" for name in components)
    program = (
        f"import sys; from scrapy.utils.misc import load_object; {loads}; import crawler.registry; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert set(loaded) & OPTIONAL == set()
    assert all(load_object(name) for name in components)


def test_the_tests_import_only_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "crawler.downloads.zyte", raising=False)
    monkeypatch.setitem(sys.modules, "scrapy_zyte_api.handler", None)  # importing it raises ModuleNotFoundError
    import_installed("crawler.downloads.zyte")
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
def test_a_command_starts_without_what_only_others_need(command: tuple[str, ...], tmp_path: Path) -> None:
    folder = ("-s", f"STORE={tmp_path / 'store.sqlite3'}") if command[1:] else ()
    run = subprocess.run(
        [sys.executable, "-c", AT_EXIT, *command, *folder], check=True, capture_output=True, text=True, cwd=ROOT
    )
    frozen, left, *modules = run.stdout.rpartition("at exit: ")[2].split()
    assert set(modules) & HEAVY == set()
    assert int(frozen) > 100 * int(left), "the collector searches all modules when the process exits"


def test_a_database_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ValueError, match=r"postgresql://x/y needs a driver .*: install the extra 'postgresql'"):
        Database("postgresql://x/y")
