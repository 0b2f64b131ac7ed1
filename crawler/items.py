"""The item classes and data models of all scrapers: ``from crawler.items import RetailCategoryV4Item``.

For the scraper ``retail-category-v4``, spiders yield items of the class ``RetailCategoryV4Item``. A pipeline validates
their data with the pydantic model ``RetailCategoryV4Data``. A platform's package is imported only when one of its names
is used.
"""

from __future__ import annotations

from crawler.registry import scrapers


def __getattr__(name: str) -> type:
    for scraper in scrapers().values():
        if name == scraper.item_class.__name__:
            return scraper.item_class
        if name == f"{scraper.class_name}Data":
            return scraper.data
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(f"{scraper.class_name}{kind}" for scraper in scrapers().values() for kind in ("Data", "Item"))
