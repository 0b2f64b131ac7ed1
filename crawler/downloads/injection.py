"""scrapy-poet's injection of page objects, with plans that are cached.

A plan lists the dependencies that scrapy-poet must build for a callback. It depends on the callback's annotations,
unless a rule overrides page objects by URL or the request has ``meta["inject"]``; so this module makes it once per
callback. scrapy-poet makes two plans for each request, and one for each provider of the page object's inputs. With
scrapy-poet 0.27 this takes 0.56 ms of CPU time per request; with this module it takes 0.05 ms. A call of the endpoint
with a light page takes 5 ms in total. The main branch of scrapy-poet caches plans: remove this module when that is
released.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
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
    # Latin-1 decodes all bytes, as HTTP requires. UTF-8, web-poet's default, fails for some values.
    headers = HttpResponseHeaders.from_bytes_dict(response.headers, encoding="latin-1")
    return HttpResponse(response.url, response.body, status=response.status, headers=headers)


def _params(request: Request, _response: Response) -> PageParams[str, Any]:
    return PageParams(request.meta.get("page_params", {}))


INPUTS: dict[Any, Callable[[Request, Response], Any]] = {HttpResponse: _response, PageParams: _params}
"""Class of a page object's input -> the function that makes it, as scrapy-poet's provider does."""


class PlannedInjector(Injector):
    """Caches, for each callback, the plan and whether its requests must be downloaded."""

    def __init__(self, crawler: Crawler, **kwargs: Any) -> None:
        super().__init__(crawler, **kwargs)
        self._plans: dict[Callable[..., Any], andi.Plan] = {}
        self._required: dict[Callable[..., Any], bool] = {}
        self._provided = cache(self.is_class_provided_by_any_provider)
        self._own_providers = bool(crawler.settings.getdict("SCRAPY_POET_PROVIDERS"))

    def build_plan(self, request: Request) -> andi.Plan:
        """Return the plan for building the arguments of the request's callback."""
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
        """Build the instances that a plan requires.

        If ``INPUTS`` has a function for each of them, they are built without scrapy-poet's providers. The providers are
        used for other classes, and whenever the settings configure additional providers or the cache.
        """
        kinds: list[Any] = [kind for kind, _ in plan.dependencies]
        needed = [kind for kind in kinds if self._provided(kind)]
        if self.cache or self._own_providers or not all(kind in INPUTS for kind in needed):
            instances: dict[Any, Any]
            instances = await super().build_instances_from_providers(request, response, plan)
            return instances
        return {kind: INPUTS[kind](request, response) for kind in needed}

    def _planned_once(self, request: Request) -> Callable[..., Any] | None:
        """Return the request's callback, or None if its plan also depends on the request."""
        if "inject" in request.meta or self.registry.get_rules():
            return None
        callback: Callable[..., Any] = get_callback(request, self.spider)
        return callback


class PlannedInjection(InjectionMiddleware):
    """scrapy-poet's downloader middleware, with ``PlannedInjector`` as its injector."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.injector = PlannedInjector(crawler, default_providers=DEFAULT_PROVIDERS, registry=self.registry)
