"""The setting EGRESSES: valid values, invalid values, and that no message contains credentials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawler.downloads.egress_setting import DIRECT, Egress, Proxy, check_egresses, egresses, egresses_of

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-x@:/"
LONG = f"{'hunter2 /@' * 60}\nhunter2"
"""A password of more than 500 characters, some of which should be encoded."""
PROXY = "http://me:hunter2-x%40%3A%2F@127.0.0.1:3128"


def parsed(value: object, **settings: Any) -> tuple[Egress, ...]:
    return egresses(Settings({"EGRESSES": value, **settings}))


@pytest.mark.parametrize("value", [[], "", None, "[]"])
def test_without_egresses_there_is_the_direct_connection(value: object) -> None:
    assert parsed(value) == (DIRECT,)


def test_a_list_its_json_and_a_file_are_the_same(tmp_path: Path) -> None:
    value = [{"name": "a", "proxy": PROXY}, {"name": "b", "proxy": PROXY, "platforms": ["retail"]}]
    file = tmp_path / "egresses.json"
    file.write_text(json.dumps(value))
    found = parsed(value)
    assert found == parsed(json.dumps(value)) == parsed(str(file))
    assert found[0].proxy == Proxy(host="127.0.0.1", port=3128, username="me", password=SECRET)
    assert [egress.serves("retail") for egress in found] == [True, True]
    assert [egress.serves("microblog") for egress in found] == [True, False]


def test_a_budget_replaces_only_its_keys() -> None:
    (egress,) = parsed([{"name": "a", "proxy": PROXY, "budgets": {"microblog": {"delay": 9}}}])
    settings = Settings({"PLATFORM_BUDGETS": {"microblog": {"concurrency": 4}}})
    budget = egress.budget("microblog", settings)
    assert (budget["concurrency"], budget["delay"], list(budget["sources"])) == (4, 9, ["timeline", "embed"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"name": "a", "proxy": f"https://{SECRET}@h:1"}], "https:// proxies cannot be used"),
        ([{"name": "a", "proxy": "https://me:hunter2-x@host:1"}], "https:// proxies cannot be used"),
        ([{"name": "a", "proxy": "socks5://me:hunter2-x@host:1"}], "socks5:// proxies cannot be used"),
        ([{"name": "a", "proxy": "socks://host:1"}], "socks:// proxies cannot be used"),
        ([{"name": "a", "proxy": "host:1"}], "a proxy is http://host:port"),
        ([{"name": "a", "proxy": "http://me:hunter2-x@host:port"}], "a proxy is http://host:port"),
        ([{"name": "a", "proxy": "http://host/hunter2-x"}], "a proxy is http://host:port"),
        ([{"name": "a", "proxy": 7}], "a proxy is http://host:port"),
        ([{"name": "a", "proxy": PROXY, "bind": "hunter2-x"}], "Extra inputs"),
        ([{"name": "a"}], "a: each egress needs a proxy, except 'direct'"),
        ([{"name": "a"}, {"name": "a"}], "the name 'a' occurs more than once"),
        ([{"name": "a b"}], "0.name"),
        ([{"name": "a", "hunter": 1}], "0.hunter"),
        ([{"name": "direct", "proxy": PROXY}], "direct: each egress needs a proxy, except"),
        ([{"name": "a", "platforms": ["nowhere"]}], "no platform is called nowhere"),
        ([{"name": "a", "budgets": {"nowhere": {}}}], "no platform is called nowhere"),
        ([{"name": "a", "platforms": ["retail"], "budgets": {"microblog": {}}}], "not in its platforms"),
        ([{"name": "a", "budgets": {"retail": {"concurrency": 0}}}], "concurrency"),
        ([{"name": "a", "budgets": {"retail": {"delay": -1}}}], "delay"),
        ("[{", "not valid JSON"),
        ({"name": "a"}, "expected a list"),
        ("/nowhere/egresses.json", "cannot read the file"),
        (PROXY, "cannot read the file 'http://...@127.0.0.1:3128'"),
        ([{"name": "a", "platforms": ["http://me:hunter2-x@host"]}], "no platform is called http://...@host"),
        ([{"name": "a", "http://me:hunter2-x@host": 1}], "0.http://...@host: Extra inputs"),
        (f"http://me:{LONG}@host", "cannot read the file 'http://...@host'"),
        (f"me:{LONG}@host", "cannot read the file '...@host'"),
        ([{"name": "a", "platforms": [f"http://me:{LONG}@host"]}], "no platform is called http://...@host"),
        ([{"name": "a", "budgets": {f"http://me:{LONG}@host": 1}}], "0.budgets.http://...@host: "),
        ([{"name": "a", f"http://me:{LONG}@host": 1}], "0.http://...@host: Extra inputs"),
    ],
)
def test_wrong_values_are_refused_without_their_credentials(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=r"^EGRESSES: ") as refused:
        parsed(value)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_every_platform_needs_an_egress() -> None:
    settings = Settings({"EGRESSES": [{"name": "a", "proxy": PROXY, "platforms": ["retail"]}]})
    assert [egress.name for egress in egresses_of("retail", settings)] == ["a"]
    with pytest.raises(ValueError, match="no egress serves microblog"):
        check_egresses(settings)


def test_zyte_and_egresses_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="ZYTE_API_KEY exclude each other"):
        check_egresses(Settings({"EGRESSES": [{"name": "a", "proxy": PROXY}], "ZYTE_API_KEY": "key"}))


def test_credentials_are_in_no_repr() -> None:
    (egress,) = parsed([{"name": "a", "proxy": PROXY}])
    assert egress.proxy is not None
    shown = f"{egress!r} {egress} {egress.proxy!r} {egress.proxy.url}"
    assert "hunter2" not in shown
    assert "me" not in shown.replace("name", "")
    assert egress.proxy.authorization is not None
