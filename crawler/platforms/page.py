"""The base class of all page objects: their inputs, and the errors for HTTP failures and missing data."""

# No "from __future__ import annotations" here: the injector needs classes, not strings, as the annotations of inputs.
# The injector could not resolve strings for subclasses in modules that do not import these classes.

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

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
    quoted,
)
from crawler.reading import careful
from crawler.reading.careful import Reading, read
from crawler.reading.contract import C, Contract, Unread, invalid_error
from crawler.reading.documents import decode
from crawler.reading.values import retry_after_seconds

BLOCK_STATUSES = frozenset({401, 403, 407, 412, 418, 451, 999})
"""HTTP statuses that platforms use to block a visitor, regardless of their standard meaning."""
THROTTLING_STATUSES = BLOCK_STATUSES | {429}
"""HTTP statuses that the circuit breaker counts, even if the page object does not recognise the page as a block."""

MAX_BYTES = 4_000_000
"""Maximum size of a response that is read, in bytes. The largest recorded response has 1.7 MB.

Reading a page keeps the interpreter's lock and so blocks the event loop, in a thread, too. ``benchmarks.worst_pages``
measures the time for the worst pages of 2 MB."""

P = TypeVar("P", bound="PlatformPage")


def without_mark(response: HttpResponse) -> HttpResponse:
    """Return the response, with its body in UTF-8 and without the byte order mark if the body has such a mark.

    The mark states the encoding: UTF-8, UTF-16 or UTF-32. No recorded response has a mark, but editors and tools that
    save a response may add it.
    """
    if response.body.bom_encoding() is None:
        return response
    return HttpResponse(
        response.url, response.text.encode(), status=response.status, headers=response.headers, encoding="utf-8"
    )


