"""The OpenAPI document: complete, valid, and consistent with a running service."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from crawler.errors import documented
from crawler.platforms.model import schema_name
from crawler.registry import scrapers
from crawler.service.calls import NOT_FROM_SCRAPERS
from crawler.service.openapi import describe_error
from tests.openapi import DOCUMENT, resolved
from tests.service.client import call
from tests.service.conftest import ROOT, Service


def test_the_document_is_valid() -> None:
    validate(DOCUMENT)


def test_the_service_serves_the_document(service: Service) -> None:
    assert call(service.url, "/openapi.json", method="GET", headers={}).body == DOCUMENT


def test_the_document_has_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert DOCUMENT["info"]["version"] == project["version"]


NAMES = {
    "/healthz": {"get": "healthz"},
    "/readyz": {"get": "readyz"},
    "/v1/jobs": {"get": "jobs", "post": "create-job"},
    "/v1/jobs/{job_id}": {"get": "job", "delete": "delete-job"},
    "/v1/jobs/{job_id}/changes": {"get": "job-changes"},
    "/v1/jobs/{job_id}/failures": {"get": "job-failures"},
    "/v1/jobs/{job_id}/records": {"get": "job-records"},
    "/v1/jobs/{job_id}/retry": {"post": "retry-job"},
    "/v1/jobs/{job_id}/runs": {"post": "repeat-job"},
    "/v1/scrapers": {"get": "catalogue"},
    "/v1/usage": {"get": "usage"},
}


def test_operations_keep_the_names_that_clients_call() -> None:
    """Generated clients name their functions by them."""
    of_scrapers = {f"/v1/scrapers/{name}": {"post": name} for name in scrapers()}
    assert NAMES | of_scrapers == {
        path: {method: operation["operationId"] for method, operation in methods.items()}
        for path, methods in DOCUMENT["paths"].items()
    }


def test_the_document_has_every_scraper_under_each_of_its_names() -> None:
    paths = {path.rpartition("/")[2] for path in DOCUMENT["paths"] if path.startswith("/v1/scrapers/")}
    assert paths == set(scrapers())
    for name, scraper in scrapers().items():
        operation = DOCUMENT["paths"][f"/v1/scrapers/{name}"]["post"]
        body = resolved(operation["requestBody"])["content"]["application/json"]
        assert operation["summary"] == scraper.summary
        schema = resolved(body["schema"])
        assert set(schema["properties"]) == set(scraper.params.model_fields)
        validator(body["schema"]).validate(scraper.example)


OPERATIONS = [one for part in ("paths", "webhooks") for path in DOCUMENT[part].values() for one in path.values()]


@pytest.mark.parametrize("name", sorted(scrapers()))
def test_every_scraper_has_every_error_under_its_status(name: str) -> None:
    responses = DOCUMENT["paths"][f"/v1/scrapers/{name}"]["post"]["responses"]
    for error in documented():
        if error not in NOT_FROM_SCRAPERS:
            described = resolved(responses[str(error.http_status)])
            assert f"`{error.code}`" in described["description"]
            content = described["content"]["application/json"]
            example = content["examples"][error.code]
            assert describe_error(error).startswith(example["summary"])
            if "value" in example:
                validator(content["schema"]).validate(example["value"])


@pytest.mark.parametrize("name", sorted(scrapers()))
def test_the_example_of_a_scraper_matches_its_schema(name: str) -> None:
    content = resolved(DOCUMENT["paths"][f"/v1/scrapers/{name}"]["post"]["responses"]["200"])["content"]
    validator(content["application/json"]["schema"]).validate(content["application/json"]["example"])


def test_every_field_is_described() -> None:
    known = {each["name"] for each in DOCUMENT["components"]["parameters"].values() if "description" in each}
    for name, schema in DOCUMENT["components"]["schemas"].items():
        fields = schema.get("properties", {})
        known |= {field for field, part in fields.items() if is_described(part)}
        assert fields.keys() <= known, f"{name}: {fields.keys() - known}"
        assert not any({"title", "group"} & part.keys() for part in fields.values()), f"{name}: words for forms"


def is_described(part: dict[str, Any]) -> bool:
    """Return whether a field, or the model of its value, has a description.

    A description that a parameter, or an earlier model, has for a field of the same name is not repeated.
    """
    return "description" in part or "description" in resolved(part)


def test_only_params_have_defaults() -> None:
    params = {schema_name(scraper.params) for scraper in scrapers().values()}
    with_defaults = {
        name
        for name, schema in DOCUMENT["components"]["schemas"].items()
        if any("default" in field for field in schema.get("properties", {}).values())
    }
    assert with_defaults
    assert with_defaults <= params
    price = DOCUMENT["components"]["schemas"]["RetailPrice"]
    assert "max_price" not in price["required"]


def test_the_names_of_schemas_are_unique_and_own() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert all(re.fullmatch(r"[A-Z][A-Za-z0-9]+", name) for name in schemas)
    assert {"VideositeProfile", "PhotoappPost", "RetailProduct", "RetailListingSuccess", "Failure"} <= schemas.keys()


def test_operations_and_tags_are_described() -> None:
    for each in [*OPERATIONS, *DOCUMENT["tags"]]:
        assert each["description"], each
    assert {tag for operation in OPERATIONS for tag in operation["tags"]} == {tag["name"] for tag in DOCUMENT["tags"]}


def test_every_error_is_described_in_a_sentence() -> None:
    for error in documented():
        assert re.fullmatch(r"(When|For|Without) .+\.", describe_error(error)), describe_error(error)


def validator(schema: dict[str, Any]) -> OAS31Validator:
    """Return a validator for a schema of the document."""
    return OAS31Validator({**schema, "components": DOCUMENT["components"]})


@pytest.mark.parametrize(
    ("examples", "at_least"),
    [pytest.param(4, 30, id="a few"), pytest.param(3_000, 5_000, id="thousands", marks=pytest.mark.soak)],
)
def test_the_service_matches_its_document(service: Service, tmp_path: Path, examples: int, at_least: int) -> None:
    config = str(Path(__file__).with_name("schemathesis.toml"))
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", config),
            *("run", f"{service.url}/openapi.json", "--header", "X-API-Key: sandbox", "--checks", "all"),
            *("--max-examples", str(examples), "--generation-deterministic", "--continue-on-failure", "--no-color"),
            *("--suppress-health-check", "all", "--request-timeout", "120", "--max-response-time", "120"),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.service.schemathesis_hooks"},
    )
    assert run.returncode == 0, run.stdout[-6_000:] + run.stderr[-2_000:]
    counted = re.search(r"(\d+) generated", run.stdout)
    assert counted, run.stdout
    assert int(counted[1]) >= at_least
    assert "Traceback" not in service.logged()
