"""Every declared setting is checked for wrong types, values out of range and misspelled names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings, default_settings

import crawler.settings
from crawler.configuration.command import check_settings, misspelled_name
from tests import forks, settings_page
from tests.crawls import ROOT

PROPERTIES: dict[str, dict[str, Any]] = crawler.settings.Settings.model_json_schema()["properties"]
"""The JSON schema of each setting."""
WRONG_TYPES: dict[str, list[object]] = {
    "integer": ["many", "", "1.5", 1.5, True, None, [], {}],
    "number": ["1m", "", "nan", "inf", True, None, [], {}],
    "boolean": ["ture", "", 2, None, [], {}],
    "array": [5, {"a": 1}, None],
    "object": ["fast", "[1]", [1], 5, None],
    "string": [True, [], {"a": 1}],
}
SPECIAL: dict[str, list[object]] = {
    "BROWSER_FALLBACK": ["retial", "professional", ["retail", "x"], [1]],
    "EGRESSES": [
        "/no/file.json",
        "[1]",
        [{"name": "a", "proxy": "socks5://127.0.0.1:1"}],
        [{"name": "a", "proxy": "http://127.0.0.1:1", "platforms": ["retail"]}],
    ],
    "JOBS_KEEP": [0],
    "JOBS_MAX": [0],
    "SERVICE_MAX_JOB_BYTES": [0],
    "KEY_RATE": ["lots", "0/minute", "600/fortnight", "-1/minute", 5],
    "LOGSTATS_INTERVAL": [-1],
    "LOG_LEVEL": ["INF", "info", True, None, -1],
    "PLATFORM_BUDGETS": [
        '{"retial": {}}',
        '{"retail": 2}',
        '{"retail": {"delay": -1}}',
        '{"retail": {"concurrency": 0}}',
        '{"retail": {"concurency": 1}}',
        '{"retail": {"delay": "fast"}}',
        '{"microblog": {"sources": {"timeline": {"concurrency": 1, "delay": "1m"}}}}',
    ],
    "PLATFORM_IDS": ['{"retail": "/x"}', '{"microblog": 3}', '{"microblog": "/no/file.json"}'],
    "PLATFORM_ORIGINS": [
        '{"retial": "http://127.0.0.1:1"}',
        '{"retail": 5}',
        '{"retail": "ftp://x"}',
        '{"retail": "http://127.0.0.1/path"}',
        '{"retail": {}}',
        '{"retail": {"api": "http://127.0.0.1:1"}}',
    ],
    "RETRY_GIVE_UP_LOG_LEVEL": ["LOUD"],
    "RETRY_HTTP_CODES": ["five", [0], "500,5xx"],
    "SERVICE_HIDDEN_ROUTES": ["/healthz", ["/docs", "/x"], "docs"],
    "SERVICE_INTERNAL_ADDRESS": ["x", "9100", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1"],
    "STORE": ["mysql://host/db"],
    "SERVICE_URL": ["data.example.com", "ftp://data.example.com", "https://data.example.com?x=1"],
}
"""Invalid values of the right Python type, for types whose limits are not numbers."""
WITHOUT_BOUNDS = {
    "API_KEYS",  # scrapy serve checks the keys
    "BROWSER_BLOCKED_TYPES",
    "BROWSER_TRACKERS",
    "FAILURES_FEED",
    "KEYS_FILE",
    "MCP_API_KEY",
    "PLAYWRIGHT_LAUNCH_OPTIONS",
    "RETRY_PRIORITY_ADJUST",
    "SANDBOX_RENAMES",
    "USER_AGENT",
    "WEBHOOK_SECRET",
    "ZYTE_API_KEY",
}
"""Settings for which the check of the settings accepts every value of the right type."""


def schema_of(name: str) -> dict[str, Any]:
    """The JSON schema of a setting's type; for an optional setting, without None."""
    schema = PROPERTIES[name]
    return next((each for each in schema.get("anyOf", []) if each != {"type": "null"}), schema)


