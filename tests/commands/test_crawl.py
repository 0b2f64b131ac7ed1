"""``scrapy crawl`` and the other commands refuse wrong use with one sentence and exit code 2."""

from __future__ import annotations

import csv
import gzip
import importlib
import os
import re
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.cmdline import ScrapyArgumentParser
from scrapy.commands import ScrapyHelpFormatter
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

import crawler.settings
import social_retail_crawler
from crawler.commands.crawl import check_arguments, exit_code, with_format
from crawler.configuration.command import CheckedCommand, Exit
from crawler.registry import spider
from crawler.targets.sources import WrongTargetsError
from social_retail_crawler import OutsideProject
from tests.crawls import ROOT, crawl

COMMANDS = sorted(
    path.stem for path in (ROOT / "crawler/commands").glob("[!_]*.py") if "\nclass Command(" in path.read_text()
)


def project_settings(**values: object) -> Settings:
    settings = Settings()
    settings.setmodule(crawler.settings, priority="project")
    settings.setdict(values, priority="cmdline")
    return settings


@pytest.mark.parametrize(
    ("platform", "arguments", "problem"),
    [
        ("retail", {"cat_id": "1", "max_pages": "two"}, "max_pages=two: Input should be a valid integer"),
        ("retail", {"cat_id": "1", "max_pages": "0"}, "max_pages=0: Input should be greater than or equal to 1"),
        ("retail", {"cat_id": "1", "since": "2026-11-01x"}, "since=2026-11-01x: "),
        ("retail", {"query": "mustard", "exhaustive": "true"}, "only a category can be collected exhaustively"),
        (
            "retail",
            {"url": "walmart.com/search?q=mustard", "exhaustive": "true"},
            "only a category can be collected exhaustively",
        ),
        ("retail", {"cat_id": "1", "explode": "product"}, "explode=product: the data has no such list"),
        ("retail", {"cat_id": "1", "since": "last"}, "since=last requires a listing that is sorted by newest first"),
        ("retail", {"cat_id": "1", "max_page": "2"}, "no argument is called max_page; did you mean max_pages?"),
        ("retail", {"cat_id": "1", "zzz": "2"}, "no argument is called zzz; the arguments are scraper, targets, "),
        ("retail", {"cat_idd": "976759"}, "no argument is called cat_idd; did you mean cat_id?"),
        ("retail", {"cat_id": "food"}, "retail-category-v4: cat_id: a category's id is a number"),
        ("retail", {"query": "x", "page": "0"}, "retail-search-v4: page: Input should be greater than or equal to 1"),
        (
            "retail",
            {},
            "The crawl has no target: give targets=FILE, or the params of one of retail-category-v4: page, ",
        ),
        (
            "microblog",
            {"username": "x", "details": "maybe"},
            "microblog-profile: details: Input should be 'auto', 'all' or 'none', or a valid integer",
        ),
        ("retail", {"scraper": "nothing", "cat_id": "1"}, "Unknown scraper 'nothing': this spider has "),
        ("retail", {"targets": "typo.jsonl"}, "no such targets file: typo.jsonl"),
        ("retail", {"targets": "/"}, "no such targets file: /"),
        ("retail", {"targets": "a.jsonl", "page": "2"}, "targets files have the params of their targets: remove page="),
        ("retail", {"cat_id": "1", "shard": "1/2"}, "shard selects a part of targets files"),
        ("retail", {"cat_id": "1", "source": "x"}, "no argument is called source; did you mean "),
        ("retail", {"queue": "monday"}, "the argument queue was replaced by jobs: scrapy jobs push NAME FILE, then "),
        (
            "retail",
            {"cat_id": "1", "resume": "state"},
            "the argument resume was replaced by jobs: scrapy collect",
        ),
        (
            "microblog",
            {},
            "The crawl has no target: give targets=FILE, or the params of one of microblog-profile: username, ",
        ),
        ("microblog", {"username": "a b"}, "microblog-profile: username: "),
        ("professional", {"url": "https://elsewhere.example/"}, "professional-profile: url: "),
        ("shortvideo", {"keywords": "whales", "count": "many"}, "shortvideo-photo-search-v4: count: "),
        ("videosite", {"username": "https://www.youtube.com/watch"}, "videosite-profile-v3: username: "),
        ("photoapp", {"url": "https://www.instagram.com/"}, "photoapp-post-v4: url: "),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else None,
)
def test_wrong_arguments_are_explained_in_one_sentence(platform: str, arguments: dict[str, str], problem: str) -> None:
    with pytest.raises((ValueError, WrongTargetsError)) as raised:
        check_arguments(spider(platform), arguments, project_settings())
    assert str(raised.value).startswith(problem)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"cat_id": "976759", "_job": "1"},
        {"query": "mustard", "max_pages": "2", "explode": "products"},
        {"cat_id": "976759", "exhaustive": "true", "max_requests": "5"},
        {"targets": str(ROOT / "README.md")},
        {"targets": "nosuchprotocol://bucket/*"},  # detected only after the run has started: exit code 1
    ],
    ids=str,
)
def test_right_arguments_are_accepted(arguments: dict[str, str]) -> None:
    check_arguments(spider("retail"), arguments, project_settings())


