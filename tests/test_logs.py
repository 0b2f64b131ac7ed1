"""Which log records are created at all."""

from __future__ import annotations

import logging

import pytest

from crawler.logs import skip_unhandled_records


@pytest.mark.parametrize(
    ("root", "handlers", "created"),
    [
        (logging.NOTSET, [logging.INFO, logging.WARNING], logging.INFO),  # Scrapy: only the handlers have a level
        (logging.NOTSET, [logging.INFO, logging.NOTSET], logging.NOTSET),  # a handler of the user takes all records
        (logging.WARNING, [logging.NOTSET], logging.WARNING),  # the endpoint: only the root logger has a level
        (logging.INFO, [], logging.INFO),
    ],
)
def test_records_below_all_handlers_are_not_created(
    monkeypatch: pytest.MonkeyPatch, root: int, handlers: list[int], created: int
) -> None:
    monkeypatch.setattr(logging, "root", logging.RootLogger(root))
    for level in handlers:
        logging.root.addHandler(logging.NullHandler(level))
    skip_unhandled_records()
    assert logging.root.level == created
