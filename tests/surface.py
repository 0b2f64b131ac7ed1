"""What users meet by name: commands with their options, settings, routes, output formats and metrics.

``surface_0_2.json`` has the names of version 0.2. ``test_upgrade.py`` compares them with today's names and with the
rows of the changelog, so that each name that went is documented.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from prometheus_client import REGISTRY
from scrapy.commands import ScrapyCommand
from scrapy.commands.list import Command as List
from scrapy.settings import Settings as ScrapySettings
from scrapy.utils.misc import walk_modules_iter

from crawler.components import COMPONENTS
from crawler.service import metrics, openapi
from crawler.settings import Settings
from crawler.targets.files import source as targets_files

VERSION_0_2 = Path(__file__).with_name("surface_0_2.json")

Surface = dict[str, list[str]]
"""Kind of name -> the names, in alphabetical order."""


def commands() -> list[str]:
    """Return the project's commands, and the options that not every command has: ``collect`` and ``collect --job``."""
    classes = {
        each
        for module in walk_modules_iter("crawler.commands")
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, ScrapyCommand) and each.__module__ == module.__name__
    }
    names = set()
    for command in classes:
        name = command.__module__.rpartition(".")[2]
        names |= {name, *(f"{name} {option}" for option in _options(command) - _options(List))}
    return sorted(names)


def _options(command: type[ScrapyCommand]) -> set[str]:
    parser = argparse.ArgumentParser()
    instance = command()
    instance.settings = ScrapySettings()
    instance.add_options(parser)
    return {option for action in parser._actions for option in action.option_strings}


def surface() -> Surface:
    """Return today's names."""
    own_metrics = {each.name for each in REGISTRY.collect() if each.name.startswith("crawler_")}
    assert metrics.OUTCOMES._name in own_metrics
    paths = openapi.document()["paths"]
    return {
        "commands": commands(),
        "settings": sorted(Settings.model_fields),
        "routes": sorted(f"{method.upper()} {path}" for path, methods in paths.items() for method in methods),
        "formats": [
            *sorted(f"output {name}" for name in COMPONENTS["FEED_EXPORTERS"]),
            *sorted(
                f"targets {suffix}"
                for suffix in (*targets_files.TABLES, *targets_files.JSON_LINES, *targets_files.WORKBOOKS)
            ),
        ],
        "metrics": sorted(own_metrics),
    }


def version_0_2() -> Surface:
    """Return the names of version 0.2."""
    names: Surface = json.loads(VERSION_0_2.read_bytes())
    return names
