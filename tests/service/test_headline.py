"""The sentence about a platform in ``GET /v1/status``."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.service.status import headline

DIRECT, OTHER = {"egress": "direct", "rests_until": None}, {"egress": "other", "rests_until": None}
SUSPENDED = {"egress": "direct", "rests_until": "2026-11-22T14:07:50.310Z"}
UNREAD = [{"source": "listing", "path": "rows[].rating", "count": 2}, {"source": "search", "path": "a", "count": 1}]


@pytest.mark.parametrize(
    ("outcomes", "more", "sentence"),
    [
        ({}, {}, "No targets in the last hour."),
        ({"OK": [3, 0, 5], "TARGET_NOT_FOUND": [2]}, {}, "8 of 10 targets in the last hour have a record."),
        ({"EXTRACTION_FAILED": [4]}, {}, "0 of 4 targets in the last hour have a record."),
        (
            {"OK": [7], "EXTRACTION_FAILED": [1, 2], "UPSTREAM_BLOCKED": [1]},
            {"unread": UNREAD},
            "The pages are not understood: 3 of 11 targets in the last hour.",
        ),
        (
            {"OK": [6], "UPSTREAM_BLOCKED": [2], "UPSTREAM_RATE_LIMITED": [2]},
            {},
            "The platform refuses requests: 4 of 10 targets in the last hour.",
        ),
        (
            {"OK": [9]},
            {"unread": UNREAD},
            "The platform may have changed: rows[].rating of listing was unread, and further paths.",
        ),
        (
            {"OK": [9]},
            {"unread": UNREAD[:1]},
            "The platform may have changed: rows[].rating of listing was unread.",
        ),
        (
            {"OK": [9]},
            {"egresses": [SUSPENDED]},
            "Suspended until 2026-11-22T14:07:50.310Z: no requests are sent.",
        ),
        ({"OK": [9]}, {"egresses": [SUSPENDED, OTHER]}, "Suspended egresses: direct."),
    ],
)
def test_the_most_severe_fact_is_stated(outcomes: dict[str, list[int]], more: dict[str, Any], sentence: str) -> None:
    assert headline({"outcomes": outcomes, "unread": [], "egresses": [DIRECT], **more}) == sentence
