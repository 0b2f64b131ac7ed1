"""If a platform changes its page between two runs, the monitors report the missing fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings

from crawler.monitoring.monitors import Monitors
from tests.shop import Shop, open_shop


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


def monitored(shop: Shop, folder: Path, **settings: object) -> tuple[str, str, str]:
    """Crawl ten pages with monitors. Return the monitors' log line, and their reports in Markdown and HTML."""
    (folder / "t.csv").write_text("cat_id,page\n" + "".join(f"976759,{n}\n" for n in range(1, 11)))
    run = shop.crawl("-a", f"targets={folder / 't.csv'}", MONITORS=1, MONITORS_DIR=folder / "runs", **settings)
    (line,) = (line for line in run.stderr.splitlines() if "monitors_done" in line)
    html = Path(re.findall(r"report=(\S+)", line)[0])
    return line, html.with_suffix(".md").read_text(), html.read_text()


def test_a_renamed_key_is_reported_as_a_changed_page(shop: Shop, tmp_path: Path) -> None:
    line, _, _ = monitored(shop, tmp_path)
    assert "no earlier runs to compare with" in line
    line, _, _ = monitored(shop, tmp_path)
    assert "No changes" in line

    shop.alter = lambda body: body.replace(b'"averageRating"', b'"meanRating"')
    line, markdown, html = monitored(shop, tmp_path)
    assert "ok=false" in line
    headline = "The platform changed its page. Missing: products[].rating.average of retail-category-v4."
    assert headline in line
    assert headline in markdown
    assert headline in html
    assert markdown.count("**vanished**") == 1
    plots = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(plots) == 2
    for plot in plots:
        ET.fromstring(plot)  # noqa: S314  # written by this project
    assert "products[].rating.average" in plots[1]

    shop.alter = lambda body: body.replace(b'"itemStacks"', b'"stacks"')
    line, markdown, _ = monitored(shop, tmp_path)
    assert "The platform changed its page. Missing: props.pageProps.initialData.searchResult.itemStacks." in line
    assert "| EXTRACTION_FAILED | 10 | 100.0 % | 0.0 % | **more" in markdown


def test_a_failed_report_does_not_fail_the_crawl(shop: Shop, tmp_path: Path) -> None:
    def lose_the_folder(body: bytes) -> bytes:
        (tmp_path / "runs/retail").write_text("a file in place of the folder of the run")
        return body

    shop.alter = lose_the_folder
    run = shop.crawl("-a", "cat_id=976759", MONITORS=1, MONITORS_DIR=tmp_path / "runs")
    assert run.returncode == 0
    assert "monitor_action_failed" in run.stderr


def test_us_6_runs_in_the_sandbox_are_not_compared_with_real_runs(tmp_path: Path) -> None:
    spider = SimpleNamespace(on_demand=False, name="retail")

    def folder(*, sandbox: bool) -> Path:
        settings = Settings({"MONITORS_DIR": str(tmp_path), "SANDBOX": sandbox})
        return Monitors(cast("Any", SimpleNamespace(settings=settings, spider=spider)), object).history.folder

    assert folder(sandbox=False) == tmp_path / "retail"
    assert folder(sandbox=True) == tmp_path / "sandbox" / "retail"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "set MONITORS_DIR, or run the command in the folder of scrapy.cfg"),
        ({"MONITORS_DIR": "a-file"}, "MONITORS cannot write to its folder a-file: File exists"),
        ({"MONITORS_DIR": "a-file/below"}, "MONITORS cannot write to its folder a-file/below: Not a directory"),
    ],
)
def test_us_3_monitors_without_a_folder_end_the_run(
    settings: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "crawler.settings")
    (tmp_path / "a-file").write_text("")
    values = {"MONITORS": True, "MONITORS_SUITE": "crawler.monitoring.suite.Suite", **settings}
    crawler = SimpleNamespace(settings=Settings(values), spider=SimpleNamespace(name="retail", on_demand=False))
    with pytest.raises(RuntimeError, match=re.escape(message)):
        Monitors.from_crawler(crawler)  # type: ignore[arg-type]


def test_a_missing_suite_fails_the_run(shop: Shop) -> None:
    run = shop.crawl("-a", "cat_id=976759", MONITORS=1, MONITORS_SUITE="missing.Suite")
    assert run.returncode == 1
    assert "MONITORS needs the extra" in run.stderr


@pytest.mark.parametrize(("on_demand", "enabled"), [(True, 1), (False, 0)])
def test_only_batch_runs_with_the_setting_are_monitored(*, on_demand: bool, enabled: int) -> None:
    crawler = SimpleNamespace(
        settings=Settings({"MONITORS": enabled}), spider=SimpleNamespace(name="retail", on_demand=on_demand)
    )
    with pytest.raises(NotConfigured):
        Monitors.from_crawler(crawler)  # type: ignore[arg-type]
