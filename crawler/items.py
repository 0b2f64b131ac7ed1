"""Each scraper's item class and data model, by name: ``from crawler.items import RetailCategoryV4Item``.

The scraper ``retail-category-v4`` has the item class ``RetailCategoryV4Item``, which spiders yield, and the pydantic
model ``RetailCategoryV4Data``, against which the pipelines validate it. The names are resolved on first
use, so that importing this module does not import a platform.
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
