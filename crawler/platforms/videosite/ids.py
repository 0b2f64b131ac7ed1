"""Video site: the values in API requests that the platform changes, from the platform's data file."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from crawler.platforms.ids import IdsModel


class Ids(IdsModel):
    """The platform's data file."""

    note: str = ""
    """Where and when the values were copied."""
    client_version: str = Field(pattern=r"^[0-9.]{5,40}$")
    """Version of the web client in API requests, until the channel's page has shown the current version."""
    tab_params: dict[str, str]
    """The param that selects a channel's tab, by the tab's name: videos, shorts, streams."""
    playlist_params: str
    """The param that selects the complete list of a playlist's items."""

    def with_version(self, version: str) -> Self:
        """Return the ids with the client version that a page shows, or the unchanged ids if ``version`` is ""."""
        return self.model_copy(update={"client_version": version}) if version else self
