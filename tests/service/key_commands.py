"""``scrapy keys`` in the test's process."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from crawler.commands.keys import Command


class Keys:
    """Runs the command with a file of keys."""

    def __init__(self, file: Path, captured: pytest.CaptureFixture[str], **settings: Any) -> None:
        self.settings, self.captured = Settings({"KEYS_FILE": str(file), **settings}), captured

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Return the exit code of the command, and what it printed. The code of wrong use is 2."""
        command = Command()
        command.settings = self.settings
        parser = argparse.ArgumentParser()
        command.add_options(parser)
        try:
            options, rest = parser.parse_known_args(arguments)
            command.run(rest, options)
        except UsageError as error:  # Scrapy prints it
            return 2, self.captured.readouterr().out, str(error)
        return command.exitcode, *self.captured.readouterr()