def wrong_types(name: str) -> list[object]:
    found = WRONG_TYPES.get(schema_of(name).get("type", ""), [[1], {"a": 1}])
    return [value for value in found if value is not None or PROPERTIES[name].get("type")]


def out_of_range(name: str) -> list[object]:
    schema = schema_of(name)
    bounds = [
        schema[key] + step
        for key, step in {"minimum": -1, "exclusiveMinimum": 0, "maximum": 1}.items()
        if key in schema
    ]
    return [*bounds, *map(str, bounds), *SPECIAL.get(name, [])]


def settings_with(**values: object) -> Settings:
    """The project's settings with some values replaced."""
    settings = Settings()
    settings.setmodule(crawler.settings, priority="project")
    settings.setdict(values, priority="cmdline")
    return settings


def problem_of(**values: object) -> str:
    with pytest.raises(ValueError, match=r"\.$") as raised:
        check_settings(settings_with(**values), {})
    return str(raised.value)


def test_each_declared_setting_has_wrong_types_and_values_out_of_range() -> None:
    assert {name for name in PROPERTIES if not wrong_types(name)} == set()
    without = {name for name in PROPERTIES if not out_of_range(name)}
    switches = {name for name in without if schema_of(name).get("type") == "boolean"}
    assert without - switches == WITHOUT_BOUNDS


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_wrong_value_is_explained_in_one_sentence(name: str) -> None:
    for value in [*wrong_types(name), *out_of_range(name)]:
        problem = problem_of(**{name: value})
        assert re.match(rf"{name}[.: ]", problem), value
        assert problem.endswith("."), value
        assert "\n" not in problem, value


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("TARGETS_IN_FLIGHT", 0, "Input should be greater than or equal to 1"),
        ("SANDBOX", "ture", "Input should be a valid boolean, unable to interpret input"),
        ("BROWSER_QUIET", 0, "Input should be greater than 0"),
        ("KEY_RATE", "lots", "expected a rate limit such as 60/minute"),
        ("BROWSER_FALLBACK", "retial", "no platform is called retial; use microblog, photoapp, professional, retail, "),
    ],
)
def test_a_wrong_value_is_explained_by_its_setting_and_the_problem(name: str, value: object, problem: str) -> None:
    assert problem_of(**{name: value}).startswith(f"{name}: {problem}")


def test_a_wrong_value_inside_an_object_is_explained_by_its_place() -> None:
    problem = problem_of(PLATFORM_BUDGETS='{"retail": {"delay": -1}}')
    assert problem == "PLATFORM_BUDGETS.retail.delay: Input should be greater than or equal to 0."


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ZYTE_API_KEY", ["secret"], "secret"),
        ("STORE", "mysql://user:secret@host", "secret"),
        ("PLAYWRIGHT_LAUNCH_OPTIONS", '[{"password": "secret"}]', "secret"),
    ],
)
def test_secrets_are_not_printed(name: str, value: object, secret: str) -> None:
    assert secret not in problem_of(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "converted"),
    [
        ("TARGETS_IN_FLIGHT", "8", 8),
        ("TARGET_TIMEOUT", "0.5", 0.5),
        ("SANDBOX", "1", True),
        ("SANDBOX", "true", True),
        ("SANDBOX", 0, False),
        ("BROWSER_FALLBACK", "retail, photoapp", ["retail", "photoapp"]),
        ("BROWSER_BLOCKED_TYPES", "[]", []),
        ("BROWSER_BLOCKED_TYPES", '["image"]', ["image"]),
        ("BROWSER_BLOCKED_TYPES", "", []),
        ("RETRY_HTTP_CODES", "500,503", [500, 503]),
        ("PLATFORM_BUDGETS", '{"retail": {"delay": "2"}}', {"retail": {"delay": 2.0}}),
        ("PLATFORM_ORIGINS", '{"retail": "http://[::1]:1"}', {"retail": "http://[::1]:1"}),
        ("KEYS_FILE", Path("keys.sqlite"), "keys.sqlite"),
        ("KEYS_FILE", "", None),
        ("ZYTE_API_KEY", 123, "123"),
        ("SERVICE_INTERNAL_ADDRESS", "[::1]:9100", "[::1]:9100"),
        ("LOG_LEVEL", 10, 10),
        ("KEY_RATE", "1/minute", "1/minute"),
    ],
)
def test_a_right_value_is_converted_to_the_type(name: str, value: object, converted: object) -> None:
    settings = settings_with(**{name: value})
    check_settings(settings, {})
    assert settings[name] == converted
    assert type(settings[name]) is type(converted)


