"""Information that the service gives about itself: links, redirect to the documentation, ``/llms.txt``, rate limits."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.web.resource import Resource

from crawler.errors import documented
from crawler.registry import scrapers
from crawler.service.edge import EdgeSite
from crawler.service.openapi import describe_error
from crawler.service.status import entries
from tests.openapi import DOCUMENT
from tests.service.client import CATEGORY
from tests.service.in_process import Transport, endpoint
from tests.service.states import TARGETS

URL = "https://data.example.com/scrape"


async def test_links_are_urls_of_the_service(tmp_path: Path) -> None:
    async with endpoint(tmp_path, SERVICE_URL=f"{URL}/", KEY_RATE="1000/minute") as at:
        sent = {"Content-Type": "application/json"}
        for method, path, headers, code in (
            ("POST", CATEGORY, sent, "INVALID_REQUEST"),
            ("GET", "/none", {}, "SCRAPER_NOT_FOUND"),
            ("GET", "/", {"Expect": "more"}, "EXPECTATION_FAILED"),
        ):
            reply = await at.send(method, path, b"{}" if headers is sent else b"", headers)
            assert reply.body["error"]["doc_url"] == f"{URL}/docs#{code}"
        assert (await at.send("GET", "/openapi.json")).body["servers"] == [{"url": URL}]
        assert (await at.send("POST", "/v1/jobs", TARGETS, sent)).headers["location"].startswith(f"{URL}/v1/jobs/")
        reply = await at.send("POST", CATEGORY, b'{"cat_id": "1"}', sent)
        names = {name for name in reply.headers if "ratelimit" in name}
        named = re.findall(r"`((?:X-)?RateLimit[\w-]*)`", DOCUMENT["info"]["description"])
        assert names == {name.lower() for name in named}
    assert DOCUMENT["servers"] == [{"url": "/"}]


def test_doc_url_is_a_url_where_a_connection_is_refused() -> None:
    transport = Transport()
    EdgeSite(Resource(), 0, service_url=URL).buildProtocol(None).makeConnection(transport)
    assert f'"doc_url":"{URL}/docs#OVERLOADED"' in transport.value().decode()


async def test_the_root_leads_to_the_documentation(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as at:
        reply = await at.send("GET", "/")
        assert (reply.status, reply.headers["location"]) == (302, "docs")


async def test_no_double_backticks_are_shown(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as at:
        for path in ("/docs", "/llms.txt", "/openapi.json", "/v1/scrapers"):
            assert "``" not in str((await at.send("GET", path)).body), path
        docs = (await at.send("GET", "/docs")).body.decode()
    assert re.search(r'<tr id="ITEM_DROPPED">', docs)
    assert "`" not in docs, "code is shown as code"


async def test_llms_txt_describes_each_scraper_and_error(tmp_path: Path) -> None:
    async with endpoint(tmp_path, SERVICE_URL=URL) as at:
        reply = await at.send("GET", "/llms.txt")
    text = reply.body.decode()
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.startswith("# ")
    assert f"{URL}/openapi.json" in text
    for entry in entries():
        section = text.split(f"### {entry['name']}\n")[1].split("###")[0]
        assert entry["summary"] in section
        for name, param in entry["params_schema"]["properties"].items():
            assert f"- `{name}` (" in section
            assert param["description"].split(".")[0].splitlines()[0] in section
        for alias in entry["aliases"]:
            assert f"`{alias}`" in section
    for error in documented():
        assert f"- `{error.code}` ({error.http_status}): {describe_error(error)}" in text
    assert {name for name in scrapers() if name not in text} == set()
