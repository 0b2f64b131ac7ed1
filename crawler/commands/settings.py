"""``scrapy settings``: Scrapy's own command, with an option that lists the project's settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from textwrap import indent, wrap

from scrapy.commands.settings import Command as SettingsCommand
from scrapy.settings import BaseSettings

from crawler.configuration.declaration import declarations, meanings

WIDTH = 100


class Command(SettingsCommand):
    """Does not check the settings, so that it also prints invalid values."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--ours", action="store_true", help="print the values, types and meanings of the project's own settings"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not opts.ours:
            super().run(args, opts)
            return
        assert self.settings is not None
        print("\n".join(listing(self.settings)))


def listing(settings: BaseSettings) -> Iterator[str]:
    """Yield a block of text about each of the project's own settings. Passwords and keys are hidden."""
    texts = meanings()
    for name, declaration in declarations().items():
        if declaration.is_own:
            meaning = texts[name].replace("``", "")
            yield f"{name} = {declaration.shown(settings[name])}"
            yield indent("\n".join(wrap(f"{declaration.expectation}. {meaning}", WIDTH)), "    ")
