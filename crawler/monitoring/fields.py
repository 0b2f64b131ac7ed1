"""How often the fields of the data are filled: counted for the monitors and for ``scrapy probe``."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from crawler.outputs.columns import Fields, Many


class FieldCount(BaseModel):
    """How a field did: of ``rows`` objects that have it, how many gave a value, and how many said null."""

    rows: int = 0
    filled: int = 0
    null: int = 0

    @property
    def coverage(self) -> float:
        """Share of the rows that have a value."""
        return self.filled / self.rows if self.rows else 0.0

    @property
    def null_rate(self) -> float:
        """Share of the rows that say null; the rest is empty text, an empty list or a key left out."""
        return self.null / self.rows if self.rows else 0.0


def count_fields(value: dict[str, Any], shape: Fields, counts: dict[str, FieldCount], prefix: str = "") -> None:
    """Adds an object's fields to the counts, by path: ``products[].price.current_price``."""
    for name, inner in shape.of.items():
        path, found = f"{prefix}{name}", value.get(name)
        count = counts.get(path)
        if count is None:
            count = counts[path] = FieldCount()
        count.rows += 1
        if found is None:
            count.null += name in value
        elif found not in ("", [], {}):
            count.filled += 1
        if isinstance(inner, Many) and isinstance(inner.of, Fields):
            for each in found or ():
                if each is not None:
                    count_fields(each, inner.of, counts, f"{path}[].")
        elif isinstance(inner, Fields) and found is not None:
            count_fields(found, inner, counts, f"{path}.")
