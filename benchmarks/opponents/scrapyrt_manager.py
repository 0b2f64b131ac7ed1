"""scrapyrt's crawl manager with the log level of the endpoint.

Separate from the settings module, because this one imports the reactor, which must be installed first.
"""

from typing import Any

from scrapyrt.core import CrawlManager


class InfoCrawlManager(CrawlManager):  # type: ignore[misc]  # scrapyrt is untyped
    """Logs at INFO. By default, scrapyrt writes every item to a log at DEBUG."""

    def get_project_settings(self) -> Any:
        """Return the project's settings with another log level."""
        settings = super().get_project_settings()
        settings.set("LOG_LEVEL", "INFO", priority="cmdline")
        return settings