@pytest.mark.parametrize("value", ["None", "", "null", None])
def test_none_switches_the_failures_feed_off(value: object) -> None:
    settings = settings_with(FAILURES_FEED=value)
    check_settings(settings, {})
    assert settings["FAILURES_FEED"] is None


def test_the_defaults_are_right_and_stay_as_they_are() -> None:
    settings = settings_with()
    check_settings(settings, {})
    assert {name: settings[name] for name in PROPERTIES} == {
        name: getattr(crawler.settings, name, vars(default_settings).get(name)) for name in PROPERTIES
    }


# Names


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        (
            "CRAWLER_TARGETS_IN_FLIHGT",
            "no setting is called TARGETS_IN_FLIHGT; did you mean CRAWLER_TARGETS_IN_FLIGHT?",
        ),
        ("CRAWLER_sandbox", "no setting is called sandbox; did you mean CRAWLER_SANDBOX?"),
        ("CRAWLER_KEYFILE", "no setting is called KEYFILE; did you mean CRAWLER_KEYS_FILE?"),
        ("CRAWLER_COOKIES_ENABLD", "no setting is called COOKIES_ENABLD; did you mean CRAWLER_COOKIES_ENABLED?"),
        ("CRAWLER_MAIL_PROT", "no setting is called MAIL_PROT; did you mean CRAWLER_MAIL_PORT?"),
    ],
)
def test_a_misspelled_variable_is_refused_with_the_nearest_name(variable: str, problem: str) -> None:
    assert misspelled_name(settings_with(), {"PATH": "/bin", variable: "1"}) == f"{variable}: {problem}"


@pytest.mark.parametrize(
    "variable",
    [
        "CRAWLER_ENDPOINT_SERVICE_HOST",
        "CRAWLER_ENDPOINT_SERVICE_PORT",
        "CRAWLER_ENDPOINT_SERVICE_PORT_HTTP",
        "CRAWLER_ENDPOINT_PORT",
        "CRAWLER_ENDPOINT_PORT_80_TCP",
        "CRAWLER_ENDPOINT_PORT_80_TCP_PROTO",
        "CRAWLER_ENDPOINT_PORT_80_TCP_PORT",
        "CRAWLER_ENDPOINT_PORT_80_TCP_ADDR",
        "CRAWLER_SERVICE_HOST",
        "CRAWLER_PORT",
        "CRAWLER_PORT_53_UDP",
        "SCRAPY_SETTINGS_MODULE",
        "CRAWLER",
        "CRAWLER_",
    ],
)
def test_variables_of_kubernetes_and_of_others_are_ignored(variable: str) -> None:
    assert misspelled_name(settings_with(), {variable: "tcp://10.0.0.1:80"}) is None


@pytest.mark.parametrize(
    "name",
    [
        *sorted(PROPERTIES),
        "HTTPCACHE_ENABLED",  # Scrapy
        "AWS_ACCESS_KEY_ID",
        "PLAYWRIGHT_BROWSER_TYPE",  # scrapy-playwright
        "SPIDERMON_SLACK_SENDER_TOKEN",  # Spidermon
        "SCRAPY_POET_CACHE",  # scrapy-poet
        "ZYTE_API_URL",  # scrapy-zyte-api
        "ZYTE_API_ETH_KEY",
        "SPIDERMON_AWS_SECRET_ACCESS_KEY",
        "DELTAFETCH_ENABLED",  # a package that is not installed here
    ],
)
def test_names_of_scrapy_and_of_packages_are_accepted(name: str) -> None:
    assert misspelled_name(settings_with(**{name: "1"}), {f"CRAWLER_{name}": "1"}) is None