@attrs.define(slots=False)
class PlatformPage(ItemPage[dict]):  # type: ignore[type-arg]  # web-poet needs a class that it can instantiate
    """Reads one response from a platform, without I/O.

    A subclass adds fields and implements ``validate_input``, which raises a typed error before the first field is read
    if the response is not the requested page. A subclass does not override ``to_item``.
    """

    response: HttpResponse = attrs.field(converter=without_mark)
    page_params: PageParams  # type: ignore[type-arg]  # the injector supports only the bare class
    """The request's ``meta["page_params"]``, by which the page object checks that the response is for the requested
    target."""

    item_cls: ClassVar[type[dict[str, Any]]] = dict
    """The item's type. Without this attribute, web-poet would search the base classes' type parameters for every item.
    """

    payloads: list[tuple[type[Contract], object]] | None = attrs.field(default=None, init=False, eq=False, repr=False)
    """If this is a list, each contract that is read is added to it with its data, for ``scrapy extract --suggest``."""

    _item: dict[str, Any] | None = attrs.field(default=None, init=False, eq=False, repr=False)

    skipped: list[ExtractionFailed] = attrs.field(factory=list, init=False, eq=False, repr=False)
    """One error for each part of the page that the item lacks because the part could not be read, such as a row of a
    list. The spider adds these errors to the target's warnings."""

    unread: list[Unread] = attrs.field(factory=list, init=False, eq=False, repr=False)
    """The parts of the payload that were expected and could not be read. The spider adds these parts to the target's
    warnings."""

    interruption: ScrapeError | None = attrs.field(default=None, init=False, eq=False, repr=False)
    """The error that interrupted the loading of the listing, so that the data is incomplete. The circuit breaker counts
    the page as this error, although the page has data."""

    source: ClassVar[str]
    """The name of the kind of response that this class reads, unique within its platform. Classes that read the same
    kind of response share the name. Each source has a circuit breaker of its own for each egress."""

    token_reasons: ClassVar[frozenset[str]] = frozenset()
    """Reasons of errors that mean that a token was rejected. The spider gets a new token. Such an error does not count
    as a block, unless the new token is rejected, too."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        """Whether this class can read a saved response. ``body``: the text of the response. The URL is unknown."""
        raise NotImplementedError

    async def to_item(self) -> dict[str, Any]:
        """Return the item with the page object's fields. The item is cached, so that the response is read only once.

        Raises:
            ScrapeError: the response does not contain the data. The error has the HTTP status of the response. If the
                platform refused the request or failed, the error's ``retry_after`` is at least the seconds that the
                header ``Retry-After`` states.
        """
        if self._item is None:
            try:
                self._item = await super().to_item()
            except ScrapeError as error:
                error.upstream_status = self.response.status
                wait = retry_after_seconds(self.response.headers.get("Retry-After"))
                if wait is not None and isinstance(error, (UpstreamBlocked, UpstreamError, UpstreamRateLimited)):
                    error.retry_after = max(error.retry_after or 0, wait)
                raise
        return self._item

    _input_validated = False

    def _validate_input(self) -> None:
        """Run ``validate_input`` before the first field is read, and not again after it has passed.

        Before it, refuse a response that is larger than ``MAX_BYTES``.

        This method overrides a private method, because web-poet 0.24 has no public hook. The original method caches its
        result with ``cached_method``, which stores a bound method on the page object. That reference cycle would keep
        megabytes of payload in memory until the next garbage collection.
        """
        if not self._input_validated:
            self._input_validated = True  # set before the call: validate_input reads fields, which call this method
            try:
                self._raise_for_size()
                self.validate_input()
            except ScrapeError:
                self._input_validated = False
                raise

    def _raise_for_size(self) -> None:
        size = len(self.response.body)
        if size > MAX_BYTES:
            message = f"The response has {size:,} bytes. At most {MAX_BYTES:,} are read."
            raise invalid_error(message, ["response"], "Response too large", "too_large", reason="too_large")

    def payload(self, kind: type[C], body: bytes, *, what: str, code_after: bool = False) -> C:
        """Read a JSON document of the response by its contract.

        Unread parts are added to ``unread``. ``what``: the name of the document in error messages. ``code_after``:
        whether program code may follow the JSON.

        Raises:
            ExtractionFailed: the document is not JSON, is nested too deeply or has too many rows; or it is not an
                object of the contract, such as an object without its identity.
        """
        if self.payloads is not None:
            self.payloads.append((kind, decode(body, what=what, code_after=code_after)))
        return self._of_contract(kind, read(kind, body, what=what, code_after=code_after))

    def plain_payload(self, kind: type[C], data: object) -> C:
        """Read plain data of the response by its contract, as ``payload`` does.

        Raises:
            ExtractionFailed: the data is nested too deeply or has too many rows; or it is not an object of the
                contract, such as an object without its identity.
        """
        if self.payloads is not None:
            self.payloads.append((kind, data))
        return self._of_contract(kind, careful.read_plain(kind, data))

    def _of_contract(self, kind: type[C], reading: Reading[C]) -> C:
        self.unread += reading.unread
        if reading.value is None:
            raise unread_error(f"The payload is not a {kind.__name__}.", reading.unread, reason="unreadable")
        return reading.value

    def problems(self, error: ScrapeError | None = None) -> list[str]:
        """Describe each unread part in one line. ``error``: the page's error, if the page has no item."""
        parts = [error] if error else self.skipped
        return [f"{each.code}: {each.message}" for each in parts] + list(map(str, self.unread))

    def skip(self, error: ExtractionFailed) -> None:
        """Add an error to ``skipped`` for a part that the item lacks, unless an equal error was added before."""
        if all(error.details != known.details or error.reason != known.reason for known in self.skipped):
            self.skipped.append(error)

    def validate_input(self) -> None:
        """Check that the response contains the requested data.

        Raises:
            ScrapeError: the response does not contain the data. The subclass chooses the error class and the reason.
        """
        raise NotImplementedError

    def raise_for_walls(self) -> None:
        """Raise an error if the response is a page for refused visitors, such as a CAPTCHA or the login page.

        ``raise_for_failures`` calls this method for statuses that do not mean a refusal, such as 404 and redirects.
        """

    def raise_for_failures(self) -> None:
        """Raise an error if the HTTP status means failure on all platforms, or if a successful response is empty.

        A saved response without a status counts as successful.

        Raises:
            UpstreamRateLimited: status 429.
            UpstreamBlocked: a status in ``BLOCK_STATUSES``, or a successful status with an empty body.
            TargetNotFound: status 404 or 410, unless the page is one for refused visitors.
            UpstreamError: a status of 500 or more, or any other status that is not a success.
            ScrapeError: see ``raise_for_walls``.
        """
        status = self.response.status
        if status is None or 200 <= status < 300:
            body: bytes = self.response.body
            if not body or body.isspace():
                raise UpstreamBlocked("The platform sent an empty page.", reason="empty_body")
            return
        if status == 429:
            raise UpstreamRateLimited("The platform's rate limit is reached.", reason="rate_limited")
        if status in BLOCK_STATUSES:
            raise UpstreamBlocked("The platform refused the request.", reason="refused")
        if status >= 500:
            raise UpstreamError(f"The platform returned HTTP {status}.", reason="server_error")
        self.raise_for_walls()
        if status in {404, 410}:
            mark = quoted(str(status), "status")
            raise TargetNotFound("The platform has no such page.", reason="not_found", details=mark)
        raise UpstreamError(f"The platform returned an unexpected HTTP {status}.", reason="status")


def missing_error(message: str, *paths: Sequence[str | int], reason: str) -> ExtractionFailed:
    """Create the error for missing parts of a payload. ``paths``: where the parts were expected."""
    details: list[Detail] = [{"loc": list(path), "msg": "Field required", "type": "missing"} for path in paths]
    return ExtractionFailed(message, details=details, reason=reason)


def unread_error(message: str, unread: Sequence[Unread], *, reason: str) -> ExtractionFailed:
    """Create the error for a payload that cannot be used because of its unread parts. The details name their paths."""
    details: list[Detail] = [
        {"loc": list(each.path.split(".")), "msg": str(each), "type": each.cause} for each in unread
    ]
    return ExtractionFailed(message, details=details, reason=reason)


def mismatch_error(
    message: str, path: Sequence[str | int], expected: str, *, reason: str = "wrong_echo"
) -> ExtractionFailed:
    """Create the error for a response that belongs to another target.

    ``path`` is the place in the payload that identifies the target; ``expected`` is the value that it should have.
    """
    return invalid_error(message, path, f"Input should be {expected!r}", "literal_error", reason=reason)
