"""The descriptions of fields are the docstrings below them, and commands import only what they need."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType
from typing import Annotated, ClassVar

import pytest
from pydantic import Field

from crawler.configuration.names import Described, description, docstrings


class Plain(Described):
    """A model without documented fields."""

    number: int


class Parent(Described):
    """A model with fields of all kinds."""

    constant: ClassVar = "not a field"
    """Not the docstring of a field."""
    own: int
    """The docstring
    of two lines."""
    argument: int = Field(default=0, description="The argument.")
    """The docstring."""
    alias: int = Field(alias="__alias")
    """With an alias."""
    nested: Annotated[Plain, Field()]
    """A model."""
    none: int


class Child(Parent):
    """A model with a field of its own, and a field of its parent with another docstring."""

    own: int
    """The child's docstring."""
    more: int
    """More."""


EXPECTED: dict[type[Described], dict[str, str | None]] = {
    Parent: {
        "own": "The docstring\nof two lines.",
        "argument": "The argument.",
        "__alias": "With an alias.",
        "nested": "A model.",
        "none": None,
    },
    Child: {
        "own": "The child's docstring.",
        "argument": "The argument.",
        "__alias": "With an alias.",
        "nested": "A model.",
        "none": None,
        "more": "More.",
    },
    Plain: {"number": None},
}


def test_a_schema_has_the_docstrings_of_fields() -> None:
    for model, expected in EXPECTED.items():
        schema = model.model_json_schema()
        assert {key: field.get("description") for key, field in schema["properties"].items()} == expected
    assert Parent.model_json_schema()["$defs"]["Plain"]["description"] == "A model without documented fields."
    assert description(Parent, "argument") == "The argument."
    assert description(Child, "alias") == "With an alias."
    assert description(Plain, "number") == ""


def test_a_model_without_source_has_no_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("made")
    monkeypatch.setitem(sys.modules, "made", made)
    source = "from crawler.configuration.names import Described\nclass Made(Described):\n    a: int\n    'Text.'"
    exec(source, vars(made))  # noqa: S102  # a class without a file
    assert docstrings(made.Made) == {}
    assert made.Made.model_json_schema()["properties"] == {"a": {"title": "A", "type": "integer"}}


NOT_IMPORTED = ("rich.progress", "fsspec", "sqlalchemy", "playwright", "crawler.targets.files.source")
CRAWL = """
import json, sys
from scrapy.cmdline import get_project_settings, _get_commands_dict
commands = _get_commands_dict(get_project_settings(), True)
from crawler.registry import spider
from crawler.targets.target import SavedTarget
from crawler.spiders.retail import RetailSpider
scraper = RetailSpider.scrapers[0]
print(json.dumps({
    "commands": sorted({"serve", "collect", "probe"} - commands.keys()),
    "imported": sorted(set(sys.argv[1:]) & sys.modules.keys()),
    "built": [each.__name__ for each in (scraper.data, scraper.params, SavedTarget) if each.__pydantic_complete__],
}))
"""


def test_a_command_imports_and_builds_only_what_it_needs() -> None:
    env = {"SCRAPY_SETTINGS_MODULE": "crawler.settings"}
    found = subprocess.run(
        [sys.executable, "-c", CRAWL, *NOT_IMPORTED], env=env, check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(found) == {"commands": [], "imported": [], "built": []}
