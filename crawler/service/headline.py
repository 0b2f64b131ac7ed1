"""One sentence about the state of a platform. The alerts of Prometheus have the same thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MANY_NOT_UNDERSTOOD = 0.2
MANY_REFUSED = 0.3
FEW_TARGETS = 5
"""With fewer targets, a share of them is not meaningful."""
REFUSALS = ("UPSTREAM_BLOCKED", "UPSTREAM_RATE_LIMITED")


def headline(platform: dict[str, Any]) -> str:
    """Return the most severe fact about a platform.

    ``platform``: its state and outcomes, as in the response of ``/v1/status``.
    """
    return next(_facts(platform))


def _facts(platform: dict[str, Any]) -> Iterator[str]:
    """Yield facts about a platform, the most severe ones first."""
    outcomes = {code: sum(numbers) for code, numbers in platform["outcomes"].items()}
    total = sum(outcomes.values())
    not_understood = outcomes.get("EXTRACTION_FAILED", 0)
    refused = sum(outcomes.get(code, 0) for code in REFUSALS)
    suspended = [each["egress"] for each in platform["egresses"] if each["rests_until"]]
    if suspended and len(suspended) == len(platform["egresses"]):
        yield f"Suspended until {max(each['rests_until'] for each in platform['egresses'])}: no requests are sent."
    if total >= FEW_TARGETS and not_understood / total > MANY_NOT_UNDERSTOOD:
        yield f"The pages are not understood: {not_understood} of {total} targets in the last hour."
    if total >= FEW_TARGETS and refused / total > MANY_REFUSED:
        yield f"The platform refuses requests: {refused} of {total} targets in the last hour."
    if unread := platform["unread"]:
        more = ", and further paths" if len(unread) > 1 else ""
        yield f"The platform may have changed: {unread[0]['path']} of {unread[0]['source']} was unread{more}."
    if suspended:
        yield f"Suspended egresses: {', '.join(suspended)}."
    if total:
        yield f"{outcomes.get('OK', 0)} of {total} targets in the last hour have a record."
    yield "No targets in the last hour."
