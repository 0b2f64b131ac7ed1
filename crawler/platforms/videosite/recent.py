"""Video site: a cache of the channels that were read last, so that a further page of a list needs only one request."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

LIFETIME_SECONDS = 900.0
"""Seconds for which the data of a channel's page is reused for further pages of its lists. Callers usually page through
a list within minutes."""
MAX_CHANNELS = 1_000


class RecentChannels:
    """Caches the data of channels, without their lists of videos, by channel id and by whether the data includes the
    about panel.

    If there are more than ``MAX_CHANNELS`` entries, the oldest is removed.
    """

    def __init__(self) -> None:
        self._pages: OrderedDict[tuple[str, bool], tuple[float, dict[str, Any]]] = OrderedDict()

    def get(self, channel: str, *, about: bool) -> dict[str, Any] | None:
        """Return the data of a channel that was read less than ``LIFETIME_SECONDS`` ago, or None."""
        read_at, page = self._pages.get((channel, about), (0.0, None))
        return page if page is not None and time.monotonic() - read_at < LIFETIME_SECONDS else None

    def add(self, channel: str, page: dict[str, Any], *, about: bool) -> None:
        """Store the data of a channel that was just read."""
        self._pages[channel, about] = (time.monotonic(), {**page, "posts": [], "continuation": "", "more": False})
        self._pages.move_to_end((channel, about))
        if len(self._pages) > MAX_CHANNELS:
            self._pages.popitem(last=False)