def test_an_exhaustive_crawl_with_max_pages_is_refused() -> None:
    message = "an exhaustive crawl reads all pages: leave out max_pages"
    for pages in ("1", "2"):
        arguments = {"cat_id": "976759", "exhaustive": "true", "max_pages": pages}
        with pytest.raises(ValueError, match=message):
            check_arguments(spider("retail"), arguments, project_settings())


@pytest.mark.parametrize(
    ("uri", "settings", "problem"),
    [
        ("{}/file/out.jsonl", {}, r"cannot be written: .*Not a directory: '.*/file'$"),
        ("{}", {}, "cannot be written: .*Is a directory"),
        ("{}/file/%(time)s.jsonl", {}, "cannot be written: .*Not a directory"),
        ("{}/out.jsonl", {"FAILURES_FEED": "/dev/null/failures.jsonl"}, "cannot be written: .*Not a directory"),
        ("{}/out.jsonl", {"FEED_EXPORT_BATCH_ITEM_COUNT": 2}, r"batches need different names: add %\(batch_id\)d or "),
        ("{}/%(times)s.jsonl", {}, r"no placeholder is called times; use .*%\(time\)s"),
        ("nothing://out.jsonl", {}, "files cannot be written to nothing, only to "),
        ("s3:///out.jsonl", {}, "expected the name of a host or bucket after s3://"),
        ("ftp:///out.jsonl", {}, "expected the name of a host or bucket after ftp://"),
        ("s3://bucket/out.jsonl", {}, None),
        ("x", {"FEEDS": {"x.new": {"format": "new"}}}, "x.new: no feed format is called new; use one of csv, "),
        ("x", {"FEEDS": {"x.jsonl": {"format": None}}}, "x.jsonl: the option format is missing: use one of csv, "),
        ("x", {"FEEDS": {"x.jsonl": "jsonl"}}, "FEEDS: x.jsonl: expected the options of the feed, such as "),
        ("{}/%(name)s/%(query)s-%(batch_id)03d.jsonl", {"FEED_EXPORT_BATCH_ITEM_COUNT": 2}, None),
        ("{}/file", {}, None),
        ("stdout:", {}, None),
    ],
)
def test_a_feed_that_cannot_be_written_is_refused(
    tmp_path: Path, uri: str, settings: dict[str, Any], problem: str | None
) -> None:
    (tmp_path / "file").touch()
    given = project_settings(**{"FEEDS": {uri.format(tmp_path): {"format": "jsonlines"}}} | settings)
    with pytest.raises(ValueError, match=problem) if problem else nullcontext():
        check_arguments(spider("retail"), {"query": "mustard"}, given)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("scheme", "missing", "problem"),
    [
        ("s3", "boto3", "s3 needs the library boto3: install the extra 's3'"),
        ("gs", "google", "gs needs the library google.cloud.storage: install the extra 'gcs'"),
    ],
)
def test_a_feed_whose_storage_lacks_its_library_is_refused(
    scheme: str, missing: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    given = project_settings(FEEDS={f"{scheme}://bucket/out.jsonl": {"format": "jsonlines"}})
    with pytest.raises(ValueError, match=problem):
        check_arguments(spider("retail"), {"query": "mustard"}, given)


# Compressed feeds


@pytest.mark.parametrize(
    ("uri", "result"),
    [
        ("out.csv.gz", "out.csv.gz:csv"),
        ("out.jsonl.gz", "out.jsonl.gz:jsonl"),
        ("out.json.gz", "out.json.gz:json"),
        ("out.gz", "out.gz:jsonl"),
        ("s3://bucket/%(time)s.xml.gz", "s3://bucket/%(time)s.xml.gz:xml"),
        ("out.gz:csv", "out.gz:csv"),
        ("-:jsonl", "-:jsonl"),
        ("out.csv", "out.csv"),
    ],
)
def test_a_compressed_feed_has_the_format_of_its_name(uri: str, result: str) -> None:
    assert with_format(uri, project_settings().getwithbase("FEED_EXPORTERS").keys()) == result


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("out.tsv.gz", r"out\.tsv\.gz: no feed format is called tsv; write out\.tsv\.gz:FORMAT, with one of csv, "),
        ("out.xlsx.gz", r"out\.xlsx\.gz: .* already compressed; use out\.xlsx"),
        ("a.b/out.d.gz", r"no feed format is called d"),
    ],
)
def test_a_compressed_feed_without_a_format_is_refused(uri: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        with_format(uri, project_settings().getwithbase("FEED_EXPORTERS").keys())


@pytest.mark.parametrize(
    ("stats", "code"),
    [
        ({"targets/OK": 2}, 0),
        ({}, 0),
        ({"log_count/ERROR": 1}, 1),
        ({"targets/OK": 2, "log_count/ERROR": 1}, 0),
        ({"targets/OK": 2, "finish_reason": "shutdown"}, 1),
        ({"targets/OK": 2, "feedexport/failed_count/FileFeedStorage": 1}, 1),
        ({"targets/OK": 2, "targets/TARGET_NOT_FOUND": 1}, 4),
        ({"targets/OK": 2, "unread_rows/search/items": 1}, 4),
        ({"targets/OK": 2, "coverage/missing/search/fewer": 1}, 4),
        ({"targets/OK": 2, "targets/partial": 1}, 0),
    ],
)
def test_the_exit_code_of_a_crawl_by_its_stats(stats: dict[str, Any], code: int) -> None:
    found = {"finish_reason": "finished", **stats}
    ended: Any = SimpleNamespace(stats=SimpleNamespace(get_stats=lambda: found))
    assert exit_code(ended) == code


def test_a_compressed_csv_feed_without_a_failures_feed(tmp_path: Path) -> None:
    path = tmp_path / "out.csv.gz"
    code, out, _, log = crawl(
        tmp_path, "-a", "cat_id=976759", "-a", "explode=products", "-O", str(path), "-s", "FAILURES_FEED=None"
    )
    assert code == 0, log
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(out) > 1
    assert {"target_id", "name"} <= rows[0].keys()
    assert not Path("None").exists()


# Commands


class Parser(ArgumentParser):
    """A parser whose error messages the command replaces."""


def command_of(name: str) -> Any:
    command = importlib.import_module(f"crawler.commands.{name}").Command()
    command.settings = project_settings()
    return command


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "settings"])
def test_every_command_checks_the_settings(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of(name)
    assert isinstance(command, CheckedCommand)
    assert command.settings is not None
    command.settings.set("LOG_FILE", str(tmp_path / "log"))
    parser = Parser()
    command.add_options(parser)
    required = {"mcp": ["--url", "http://127.0.0.1:9"]}.get(name, [])
    options, arguments = parser.parse_known_args([*required, "-s", "SANDBOX=ture"])
    with pytest.raises(UsageError, match="SANDBOX: Input should be a valid boolean"):
        command.process_options(arguments, options)
    with pytest.raises(SystemExit) as exit_:
        parser.error("SANDBOX is wrong")  # as Scrapy does
    assert exit_.value.code == 2
    assert capsys.readouterr().err == (tmp_path / "log").read_text() == "SANDBOX is wrong.\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_text_becomes_a_heading(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_of(name)
    parser = ScrapyArgumentParser(formatter_class=ScrapyHelpFormatter, conflict_handler="resolve")
    command.add_options(parser)
    headings: set[str] = set()
    for columns in range(62, 200):  # at 60 columns, the help of Scrapy's own option -L is broken in this way
        monkeypatch.setenv("COLUMNS", str(columns))
        headings.update(re.findall(r"^(.*)\n[=-]+$", parser.format_help(), re.MULTILINE))
    assert headings <= {
        "Usage",
        "Options",
        "Global Options",
        "Positional Arguments",
        "Limits Of The Key To Create",
    }


# Outside of the project's folder


def scrapy(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**own, **environment},
        timeout=300,
    )