def misspellings(name: str) -> Iterator[str]:
    """Yield the name with letters in the middle swapped, omitted, doubled or replaced, or with an S at the end."""
    middle = next(n for n in range(len(name) // 2, len(name)) if name[n - 1] != name[n])
    before, letter, after = name[:middle], name[middle], name[middle + 1 :]
    yield before[:-1] + letter + before[-1] + after
    yield before + after
    yield before + letter + letter + after
    yield f"{before}Q{after}"
    yield name + "S"


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_a_setting_one_letter_off_is_refused(name: str) -> None:
    for wrong in misspellings(name):
        problem = misspelled_name(settings_with(**{wrong: "1"}), {})
        assert problem is not None, wrong
        assert problem.startswith(f"{wrong}: no setting is called {wrong}; did you mean ")


def test_other_names_are_the_users_own() -> None:
    own = {"MY_PIPELINE_URL": "x", "SANDBOX_OF_MINE": 1, "MONITOR_DIRS": "x"}
    assert misspelled_name(settings_with(**own), {}) is None


# The fields


def test_every_setting_of_the_project_has_a_type_and_a_meaning() -> None:
    in_module = {name for name in vars(crawler.settings) if name.isupper() and not hasattr(default_settings, name)}
    assert in_module == {name for name in PROPERTIES if not hasattr(default_settings, name)}
    assert [name for name, schema in PROPERTIES.items() if not schema.get("description")] == []


def test_the_page_of_settings_is_written_from_the_fields() -> None:
    page = settings_page.PAGE.read_text()
    assert settings_page.written(page) == page, "run python -m tests.settings_page"


def test_the_check_imports_no_platform() -> None:
    code = (
        "import sys; from scrapy.utils.project import get_project_settings;"
        "from crawler.configuration.command import check_settings; check_settings(get_project_settings());"
        "print([name for name in sys.modules if name.startswith('crawler.platforms.') and name.endswith('.pages')])"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == "[]\n"


# Commands in processes of their own


@pytest.mark.parametrize(
    ("command", "environment", "problem"),
    [
        (
            ["crawl", "retail", "-a", "cat_id=976759", "-s", "SANDBXO=1"],
            {},
            "SANDBXO: no setting is called SANDBXO; did you mean SANDBOX?",
        ),
        (
            ["crawl", "retail", "-a", "cat_id=976759"],
            {"CRAWLER_TARGETS_IN_FLIGHT": "many"},
            "TARGETS_IN_FLIGHT: Input should be a valid integer, unable to parse string as an integer.",
        ),
        (["serve"], {"CRAWLER_SERVICE_MAX_CALS": "9"}, "CRAWLER_SERVICE_MAX_CALS: no setting is called"),
        (["serve"], {"CRAWLER_PLAYWRIGHT_LAUNCH_OPTIONS": '{"proxy": {}}'}, "PLAYWRIGHT_LAUNCH_OPTIONS: remove proxy."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list | dict) else None,
)
def test_commands_refuse_wrong_settings(
    tmp_path: Path, command: list[str], environment: dict[str, str], problem: str
) -> None:
    keep, log = tmp_path / "keep.jsonl", tmp_path / "log"
    keep.write_text("kept\n")
    feeds = ["-s", f"FEEDS={json.dumps({str(keep): {'format': 'jsonlines', 'overwrite': True}})}"]  # as Scrapyd does
    run = forks.run(
        [sys.executable, "-m", "scrapy", *command, *feeds, "-s", f"LOG_FILE={log}"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(problem)
    assert run.stderr.count("\n") == 1
    assert (keep.read_text(), log.read_text()) == ("kept\n", run.stderr)
