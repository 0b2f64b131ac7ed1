"""``scrapy settings``: Scrapy's own command; without its options, it lists the project's settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from difflib import get_close_matches
from textwrap import indent, wrap

from scrapy.commands.settings import Command as SettingsCommand
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from crawler.configuration.settings_check import expectation, schemas, shown

WIDTH = 100


class Command(SettingsCommand):
    """Prints the value of one setting (``--get``), or lists settings with their values, types, defaults and meanings.

    The command does not check the settings, so that it also prints invalid values.
    """

    def syntax(self) -> str:
        return "[options] [part of a name]..."

    def short_desc(self) -> str:
        return "List the project's settings, or get a setting's value"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if any((opts.get, opts.getbool, opts.getint, opts.getfloat, opts.getlist)):
            super().run(args, opts)
            return
        for part in args:
            if not any(part.upper() in name for name in schemas()):
                near = get_close_matches(part.upper(), schemas(), n=1)
                raise UsageError(f"no setting is called {part}" + "".join(f"; did you mean {name}?" for name in near))
        print("\n".join(listing(self.settings, *args)))


def listing(settings: BaseSettings, *parts: str) -> Iterator[str]:
    """Yield a text about each setting of ``Settings``, or about those whose names contain one of ``parts``.

    Passwords and keys are hidden.
    """
    for name, schema in schemas().items():
        if not parts or any(part.upper() in name for part in parts):
            meaning = " ".join(schema["description"].replace("``", "").split())
            text = f"{meaning} Type: {expectation(schema)}. Default: {schema['default']!r}."
            yield f"{name} = {shown(schema, settings[name])}"
            yield indent("\n".join(wrap(text, WIDTH, break_on_hyphens=False)), "    ")
