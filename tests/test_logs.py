"""Log records that no handler would write are not even created."""

from __future__ import annotations

import logging

import pytest

from crawler.logs import skip_unhandled_records


@pytest.mark.parametrize(
    ("root", "handlers", "levels"),
    [
        (logging.NOTSET, [logging.INFO, logging.WARNING], (logging.INFO, logging.INFO)),  # a crawl
        (logging.NOTSET, [logging.INFO, logging.NOTSET], (logging.NOTSET, logging.DEBUG)),  # one accepts everything
        (logging.WARNING, [logging.NOTSET], (logging.WARNING, logging.DEBUG)),  # the endpoint
        (logging.INFO, [], (logging.INFO, logging.DEBUG)),
    ],
)
def test_records_below_all_handlers_are_not_created(
    monkeypatch: pytest.MonkeyPatch, root: int, handlers: list[int], levels: tuple[int, int]
) -> None:
    scrapy = logging.getLogger("scrapy")
    monkeypatch.setattr(logging, "root", logging.RootLogger(root))
    monkeypatch.setattr(scrapy, "level", logging.DEBUG)
    for level in handlers:
        logging.root.addHandler(logging.NullHandler(level))
    skip_unhandled_records()
    assert (logging.root.level, scrapy.level) == levels


def test_a_handler_of_another_logger_keeps_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    scrapy, own = logging.getLogger("scrapy"), logging.getLogger("scrapy.core.engine")
    monkeypatch.setattr(logging, "root", logging.RootLogger(logging.NOTSET))
    monkeypatch.setattr(scrapy, "level", logging.DEBUG)
    logging.root.addHandler(logging.NullHandler(logging.INFO))
    monkeypatch.setattr(own, "handlers", [logging.StreamHandler()])
    skip_unhandled_records()
    assert (logging.root.level, scrapy.level) == (logging.NOTSET, logging.DEBUG)
