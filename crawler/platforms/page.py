"""The base class of all page objects: their inputs, and errors for responses that never contain data."""

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

BLOCK_STATUSES = frozenset({401, 403, 407, 412, 418, 451, 999})
"""Statuses with which platforms block a visitor, regardless of their standard meaning."""
THROTTLING_STATUSES = BLOCK_STATUSES | {429}
"""Statuses that count as a block even if the page object does not recognise the page as one."""


@attrs.define(slots=False)
class PlatformPage(ItemPage[dict]):  # type: ignore[type-arg]  # web-poet takes the class that it instantiates
    """Reads one response of a platform. Does no I/O.

    A page class adds fields, and ``validate_input``, which raises typed errors before the first field is read.
    ``to_item`` is not overridden.
    """

    response: HttpResponse
    page_params: PageParams  # type: ignore[type-arg]  # the injector supports only the bare class
    """The params of the request, so that the page can check that the response matches them."""

    item_cls: ClassVar[type[dict[str, Any]]] = dict
    """The item's type. Explicit, because web-poet otherwise searches the bases' generic parameters for every item."""

    _item: dict[str, Any] | None = attrs.field(default=None, init=False, eq=False, repr=False)

    source: ClassVar[str]
    """The name of this kind of response, unique within its platform. Blocks and rate limits are counted by it."""

    token_reasons: ClassVar[frozenset[str]] = frozenset()
    """Reasons of blocks that concern a token, which the spider replaces, so that they do not count."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        """Whether a saved response of unknown origin is of this kind."""
        raise NotImplementedError

    async def to_item(self) -> dict[str, Any]:
        """The item made of the fields. It is cached: the page is read only once."""
        if self._item is None:
            self._item = await super().to_item()
        return self._item

    _input_validated = False

    def _validate_input(self) -> None:
        """Run ``validate_input`` once, before the first field.

        This overrides a private method of web-poet, which has no public hook for it (0.24). ``ItemPage`` caches the
        result with ``cached_method``, a bound method that is stored on the page. That reference cycle would keep
        megabytes of payload in memory until the next garbage collection.
        """
        if not self._input_validated:
            self._input_validated = True  # set before the call, because validate_input reads fields
            try:
                self.validate_input()
            except ScrapeError:
                self._input_validated = False
                raise

    def validate_input(self) -> None:
        """Check that the response contains the requested data.

        Raises:
            ScrapeError: it does not. The subclass states the reason.
        """
        raise NotImplementedError

    def raise_for_failures(self) -> None:
        """Raise for HTTP statuses that are failures on every platform.

        Raises:
            TargetNotFound: 404, 410.
            UpstreamRateLimited: 429, with the seconds of ``Retry-After``.
            UpstreamBlocked: one of ``BLOCK_STATUSES``, or a successful status without a body.
            UpstreamError: 5xx, and every other status that is not a success.
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
                "The platform's rate limit is reached.",
                upstream_status=status,
                reason="rate_limited",
                retry_after=retry_after_seconds(self.response.headers.get("Retry-After")),
            )
        if status in BLOCK_STATUSES:
            raise UpstreamBlocked("The platform refused the request.", upstream_status=status, reason="refused")
        if status >= 500:
            raise UpstreamError(f"The platform returned HTTP {status}.", upstream_status=status, reason="server_error")
        raise UpstreamError(
            f"The platform returned an unexpected HTTP {status}.", upstream_status=status, reason="status"
        )


def missing_error(
    message: str, *paths: Sequence[str | int], reason: str, upstream_status: int | None = None
) -> ExtractionFailed:
    """The error for missing parts of a payload, with their paths."""
    details: list[Detail] = [{"loc": list(path), "msg": "Field required", "type": "missing"} for path in paths]
    return ExtractionFailed(message, details=details, upstream_status=upstream_status, reason=reason)


def mismatch_error(
    message: str, path: Sequence[str | int], expected: str, *, reason: str = "wrong_echo"
) -> ExtractionFailed:
    """The error for a response to another request: the path of the target in the payload, and the expected target."""
    detail: Detail = {"loc": list(path), "msg": f"Input should be {expected!r}", "type": "literal_error"}
    return ExtractionFailed(message, details=[detail], reason=reason)
