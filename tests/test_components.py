"""Users' components are added to the project's own ones, and no essential component can be disabled by accident."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

import crawler.settings
from crawler.commands.crawl import check_arguments
from crawler.components import BROWSER_HANDLER, COMPONENTS, ESSENTIAL
from crawler.registry import spider
from crawler.sandbox.retail.site import Site
from crawler.spiders.retail import RetailSpider
from tests import forks
from tests.crawls import ROOT, comparable, lines

OWN = "tests.own_components"
ADDED: dict[str, dict[str, Any]] = {
    "EXTENSIONS": {f"{OWN}.Webhook": 1},
    "ITEM_PIPELINES": {f"{OWN}.Pipeline": 300},
    "DOWNLOADER_MIDDLEWARES": {f"{OWN}.Middleware": 300},
    "SPIDER_MIDDLEWARES": {f"{OWN}.Middleware": 300},
    "FEED_EXPORTERS": {"own": f"{OWN}.Exporter"},
    "FEED_STORAGES": {"ftp": None},
    "DOWNLOAD_HANDLERS": {"ftp": None},
}
RAN = {"extension finished", "pipeline", "downloader middleware", "spider middleware", "exporter"}
WITH_OURS = {"crawler.Addon": 500, f"{OWN}.Addon": 600}
OPTIONAL = (
    "monitoring.progress.Progress",
    "monitoring.summary.Summary",
)
ARGUMENTS = ("-a", "cat_id=976759")


class Project:
    """A folder with a ``scrapy.cfg``. Scrapy commands that run in it can only connect to loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.refused = folder, folder / "own.log", folder / "refused.log"
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = crawler.settings\n")

    def run(self, *arguments: str, settings: Mapping[str, Any] | None = None, **environment: str) -> Any:
        options = [part for name, value in (settings or {}).items() for part in ("-s", f"{name}={_text(value)}")]
        return forks.run(
            [*forks.SCRAPY, *arguments, *options],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
                "OWN_LOG": str(self.log),
                "LOOPBACK_LOG": str(self.refused),
                **environment,
            },
            before="import tests.loopback_only",
        )

    @property
    def ran(self) -> set[str]:
        """The user's components that have run."""
        return set(self.log.read_text().splitlines()) if self.log.exists() else set()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def settings_with(**values: Any) -> Settings:
    settings = Settings()
    settings.setmodule(crawler.settings, priority="project")
    settings.setdict(values, priority="cmdline")
    return settings


def enabled(settings: Settings, name: str) -> list[type]:
    """Return the enabled components of a setting, in the order in which they run."""
    return [load_object(each) for each in build_component_list(settings.get_component_priority_dict_with_base(name))]


def applied(**values: Any) -> Settings:
    """Return the settings of a crawler after all add-ons were applied."""
    crawler = Crawler(RetailSpider, settings_with(**values))
    crawler.addons.load_settings(crawler.settings)
    return crawler.settings


@pytest.mark.parametrize(
    "way", ["command line", "settings module", pytest.param("environment", marks=pytest.mark.soak)]
)
def test_users_settings_only_add(project: Project, way: str) -> None:
    """With all settings of ``ADDED`` and an add-on, the user's components run. Records and feeds stay the same."""
    settings: dict[str, Any] = {"SANDBOX": "1", "FAILURES_FEED": "failures.jsonl"}
    given = ADDED | {"ADDONS": WITH_OURS}
    environment = {}
    if way == "settings module":
        lines_of_module = "".join(f"{name} = {value!r}\n" for name, value in given.items())
        (project.folder / "own_settings.py").write_text(f"from crawler.settings import *\n{lines_of_module}")
        (project.folder / "scrapy.cfg").write_text("[settings]\ndefault = own_settings\n")
    elif way == "environment":
        environment = {f"CRAWLER_{name}": json.dumps(value) for name, value in given.items()}
    else:
        settings |= given
    feeds = ("-O", "out.jsonl", "-O", "out.own:own", "-O", "out.csv")
    run = project.run("crawl", "retail", *ARGUMENTS, *feeds, settings=settings, **environment)
    assert run.returncode == 0, run.stderr
    assert project.ran == RAN | {"add-on"}
    assert not project.refused.exists()
    expected = Site().expected_record({"scraper": "retail-category-v4", "cat_id": "976759"})
    assert comparable(lines(project.folder / "out.jsonl")) == comparable([expected])
    assert {path.name for path in project.folder.glob("out.*")} == {"out.jsonl", "out.own", "out.csv"}


