"""The param ``details``: for how many parts of a record the optional requests are sent that add details to them."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

AUTO_SECONDS = 10.0
"""Seconds in which the requests for details start, if the param ``details`` is ``auto``."""


def number(value: Any) -> Any:
    """Convert a text of one to nine digits to an integer. Other values are returned unchanged."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value


Details = Annotated[Literal["auto", "all", "none"] | Annotated[int, Field(ge=0)], BeforeValidator(number)]
"""``auto``: the details whose requests the budget lets start within ``AUTO_SECONDS``. A number: the details of as many
parts of the record, from the top."""


def max_details(details: Details) -> float:
    """Return the param ``details`` as a number."""
    if isinstance(details, int):
        return details
    return 0 if details == "none" else math.inf
