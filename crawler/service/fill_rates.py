"""Finds empty optional fields, for the fill rates in the metrics.

A falling fill rate is the first sign that a platform changed a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from crawler.monitoring.fields import values_of


def optional_values(model: type[BaseModel], data: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """For each value in ``data`` that may be empty, yield its path and whether it is empty.

    Paths contain no list brackets: all entries of a list share one path.
    """
    return (
        (value.path.replace("[]", ""), value.is_empty) for value in values_of(data, model) if value.field.may_be_empty
    )
