"""scrapy-poet's injection, with the plan of a callback made once instead of for every response.

What a callback needs follows from its annotations alone, as long as no rule exchanges page objects by URL and no
request asks for more (``meta["inject"]``). scrapy-poet plans twice for each request, which was a tenth of a call's
processor time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_poet.downloadermiddlewares import DEFAULT_PROVIDERS, InjectionMiddleware
from scrapy_poet.injection import Injector, get_callback

if TYPE_CHECKING:
    from collections.abc import Callable

    import andi
    from scrapy import Request
    from scrapy.crawler import Crawler


class PlannedInjector(Injector):
    """Keeps each callback's plan, and whether its response must be downloaded, for as long as its crawler lives."""

    def __init__(self, crawler: Crawler, **kwargs: Any) -> None:
        super().__init__(crawler, **kwargs)
        self._plans: dict[Callable[..., Any], andi.Plan] = {}
        self._required: dict[Callable[..., Any], bool] = {}

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

    def _planned_once(self, request: Request) -> Callable[..., Any] | None:
        """The request's callback where it alone decides the plan, else None."""
        if "inject" in request.meta or self.registry.get_rules():
            return None
        callback: Callable[..., Any] = get_callback(request, self.spider)
        return callback


class PlannedInjection(InjectionMiddleware):
    """scrapy-poet's middleware with the injector above."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.injector = PlannedInjector(crawler, default_providers=DEFAULT_PROVIDERS, registry=self.registry)
