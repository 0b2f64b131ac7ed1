"""Values for the fill rates of optional fields: a falling rate is the first sign of a changed page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from crawler.monitoring.fields import values_of


def optional_values(model: type[BaseModel], data: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the path of each value that may be empty, without brackets, and whether it is empty."""
    return (
        (value.path.replace("[]", ""), value.is_empty) for value in values_of(data, model) if value.field.may_be_empty
    )
