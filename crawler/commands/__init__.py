"""The project's Scrapy commands. The setting ``COMMANDS_MODULE`` makes Scrapy load them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from crawler.platforms.ids import check_platform_ids

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

EXIT_INVALID_SETTINGS = 2


def settings_are_valid(settings: BaseSettings) -> bool:
    """Return whether the files that settings name are valid. Print a sentence to stderr about the first that is not."""
    try:
        check_platform_ids(settings)
    except ValueError as error:
        print(error, file=sys.stderr)
        return False
    return True
