"""The generated Python client (openapi-python-client): complete, typed, and without loss of data."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

from crawler.platforms.model import schema_name
from crawler.registry import find_scraper, scrapers
from tests.openapi import DOCUMENT
from tests.service.conftest import ROOT, Service
from tests.service.in_process import RECORDED

PACKAGE = "sandbox_client"


@pytest.fixture(scope="module", autouse=True)
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Generate and import the client package. A warning of the generator fails the tests."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_text(json.dumps(DOCUMENT))
    command = ["generate", "--path", "openapi.json", "--output-path", PACKAGE, "--meta", "none", "--fail-on-warning"]
    run = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *command],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "warning" not in (run.stdout + run.stderr).lower(), run.stdout + run.stderr
    sys.path.insert(0, str(folder))
    try:
        yield import_module(PACKAGE)
    finally:
        sys.path.remove(str(folder))


def test_the_generator_has_the_version_of_the_page() -> None:
    pinned = f"openapi-python-client=={version('openapi-python-client')}"
    assert f"pip install {pinned}\n" in (ROOT / "docs/clients.md").read_text()
    assert pinned in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]


def endpoint(name: str) -> ModuleType:
    """Return the generated client's module for a scraper, by the scraper's name or alias."""
    return import_module(f"{PACKAGE}.api.{find_scraper(name).platform}.{name.replace('-', '_')}")


def model(name: str) -> Any:
    return getattr(import_module(f"{PACKAGE}.models"), name)


def connect(service: Service) -> Any:
    """Return a client for the service, made as in ``docs/clients.md``, for use in a ``with`` statement."""
    return import_module(PACKAGE).AuthenticatedClient(
        base_url=service.url, token="sandbox", auth_header_name="X-API-Key", prefix="", timeout=300
    )


@pytest.mark.parametrize("name", sorted(scrapers()))
def test_every_endpoint_of_the_client_has_its_own_types(name: str) -> None:
    scraper = find_scraper(name)
    types = get_type_hints(endpoint(name).sync)
    assert types["body"] is model(schema_name(scraper.params))
    assert set(get_args(types["return"])) == {
        model(f"{schema_name(scraper.data)}Success"),
        model("Failure"),
        type(None),
    }
    assert model(f"{schema_name(scraper.data)}Success").__annotations__["data"] == schema_name(scraper.data)


@pytest.mark.parametrize("name", RECORDED["successes"])
def test_every_recorded_record_is_an_object_of_the_client(name: str) -> None:
    example = RECORDED["successes"][name]
    success = model(f"{schema_name(find_scraper(name).data)}Success").from_dict(example)
    assert success.to_dict() == example
    assert isinstance(success.data, model(schema_name(find_scraper(name).data)))


def test_absent_keys_are_absent_in_the_client(service: Service) -> None:
    function = endpoint("retail-category-v4").sync_detailed
    with connect(service) as opened:
        response = function(client=opened, body=get_type_hints(function)["body"].from_dict({"cat_id": "976759"}))
    assert response.parsed.to_dict() == json.loads(response.content)
    wire = json.loads(response.content)["data"]["products"]
    unset = import_module(f"{PACKAGE}.types").Unset
    for product, sent in zip(response.parsed.data.products, wire, strict=True):
        assert isinstance(product.price.max_price, unset) is ("max_price" not in sent["price"])
        assert isinstance(product.flag, unset) is ("flag" not in sent)
        assert isinstance(product.badges, unset) is ("badges" not in sent)
    assert 0 < sum("max_price" not in sent["price"] for sent in wire) < len(wire)


@pytest.mark.parametrize("code", RECORDED["failures"])
def test_every_recorded_error_is_an_object_of_the_client(code: str) -> None:
    example = RECORDED["failures"][code]
    failure = model("Failure").from_dict(example)
    assert failure.error.code is model("ErrorCode")[code]
    assert failure.to_dict() == example


@pytest.mark.parametrize("name", ["catalogue", "usage", "healthz", "readyz"])
def test_the_objects_of_the_other_routes_equal_the_responses(service: Service, name: str) -> None:
    with connect(service) as opened:
        response = import_module(f"{PACKAGE}.api.service.{name}").sync_detailed(client=opened)
    assert response.parsed.to_dict() == json.loads(response.content)


def test_a_job_runs_with_the_client(service: Service) -> None:
    def api(name: str) -> Any:
        return import_module(f"{PACKAGE}.api.service.{name}")

    targets = [{"id": "a", "scraper": "retail-search-v4", "query": "mustard"}, {"id": "b", "url": "https://x.com/gone"}]
    with connect(service) as opened:
        body = [model("JobTarget").from_dict(each) for each in targets]
        made = api("create_job").sync(client=opened, body=body)
        assert (made.valid, made.records_at_most) == (2, 2)
        job_id = made.job.job_id
        while (job := api("job").sync(job_id, client=opened)).state != "done":
            time.sleep(0.1)
        (line,) = api("job_records").sync(job_id, client=opened).splitlines()
        (failure,) = api("job_failures").sync(job_id, client=opened).splitlines()
        assert api("jobs").sync(client=opened).jobs[0].to_dict()["job_id"] == job_id
        assert api("retry_job").sync(job_id, client=opened).retried == 0, "the platform has no such profile"
        assert api("retry_job").sync(job_id, client=opened, all_=True).retried == 1
        listing = model("JobListing").from_dict({**targets[0], "max_pages": 2})
        assert api("create_job").sync(client=opened, body=listing, dry_run=True).requests_at_most == 2
        assert api("delete_job").sync_detailed(job_id, client=opened).status_code == 204
    assert (job.targets.done, job.targets.failed) == (1, 1)
    assert (json.loads(line)["id"], json.loads(failure)["id"]) == ("a", "b")
