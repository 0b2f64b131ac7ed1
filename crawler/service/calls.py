"""The routes of scrapers: each scraper has one under each of its names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from crawler.errors import (
    IdempotencyInProgress,
    IdempotencyMismatch,
    InvalidRequest,
    JobNotDone,
    JobNotFound,
    MethodNotAllowed,
    ScraperNotFound,
    documented,
)
from crawler.outputs.columns import column_type_of_models
from crawler.outputs.selection import Selection
from crawler.registry import find_scraper, scrapers
from crawler.service import usage
from crawler.service.envelope import Success, success
from crawler.service.route import JSON, SCRAPERS, Reply, Route, Wait, read_object
from crawler.targets.parser import check_params
from crawler.targets.target import Target

if TYPE_CHECKING:
    from crawler.service.envelope import Answer, Call
    from crawler.service.parts import Parts
    from crawler.targets.target import Scraper

DEFAULT_WAIT_SECONDS = 60
"""The default timeout of a call."""
SLOT_SECONDS = 15
"""A call without ``Prefer: wait=N`` waits at most this many seconds for its first download slot: a client that is told
at once when to retry is served better than one that waits, and may give up."""
NOT_FROM_SCRAPERS = {
    *(ScraperNotFound, MethodNotAllowed),
    *(JobNotFound, JobNotDone, IdempotencyInProgress, IdempotencyMismatch),
}
"""Errors of unknown routes, of methods and of jobs, which calls of a documented scraper cannot cause."""


class Scrape(Route):
    """A call of a scraper. ``scrape_routes()`` makes its subclasses: one for each name of a scraper."""

    method = "POST"
    errors = tuple(error for error in documented() if error not in NOT_FROM_SCRAPERS)
    of: ClassVar[Scraper]
    """The scraper."""

    fields: Annotated[str | None, Field(max_length=4_000)] = None
    """The fields of the data to return, with commas between them: ``name,price.current_price``. Objects in lists keep
    only these keys. Types in generated clients describe whole records."""
    wait: Wait = None
    """``wait=N``: the timeout of the call in seconds, 1 to 120 (RFC 7240). The default is 60."""

    async def answer(self, call: Call, parts: Parts) -> Answer:
        """Scrape the target in the body."""
        call.fields = None if self.fields is None else _selected(self.of.name, self.fields)
        params = check_params(self.of, read_object(call))
        call.note = params.note()
        if "idempotency-key" in call.request_headers:
            raise InvalidRequest.of("Idempotency-Key", "a call has none; send the target as a job (POST /v1/jobs)")
        call.wait = self.wait
        seconds = (self.wait or DEFAULT_WAIT_SECONDS) - call.duration_ms / 1000
        deadline = asyncio.get_running_loop().time() + seconds  # its clock need not be time.monotonic()
        target = Target(call.request_id, self.of, params, deadline=deadline)
        call.target = target.label
        async with parts.limits.in_flight(call.holder):
            await usage.check_quota(parts.store, call.holder)
            crawler = parts.crawlers.for_call(target)
            outcome = await crawler.scrape(target, seconds if self.wait else SLOT_SECONDS)
        if outcome.error:
            raise outcome.error
        assert outcome.record is not None
        return success(call, outcome.record, outcome.warnings)


def scrape_routes() -> list[type[Scrape]]:
    """Return a route for each name of each scraper."""
    return [_route(name, scraper) for name, scraper in scrapers().items()]


def _route(name: str, scraper: Scraper) -> type[Scrape]:
    about = scraper.params.__doc__ if name == scraper.name else f"An alias of ``{scraper.name}``."
    replies: Mapping[int, Reply] = {
        200: Reply("The scrape is complete.", Success[scraper.data], ("X-Partial",)),  # type: ignore[name-defined]  # a type that is made at run time
    }
    own: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"{scraper.summary}\n\n{about}",
        "path": f"{SCRAPERS}/{name}",
        "operation": name,
        "tag": scraper.platform,
        "calls": scraper.name,
        "of": scraper,
        "takes": {JSON: scraper.params},
        "example": scraper.example,
        "replies": replies,
    }
    return type(name, (Scrape,), own)


def _selected(scraper: str, text: str) -> Selection:
    """Return the fields of a record that a request selects.

    Raises:
        InvalidRequest: the data has no such field.
    """
    try:
        return _selection(scraper, text)
    except ValueError as error:
        raise InvalidRequest.of("fields", str(error)) from None


@lru_cache(256)
def _selection(name: str, text: str) -> Selection:
    scraper = find_scraper(name)
    found = Selection.parse(text, [scraper], None, sliced=False)
    fields = column_type_of_models([scraper.data]).of
    if other := found.tree.keys() - fields.keys():
        raise ValueError(f"the data has no field {min(other)!r}; its fields are {', '.join(fields)}")
    return found
