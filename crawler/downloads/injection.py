"""scrapy-poet's injection, with one plan per callback instead of one per response.

The dependencies of a callback follow from its annotations alone, unless a rule overrides page objects by URL or a
request requests more (``meta["inject"]``). scrapy-poet plans twice for each request, and once for each provider of the
page object's inputs. Measured with scrapy-poet 0.27: 0.56 ms of CPU time per request, 0.05 ms here; a call of the
endpoint with a light page takes 5 ms in total. Its main branch caches plans: drop this module when that is released.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import Response
from scrapy_poet.downloadermiddlewares import DEFAULT_PROVIDERS, InjectionMiddleware
from scrapy_poet.injection import Injector, get_callback
from web_poet import HttpResponse, HttpResponseHeaders, PageParams

if TYPE_CHECKING:
    import andi
    from scrapy.crawler import Crawler


def _response(_request: Request, response: Response) -> HttpResponse:
    headers = HttpResponseHeaders.from_bytes_dict(response.headers)
    return HttpResponse(response.url, response.body, status=response.status, headers=headers)


def _params(request: Request, _response: Response) -> PageParams[str, Any]:
    return PageParams(request.meta.get("page_params", {}))


INPUTS: dict[Any, Callable[[Request, Response], Any]] = {HttpResponse: _response, PageParams: _params}
"""Inputs of every page object, made as scrapy-poet's own providers make them."""


class PlannedInjector(Injector):
    """Caches each callback's plan, and whether its response must be downloaded, for the life of its crawler."""

    def __init__(self, crawler: Crawler, **kwargs: Any) -> None:
        super().__init__(crawler, **kwargs)
        self._plans: dict[Callable[..., Any], andi.Plan] = {}
        self._required: dict[Callable[..., Any], bool] = {}
        self._own_providers = bool(crawler.settings.getdict("SCRAPY_POET_PROVIDERS"))

    def build_plan(self, request: Request) -> andi.Plan:
        """The plan by which the arguments of the request's callback are built."""
        callback = self._planned_once(request)
        if callback is None:
            return super().build_plan(request)
        if callback not in self._plans:
            self._plans[callback] = super().build_plan(request)
        return self._plans[callback]

    def is_scrapy_response_required(self, request: Request) -> bool:
        """Whether the request must be downloaded at all."""
        callback = self._planned_once(request)
        if callback is None:
            return bool(super().is_scrapy_response_required(request))
        if callback not in self._required:
            self._required[callback] = bool(super().is_scrapy_response_required(request))
        return self._required[callback]

    async def build_instances_from_providers(
        self, request: Request, response: Response, plan: andi.Plan
    ) -> dict[Any, Any]:
        """Make ``INPUTS`` directly. The providers make all other instances, and these too where a project or an add-on
        has its own providers or caches responses.
        """
        kinds: list[Any] = [kind for kind, _ in plan.dependencies]
        needed = [kind for kind in kinds if self.is_class_provided_by_any_provider(kind)]
        if self.cache or self._own_providers or not all(kind in INPUTS for kind in needed):
            instances: dict[Any, Any]
            instances = await super().build_instances_from_providers(request, response, plan)
            return instances
        return {kind: INPUTS[kind](request, response) for kind in needed}

    def _planned_once(self, request: Request) -> Callable[..., Any] | None:
        """The request's callback where the plan depends on nothing else, else None."""
        if "inject" in request.meta or self.registry.get_rules():
            return None
        callback: Callable[..., Any] = get_callback(request, self.spider)
        return callback


class PlannedInjection(InjectionMiddleware):
    """scrapy-poet's middleware with the injector above."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.injector = PlannedInjector(crawler, default_providers=DEFAULT_PROVIDERS, registry=self.registry)