def test_the_guard_finds_requests_that_leave_loopback(project: Project) -> None:
    settings = {"PLATFORM_ORIGINS": '{"retail": "http://outside.test"}', "RETRY_TIMES": "0"}
    run = project.run("crawl", "retail", *ARGUMENTS, settings=settings)
    assert run.returncode == 4, run.stderr
    assert "outside.test" in project.refused.read_text()


def test_records_are_validated_with_a_users_pipeline(project: Project) -> None:
    settings = {"SANDBOX": "1", "ITEM_PIPELINES": {f"{OWN}.WrongTitle": 200}, "FAILURES_FEED": "failures.jsonl"}
    (project.folder / "targets.jsonl").write_text('{"id": "a", "cat_id": "976759"}\n')
    run = project.run("crawl", "retail", "-a", "targets=targets.jsonl", "-O", "out.jsonl", settings=settings)
    assert run.returncode == 4, run.stderr
    (failure,) = lines(project.folder / "failures.jsonl")
    assert (failure["id"], failure["code"]) == ("a", "EXTRACTION_FAILED")
    assert failure["details"][0]["loc"] == ["heading"]
    assert lines(project.folder / "out.jsonl") == []


@pytest.mark.parametrize("name", sorted(COMPONENTS))
def test_an_added_component_leaves_the_others_enabled(name: str) -> None:
    if name in {"DOWNLOAD_HANDLERS", "FEED_EXPORTERS", "FEED_STORAGES"}:
        merged = applied(**{name: ADDED[name]}).getwithbase(name)
        assert {**merged, **COMPONENTS[name], **ADDED[name]} == dict(merged)
        return
    ours = enabled(applied(), name)
    (own,) = ADDED[name]
    with_own = enabled(applied(**{name: ADDED[name]}), name)
    assert [each for each in with_own if each is not load_object(own)] == ours
    assert len(with_own) == len(ours) + 1
    assert {load_object(path) for path, order in COMPONENTS[name].items() if order is not None} <= set(ours)


def test_a_users_value_replaces_the_one_of_the_project() -> None:
    """The user's value wins even in a settings module, which has a lower priority than the command line."""
    given = {"FEED_EXPORTERS": {"csv": "own.Csv"}, "DOWNLOAD_HANDLERS": {"https": "own.Handler", "ftp": "own.Ftp"}}
    in_module = settings_with()
    in_module.setdict(given, priority="project")
    for crawler_ in (Crawler(RetailSpider, settings_with(**given)), Crawler(RetailSpider, in_module)):
        crawler_.addons.load_settings(crawler_.settings)
        for name, own in given.items():
            assert dict(crawler_.settings.getwithbase(name)) == {**applied().getwithbase(name), **own}


@pytest.mark.parametrize("handlers", [{}, {"ftp": None}, {"file": "own.File"}], ids=str)
def test_a_spider_that_needs_the_browser_has_its_handler(handlers: dict[str, Any]) -> None:
    crawler_ = Crawler(spider("shortvideo"), settings_with(DOWNLOAD_HANDLERS=handlers))
    crawler_.addons.load_settings(crawler_.settings)
    merged = dict(crawler_.settings.getwithbase("DOWNLOAD_HANDLERS"))
    assert merged == {**COMPONENTS["DOWNLOAD_HANDLERS"], "http": BROWSER_HANDLER, "https": BROWSER_HANDLER, **handlers}


# None

ESSENTIAL_CASES = [(name, path) for name, paths in ESSENTIAL.items() for path in paths]


