"""The number of targets per hour that a platform's budgets allow (``docs/egress.md`` explains the arithmetic)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from crawler import platforms

HOUR = 3_600.0


def platform_capacity(name: str, budget: Mapping[str, Any]) -> float:
    """Return the targets per hour that the budget of the platform ``name`` for one egress allows.

    ``budget``: ``concurrency``, ``delay`` and ``sources``. The estimate assumes ``Platform.downloads`` downloads per
    target, and one of them from each source that has its own budget.
    """
    platform = platforms.platforms()[name]
    whole = _rate(budget, platform.seconds) / platform.downloads
    return HOUR * min([whole, *(_rate(each, platform.seconds) for each in budget["sources"].values())])


def _rate(budget: Mapping[str, Any], seconds: float) -> float:
    """Return the downloads per second that a budget allows. ``seconds``: the duration of one download."""
    delay = budget.get("delay", 0)
    by_delay = 1 / delay if delay else math.inf
    return float(min(by_delay, budget.get("concurrency", 1) / seconds))
