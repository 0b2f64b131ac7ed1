"""The lines of failed targets, and the feeds to which they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.extensions.feedexport import ItemFilter
from scrapy.utils.misc import load_object

from crawler.outputs.formats import scheme_format
from crawler.targets import lines
from crawler.targets.target import InvalidTarget, Outcome

AUTO = "auto"
"""Value of ``FAILURES_FEED``: a file in the folder ``failures``, except for single targets."""
AUTO_URI = "failures/%(name)s-%(job)s.jsonl"


class Failure(dict[str, Any]):
    """The line of a failed target. Only feeds whose option ``item_classes`` contains this class get such lines."""


def failures_feed(uri: str) -> dict[str, dict[str, Any]]:
    """Return the entry to add to ``FEEDS`` for the setting ``FAILURES_FEED``.

    Raises:
        ValueError: the URI is the URL of a database.
    """
    if scheme_format(uri) is not None:
        raise ValueError("FAILURES_FEED: a database gets only records: name a file")
    uri = AUTO_URI if uri == AUTO else uri
    options = {"format": "jsonlines", "store_empty": False, "batch_item_count": 0}
    return {uri: {**options, "item_classes": [f"{__name__}.{Failure.__name__}"]}}


def is_for_failures(options: Mapping[str, Any]) -> bool:
    """Whether the option ``item_classes`` of a feed contains ``Failure``."""
    return any(load_object(each) is Failure for each in options.get("item_classes") or ())


class WithoutFailures(ItemFilter):
    """The item filter for feeds of records. It rejects failures, and applies the feed's own filter to other items."""

    def __init__(self, own: ItemFilter) -> None:
        super().__init__(None)
        self.own = own

    def accepts(self, item: Any) -> bool:
        return not isinstance(item, Failure) and self.own.accepts(item)


def failure_line(outcome: Outcome) -> dict[str, Any]:
    """Return the line of the failed target of an outcome."""
    target, error = outcome.target, outcome.error
    assert error is not None
    parent = None if isinstance(target, InvalidTarget) else target.parent
    found = error.as_dict() | {"retryable": error.retryable}
    return lines.failure(target.as_dict(), parent, target.line, found)