def entry_points() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = project["entry-points"]["scrapy.commands"]
    return found


def test_outside_of_the_project_a_command_says_where_to_run_it(tmp_path: Path) -> None:
    """The package is installed with the entry points of pyproject.toml."""
    installed = tmp_path / "installed" / "x-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 1\n")
    names = "\n".join(f"{name} = {value}" for name, value in entry_points().items())
    (installed / "entry_points.txt").write_text(f"[scrapy.commands]\n{names}\n")
    (tmp_path / "elsewhere").mkdir()
    run = scrapy(tmp_path / "elsewhere", "serve", "--port", "1", PYTHONPATH=f"{ROOT}:{installed.parent}")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "This command works only in the project: run it in the folder with the project's scrapy.cfg, "
        "or set SCRAPY_SETTINGS_MODULE=crawler.settings.\n"
    )


def test_every_command_has_an_entry_point() -> None:
    assert social_retail_crawler.WRONG_USE == Exit.WRONG_USE
    own = set(COMMANDS) - {"crawl", "settings"}  # Scrapy has commands with these names, and documents crawl
    assert entry_points() == dict.fromkeys(sorted(own), f"{OutsideProject.__module__}:{OutsideProject.__name__}")


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (["keys", "list"], "the setting KEYS_FILE"),
        (["serve", "--sandbox"], "the setting STORE"),
        (["crawl", "microblog", "-a", "username=a", "-a", "since=last"], "the setting STORE"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_without_a_project_folder_a_command_names_the_setting(
    tmp_path: Path, arguments: list[str], instead: str
) -> None:
    run = scrapy(tmp_path, *arguments, PYTHONPATH=str(ROOT), SCRAPY_SETTINGS_MODULE="crawler.settings")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"No scrapy.cfg in {tmp_path} or above: run the command in the project's folder, or use {instead}.\n"
    )


def test_the_keys_file_is_used_without_a_project_folder(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "crawler.settings"}
    run = scrapy(tmp_path, "keys", "create", "acme", CRAWLER_KEYS_FILE=str(tmp_path / "keys.sqlite"), **environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("sk_")


# Deployment


@pytest.mark.parametrize("path", sorted((ROOT / "deploy/kubernetes").glob("*.yaml")), ids=lambda path: path.name)
def test_pods_get_no_variables_of_services(path: Path) -> None:
    text = path.read_text()
    assert text.count("containers:") == text.count("enableServiceLinks: false") == 1