@pytest.mark.parametrize("form", ["path", "class", "text"])
@pytest.mark.parametrize(("name", "path"), ESSENTIAL_CASES)
def test_essential_components_cannot_be_disabled(name: str, path: str, form: str) -> None:
    value: Any = {"path": {path: None}, "class": {load_object(path): None}, "text": json.dumps({path: None})}[form]
    with pytest.raises(UsageError, match=f"^{name} disables {path}: [^.]+. Remove the entry, or ") as raised:
        check_arguments(spider("retail"), {"cat_id": "976759"}, settings_with(SANDBOX=True, **{name: value}))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "path", "subclass"),
    [
        ("ITEM_PIPELINES", "crawler.pipelines.ValidationPipeline", "StricterValidation"),
        ("DOWNLOADER_MIDDLEWARES", "crawler.middlewares.ThrottleMiddleware", "SlowerThrottle"),
    ],
)
def test_an_essential_component_can_be_replaced_by_a_subclass(name: str, path: str, subclass: str) -> None:
    value = {path: None, f"{OWN}.{subclass}": 300}
    check_arguments(spider("retail"), {"cat_id": "976759"}, settings_with(**{name: value}))
    classes = enabled(applied(**{name: value}), name)
    assert load_object(f"{OWN}.{subclass}") in classes
    assert load_object(path) not in classes


def test_a_spiders_own_settings_cannot_disable_an_essential_component() -> None:
    class OwnSpider(RetailSpider):
        name = "own"
        custom_settings = {"ITEM_PIPELINES": {"crawler.pipelines.ValidationPipeline": None}}  # noqa: RUF012  # Scrapy's

    with pytest.raises(UsageError, match="records would not be validated"):
        Crawler(OwnSpider, settings_with())


@pytest.mark.parametrize(
    "addons",
    [
        {},
        {f"{OWN}.Addon": 1},
        {"scrapy_poet.Addon": 300},
        {"crawler.Addon": None},
        {"crawler.Addon": 500, f"{OWN}.Disabling": 600},
        {"crawler.Addon": 500, f"{OWN}.Disabling": 400},
    ],
    ids=str,
)
def test_no_add_on_of_a_user_disables_essential_components(addons: dict[str, int | None]) -> None:
    with pytest.raises(UsageError, match=r"^(ADDONS lacks crawler\.Addon, which |ITEM_PIPELINES disables crawler\.)"):
        applied(ADDONS=addons)


def test_components_that_only_report_can_be_disabled(project: Project) -> None:
    disabled = {"EXTENSIONS": dict.fromkeys(f"crawler.{name}" for name in OPTIONAL), "SANDBOX": "1"}
    run = project.run("crawl", "retail", *ARGUMENTS, "-O", "out.jsonl", settings=disabled)
    assert run.returncode == 0, run.stderr
    assert len(lines(project.folder / "out.jsonl")) == 1
    assert "event=progress" not in run.stderr


def test_a_spider_without_twisteds_reactor_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^TWISTED_REACTOR_ENABLED: the spiders of .* need Twisted's reactor$"):
        Crawler(RetailSpider, settings_with(TWISTED_REACTOR_ENABLED=False))


def test_a_spider_in_another_programs_event_loop_is_refused() -> None:
    """A notebook has such a loop."""

    async def crawl() -> None:
        Crawler(RetailSpider, settings_with())

    with pytest.raises(UsageError, match=r"^Twisted's reactor does not run, but another event loop does"):
        asyncio.run(crawl())


REFUSED = {
    "ITEM_PIPELINES": ({"crawler.pipelines.ValidationPipeline": None}, "records would not be validated"),
    "EXTENSIONS": ({"crawler.outputs.feeds.Feeds": None}, "records would not be written to the feeds"),
    "ADDONS": ({f"{OWN}.Addon": 1}, 'add "crawler.Addon": 500 to ADDONS'),
}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *((("crawl", "retail", *ARGUMENTS, "-O", "out.jsonl"), name) for name in REFUSED),
        (("probe", "retail-category-v4"), "EXTENSIONS"),
        (("serve", "--sandbox", "--port", "0"), "ITEM_PIPELINES"),
        (("serve", "--sandbox", "--port", "0"), "ADDONS"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_refused_start_is_one_sentence(project: Project, command: tuple[str, ...], name: str) -> None:
    value, reason = REFUSED[name]
    before = sorted(project.folder.rglob("*"))
    run = project.run(*command, settings={"SANDBOX": "1", "LOG_FILE": "log", name: value})
    assert (run.returncode, run.stdout) == (2, "")
    assert reason in run.stderr
    assert run.stderr.count("\n") == 1
    assert (project.folder / "log").read_text() == run.stderr
    assert not project.refused.exists()
    assert sorted(path for path in project.folder.rglob("*") if path.name != "log") == before
