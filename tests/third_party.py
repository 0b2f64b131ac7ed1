"""A third-party pipeline for tests. Its behaviour depends on the query in the item."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem


@dataclass
class Shelf:
    """An item class of another project."""

    query: str
    note: str


class Mixed:
    """Returns a dict, None, another item class, a non-item, the changed or the same item; or drops the item, or fails.

    The query ``slow`` delays the item by five seconds.
    """

    async def process_item(self, item: Any) -> Any:
        match ItemAdapter(item)["query"]:
            case "dict":
                return {**ItemAdapter(item).asdict(), "note": "a dict"}
            case "none":
                return None
            case "object":
                return Shelf("object", "another class")
            case "no item":
                return 42
            case "drop":
                raise DropItem("seen before")
            case "raise":
                raise ValueError("a secret of ours")
            case "slow":
                await asyncio.sleep(5)
            case "field":
                ItemAdapter(item)["note"] = item["query"].upper()
        return item
