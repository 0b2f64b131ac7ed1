"""What all page objects share: their inputs, and the gate for what no page of data ever is."""

# No "from __future__ import annotations": the inputs' types must be classes, so that they can be injected into
# subclasses whose modules do not import them.

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
from web_poet import HttpResponse, ItemPage, PageParams

from crawler.errors import (
    Detail,
    ExtractionFailed,
    ScrapeError,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.reading.values import retry_after_seconds

REFUSALS = frozenset({401, 403, 407, 412, 418, 451, 999})
"""Statuses by which platforms turn a visitor away, whatever they stand for elsewhere."""


@attrs.define(slots=False)
class PlatformPage(ItemPage[dict]):  # type: ignore[type-arg]  # web-poet takes the class that it instantiates
    """Reads one response of a platform. Does no I/O.

    A page class adds fields; ``validate_input`` is their gate and raises typed errors. ``to_item`` is not overridden.
    """

    response: HttpResponse
    page_params: PageParams  # type: ignore[type-arg]  # the injector knows the bare class only
    """What was asked for, so that the page can tell whether it is the answer."""

    item_cls: ClassVar[type[dict[str, Any]]] = dict
    """What the fields make. Stated, since web-poet looks through the bases' generic parameters for it at each item."""

    _item: dict[str, Any] | None = attrs.field(default=None, init=False, eq=False, repr=False)

    source: ClassVar[str]
    """A word for this kind of response, unique among its platform's."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        """Whether a saved response, of which nothing else is known, is of this kind."""
        raise NotImplementedError

    async def to_item(self) -> dict[str, Any]:
        """The item made of the fields: the same one each time it is awaited, so that a page is read once."""
        if self._item is None:
            self._item = await super().to_item()
        return self._item

    _gate_passed = False

    def _validate_input(self) -> None:
        """Run ``validate_input`` once, before the first field.

        The only override of a private method of web-poet's, which has no public way to this (0.24): ``ItemPage``
        remembers its verdict by ``cached_method``, that is, by a method bound to the page and kept on the page. In that
        reference cycle megabytes of payload would wait for the garbage collector.
        """
        if not self._gate_passed:
            self._gate_passed = True  # also while the gate is at work, since it looks at fields
            try:
                self.validate_input()
            except ScrapeError:
                self._gate_passed = False
                raise

    def validate_input(self) -> None:
        """Decides whether this is an answer, and to what was asked.

        Raises:
            ScrapeError: it is none; the kind of error says why.
        """
        raise NotImplementedError

    def raise_for_failures(self) -> None:
        """Raises for answers that are failures on every platform, by their HTTP status.

        Raises:
            TargetNotFound: 404, 410.
            UpstreamRateLimited: 429, with the seconds of ``Retry-After``.
            UpstreamBlocked: a refusal, or a success without a body.
            UpstreamError: 5xx and every other status that is no success.
        """
        status = self.response.status
        if status is None or 200 <= status < 300:
            if not self.response.body.strip():
                raise UpstreamBlocked("The platform sent an empty page.", upstream_status=status, reason="empty_body")
            return
        if status in {404, 410}:
            raise TargetNotFound("The platform has no such page.", upstream_status=status, reason="not_found")
        if status == 429:
            raise UpstreamRateLimited(
                "The platform asks for fewer requests.",
                upstream_status=status,
                reason="rate_limited",
                retry_after=retry_after_seconds(self.response.headers.get("Retry-After")),
            )
        if status in REFUSALS:
            raise UpstreamBlocked("The platform refused the request.", upstream_status=status, reason="refused")
        if status >= 500:
            raise UpstreamError("The platform failed.", upstream_status=status, reason="server_error")
        raise UpstreamError("The platform gave an answer that says nothing.", upstream_status=status, reason="status")


def missing(
    message: str, *paths: Sequence[str | int], reason: str, upstream_status: int | None = None
) -> ExtractionFailed:
    """The error for parts of a payload that must be there: their paths."""
    details: list[Detail] = [{"loc": list(path), "msg": "Field required", "type": "missing"} for path in paths]
    return ExtractionFailed(message, details=details, upstream_status=upstream_status, reason=reason)


def wrong_echo(
    message: str, path: Sequence[str | int], expected: str, *, reason: str = "wrong_echo"
) -> ExtractionFailed:
    """The error for an answer to another request: where the payload names its target, and the target expected."""
    detail: Detail = {"loc": list(path), "msg": f"Input should be {expected!r}", "type": "literal_error"}
    return ExtractionFailed(message, details=[detail], reason=reason)
