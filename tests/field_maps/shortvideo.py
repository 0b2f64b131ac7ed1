"""Short videos: the notes' field map of a list's envelope. Lists of videos have no photo posts: they give no rows."""

from __future__ import annotations

from typing import Any

from tests.field_maps.paths import first, values


def expected(_page: str, payload: Any) -> dict[str, Any] | None:
    """Return what a page object must extract from results without photo posts; None for results that have some."""
    if any(list(values(payload, key)) for key in ("imagePost", "image_post_info", "images")):
        return None
    inner = payload.get("data", payload) if isinstance(payload, dict) else {}
    inner = inner if isinstance(inner, dict) else payload
    more = first(inner, "has_more", "hasMore")
    return {
        "cursor": str(first(inner, "cursor") or 0),
        "has_more": bool(more),
        "keywords": "",
        "search_item_list": [],
    }
