"""The tools of ``scrapy mcp``, with the official client: records, typed errors, parts of records."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import Tool

from crawler.mcp.tools import COLLECT, RECORDS, THIRD_PARTY, View, record_schemas
from crawler.mcp.tools import tools as scraper_tools
from crawler.sandbox.photoapp.site import Site as PhotoApp
from tests.mcp.clients import ENTRY, MAX_BYTES, SCRAPERS, call, text_of, with_client
from tests.service.conftest import Service


def test_every_scraper_is_a_tool_with_its_schemas(tools: dict[str, Tool], schemas: dict[str, Any]) -> None:
    assert tools.keys() == {*SCRAPERS, COLLECT, RECORDS}
    assert schemas.keys() == SCRAPERS.keys()
    for name, scraper in SCRAPERS.items():
        tool = tools[name]
        for schema in (tool.input_schema, schemas[name]):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert tool.input_schema["properties"].keys() == {*scraper.params.model_fields, *View.model_fields}
        jsonschema.validate({**scraper.example, "limit": 3, "fields": ["x"]}, tool.input_schema)
        assert THIRD_PARTY in (tool.description or "")
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint


def test_a_scraper_that_the_document_lacks_is_a_tool_without_a_schema() -> None:
    older: dict[str, Any] = {"paths": {}, "components": {"schemas": {}}}
    names = [ENTRY["name"], COLLECT, RECORDS]
    assert [tool.name for tool in scraper_tools([ENTRY])] == names
    assert record_schemas([ENTRY], older) == record_schemas([ENTRY], None) == {}


def test_us3_18_the_definitions_of_all_tools_are_small(tools: dict[str, Tool]) -> None:
    """A language model reads all definitions before its first call. They once had 136 kB."""
    assert sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools.values()) < 20_000


def test_an_unknown_resource_is_refused(service: Service) -> None:
    async def read(client: Client) -> None:
        with pytest.raises(MCPError, match="No resource has the URI 'schema://nothing'"):
            await client.read_resource("schema://nothing")

    with_client(service.url, read)


def test_no_scraper_has_a_param_with_the_name_of_an_argument_of_all_tools() -> None:
    for scraper in SCRAPERS.values():
        assert View.model_fields.keys().isdisjoint(scraper.params.model_fields)
    assert {COLLECT, RECORDS}.isdisjoint(SCRAPERS)


@pytest.mark.parametrize("name", sorted(SCRAPERS))
def test_each_tool_returns_a_record_that_fits_its_schema(service: Service, schemas: dict[str, Any], name: str) -> None:
    answer = call(service.url, name, {**SCRAPERS[name].example, "max_kb": 1_000})
    content = answer.structured_content
    assert not answer.is_error, content
    assert content["status"]["code"] == "OK"
    assert content["cut"] is None
    assert json.loads(text_of(answer)) == content
    assert len(text_of(call(service.url, name, {**SCRAPERS[name].example})).encode()) <= MAX_BYTES
    jsonschema.validate(content["data"], schemas[name])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"nonsense": 1}, schemas[name])


# Errors and partial records


@pytest.mark.parametrize(
    ("arguments", "code", "retryable"),
    [
        ({"query": "challenge"}, "UPSTREAM_BLOCKED", True),
        ({"query": "mustard", "page": "two"}, "INVALID_REQUEST", False),
        ({}, "INVALID_REQUEST", False),
    ],
)
def test_errors_are_typed_results(service: Service, arguments: dict[str, Any], code: str, *, retryable: bool) -> None:
    answer = call(service.url, "retail-search-v4", arguments)
    content = answer.structured_content
    assert answer.is_error
    assert (content["status"]["code"], content["status"]["retryable"]) == (code, retryable)
    assert content["status"]["message"]
    assert content["error"]["code"] == code
    assert content["request_id"].startswith("req_")
    assert content["data"] is None
    assert content["request_id"] in service.logged()


def test_an_invalid_param_is_named(service: Service) -> None:
    error = call(service.url, "retail-search-v4", {"query": "mustard", "pages": 2}).structured_content["error"]
    assert error["details"][0]["loc"] == ["pages"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"max_kb": "20"}, "max_kb"),
        ({"fields": "name"}, "fields"),
        ({"fields": [""]}, "fields.0"),
    ],
)
def test_an_invalid_argument_is_named_without_a_call(arguments: dict[str, Any], named: str) -> None:
    answer = call("http://127.0.0.1:9", "retail-search-v4", {"query": "mustard", **arguments})
    assert answer.is_error
    assert answer.structured_content["status"]["code"] == "INVALID_REQUEST"
    assert answer.structured_content["status"]["message"].startswith(f"{named}: ")


def test_wrong_keys_and_names_are_typed_results(service: Service) -> None:
    wrong_key = call(service.url, "retail-search-v4", {"query": "mustard"}, key="nonsense")
    assert wrong_key.structured_content["status"]["code"] == "INVALID_API_KEY"
    for name in ("nothing", "../usage", "retail-search-v4?x", ""):
        unknown = call(service.url, name, {"query": "mustard"})
        assert unknown.is_error
        assert unknown.structured_content["status"]["code"] in {"SCRAPER_NOT_FOUND", "METHOD_NOT_ALLOWED"}


def test_an_endpoint_that_cannot_be_reached_is_reported() -> None:
    answer = call("http://127.0.0.1:9", "retail-search-v4", {"query": "mustard"})
    assert answer.is_error
    assert answer.structured_content["status"]["code"] == "ENDPOINT_UNAVAILABLE"
    assert answer.structured_content["status"]["retryable"] is True
    assert "http://127.0.0.1:9" in answer.structured_content["status"]["message"]

    async def list_tools(client: Client) -> None:
        with pytest.raises(MCPError, match="Check that it runs"):
            await client.list_tools()

    with_client("http://127.0.0.1:9", list_tools)


def test_the_warning_of_a_partial_record_is_in_the_result(service: Service) -> None:
    content = call(
        service.url, "photoapp-post-v4", {"url": PhotoApp().url_of_fault("embed-forbidden")}
    ).structured_content
    assert content["success"] is True
    assert content["status"]["message"].startswith("Completed without: ")
    assert content["status"]["message"].removeprefix("Completed without: ").rstrip(".") in content["partial"]
    assert "code=" in content["partial"]
    whole = call(service.url, "photoapp-post-v4", SCRAPERS["photoapp-post-v4"].example).structured_content
    assert whole["partial"] is None
