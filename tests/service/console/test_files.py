"""The files of the console: their routes, what they load, and their size."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest
from scrapy.settings import Settings

from crawler.commands import serve
from crawler.service.console import pages
from tests.mutations import fixtures
from tests.service.conftest import ROOT

FOLDER = ROOT / "crawler" / "service" / "console"
VENDORED = json.loads((ROOT / "tests/service/vendored.json").read_text())
SERVED = [
    pytest.param({}, "127.0.0.1", True, id="loopback"),
    pytest.param({}, "::1", True, id="loopback-6"),
    pytest.param({}, "0.0.0.0", False, id="all-addresses"),
    pytest.param({"SERVICE_URL": "https://data.example.com"}, "127.0.0.1", False, id="behind-a-proxy"),
    pytest.param({"CONSOLE": True}, "0.0.0.0", True, id="on"),
    pytest.param({"CONSOLE": False}, "127.0.0.1", False, id="off"),
]


@pytest.mark.parametrize(("own", "host", "is_served"), SERVED)
def test_where_the_console_is_served(own: dict[str, object], host: str, *, is_served: bool) -> None:
    settings = Settings({"CONSOLE": "auto", "SERVICE_URL": None, **own})
    served = serve.console_pages(settings, argparse.Namespace(host=host, sandbox=False))
    assert bool(served) == is_served
    assert ("/" in served) == is_served


def test_without_its_package_there_is_no_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: find_spec(f"{name}_removed"))
    opts = argparse.Namespace(host="127.0.0.1", sandbox=True)
    assert serve.console_pages(Settings({"CONSOLE": True}), opts) == {}


def test_the_page_loads_nothing_from_elsewhere_and_evaluates_no_text() -> None:
    for sandbox in (True, False):
        policy = pages(sandbox=sandbox)["/"].headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
        assert "unsafe" not in policy
        assert ("https:" in policy) != sandbox, "the sandbox has no images"
        assert "https: " not in policy, "any host"
    own = "".join(content.body.decode() for path, content in pages(sandbox=False).items() if path.endswith(".js"))
    assert re.findall(r"\beval\(|new Function|innerHTML\s*=|document\.write", own.replace(vendored(), "")) == []
    assert re.findall(r"\beval\(|new Function", vendored()) == []


def test_images_of_records_are_loaded_only_from_their_platform_s_hosts() -> None:
    policy = pages(sandbox=False)["/"].headers["Content-Security-Policy"]
    sources = re.search(r"img-src ([^;]*)", policy)
    assert sources is not None
    allowed = [each.removeprefix("https://") for each in sources[1].split()[1:]]
    shown = {urlsplit(each).netloc for each in images_of_fixtures()}
    assert len(shown) >= 8
    others = {host for host in shown if not any(fnmatch(host, each) for each in allowed)}
    assert {host for host in others if not host.endswith(".example")} <= {
        "www.linkedin.com"
    }  # a placeholder image of the platform's page


def images_of_fixtures() -> Iterator[str]:
    """Yield the image URLs in the items of the sandbox and of all fixtures, recognised by the names of fields."""
    name = re.compile(r"image|picture|_pic|photo|logo|banner|thumbnail|display_u")

    def of(value: object, field: str = "") -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from of(inner, key)
        elif isinstance(value, list):
            for inner in value:
                yield from of(inner, field)
        elif isinstance(value, str) and value.startswith("https://") and name.search(field):
            yield value

    outputs = sorted((ROOT / "tests" / "fixtures").glob("*/*/output.json"))
    for item in (*(each.item for each in fixtures()), *(json.loads(each.read_text()) for each in outputs)):
        yield from of(item)


def vendored() -> str:
    return (FOLDER / "static/htm-preact.js").read_text()


def test_the_vendored_files_have_the_pinned_hashes() -> None:
    """If a vendored file changes, its hash in ``vendored.json`` must be changed, too."""
    folder = ROOT / "crawler/service"
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in VENDORED} == VENDORED
