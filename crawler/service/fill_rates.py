"""How often a field that may be empty is empty: the first sign that a platform has changed its pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from crawler.monitoring.fields import values_of


def fill_rates(model: type[BaseModel], data: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each value that may be empty, as its field's path without brackets and whether it is."""
    return ((each.path.replace("[]", ""), each.is_empty) for each in values_of(data, model) if each.field.may_be_empty)
