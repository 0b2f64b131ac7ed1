"""Photo app: the notes' field map of a profile's newest reels, the logged-out source of play counts."""

from __future__ import annotations

from typing import Any

from tests.field_maps.paths import at


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object of the reels must extract; None for other responses."""
    edges = at(payload, "xig_user_by_username.polaris_clips_connection.edges")
    if page != "ReelsPage" or edges is None:
        return None
    return {"plays": {edge["node"]["pk"]: edge["node"]["play_count"] for edge in edges}}
