"""The project's Scrapy commands. The setting ``COMMANDS_MODULE`` makes Scrapy load them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from crawler.downloads.egress import check_egresses
from crawler.platforms import platforms
from crawler.platforms.ids import check_platform_ids
from crawler.registry import spider

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

EXIT_INVALID_SETTINGS = 2


def settings_are_valid(settings: BaseSettings) -> bool:
    """Return whether settings that name platforms are valid. Print a sentence to stderr about the first that is not."""
    try:
        check_platform_ids(settings)
        check_egresses(settings)
        _check_browser_fallback(settings)
    except ValueError as error:
        print(error, file=sys.stderr)
        return False
    return True


def _check_browser_fallback(settings: BaseSettings) -> None:
    for name in settings.getlist("BROWSER_FALLBACK"):
        if name not in platforms():
            raise ValueError(f"BROWSER_FALLBACK: no platform is called {name}; use {', '.join(platforms())}.")
        if not spider(name).can_use_browser:
            raise ValueError(f"BROWSER_FALLBACK: blocked pages of {name} cannot be loaded in the browser.")
