"""scrapy-poet's injection: one plan per callback, and a new plan if the cached one could be wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import andi
import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy_poet.api import DummyResponse
from scrapy_poet.injection import DynamicDeps
from scrapy_poet.page_input_providers import PageObjectInputProvider
from web_poet import HttpResponse, PageParams, WebPage

from crawler.middlewares import PlannedInjection


class Page(WebPage[dict[str, str]]):
    pass


class Other(Page):
    pass


def spider_with(callback: Any) -> Spider:
    kind: type[Spider] = type("TestSpider", (Spider,), {"name": "test", "callback": callback})
    return kind()


def needs_page(self: Spider, response: Any, page: Page) -> None:
    pass


def needs_nothing(self: Spider, response: DummyResponse) -> None:
    pass


def needs_dynamic(self: Spider, response: Any, dynamic: DynamicDeps) -> None:
    pass


def injection(callback: Any, **settings: Any) -> tuple[PlannedInjection, Any]:
    spider = spider_with(callback)
    crawler = Crawler(type(spider), Settings({"SCRAPY_POET_DISCOVER": [], **settings}))
    crawler.spider = spider
    crawler.stats = MemoryStatsCollector(crawler)
    middleware = PlannedInjection(crawler)
    return middleware, getattr(spider, "callback")  # noqa: B009  # the attribute is not part of the type


def injected(middleware: PlannedInjection, request: Request) -> dict[str, Any]:
    response = HtmlResponse(request.url, body=b"<p>", request=request)
    asyncio.run(middleware.process_response(request, response))
    return request.cb_kwargs


def test_a_callback_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    middleware, callback = injection(needs_page)
    planned: list[object] = []
    plan = andi.plan

    def recorded_plan(callback: Any, **options: Any) -> Any:
        planned.append(callback)
        return plan(callback, **options)

    monkeypatch.setattr(andi, "plan", recorded_plan)
    pages = [injected(middleware, Request(f"https://a.example/{n}", callback=callback))["page"] for n in range(3)]
    assert [str(page.url) for page in pages] == [f"https://a.example/{n}" for n in range(3)], (
        "each page has its own response"
    )
    assert planned.count(callback) == 1


def test_override_rules_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    middleware, callback = injection(needs_page)
    assert type(injected(middleware, Request("https://a.example/", callback=callback))["page"]) is Page
    # A real rule's matcher would download the list of public suffixes.
    monkeypatch.setattr(middleware.registry, "get_rules", lambda: ["a rule"])
    monkeypatch.setattr(
        middleware.registry, "overrides_for", lambda url: {Page: Other} if "//b.example" in str(url) else {}
    )
    assert type(injected(middleware, Request("https://a.example/", callback=callback))["page"]) is Page
    assert type(injected(middleware, Request("https://b.example/", callback=callback))["page"]) is Other


def test_dependencies_in_meta_are_injected() -> None:
    middleware, callback = injection(needs_dynamic)
    for kind in (HttpResponse, PageParams):
        request = Request("https://a.example/", callback=callback, meta={"inject": [kind]})
        assert list(injected(middleware, request)["dynamic"]) == [kind]


@pytest.mark.parametrize(("callback", "downloaded"), [(needs_page, True), (needs_nothing, False)])
def test_unused_responses_are_not_downloaded(callback: Any, downloaded: bool) -> None:  # noqa: FBT001  # a column of the table
    middleware, bound = injection(callback)
    for _ in range(2):
        response = middleware.process_request(Request("https://a.example/", callback=bound))
        assert (response is None) is downloaded


def test_providers_of_the_project_are_used() -> None:
    class Provider(PageObjectInputProvider):
        provided_classes = {HttpResponse}  # noqa: RUF012  # scrapy-poet's own form

        def __call__(self, to_provide: set[Any]) -> list[Any]:
            return [HttpResponse("https://theirs.example/", b"theirs")]

    middleware, callback = injection(needs_page, SCRAPY_POET_PROVIDERS={Provider: 1})
    page = injected(middleware, Request("https://a.example/", callback=callback))["page"]
    assert bytes(page.response.body) == b"theirs"
