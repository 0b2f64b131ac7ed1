"""The private library names that the code uses: each is listed here with a reason, and their number is limited."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "crawler"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "commands" not in path.parts or path.stem != "__init__")
pytestmark = pytest.mark.meta

PRIVATE = re.compile(r"_(?!_)\w+")

REASONS = {
    (
        "crawler.outputs.feeds",
        "_close_slot",
    ): "Scrapy does not count errors when an exporter finishes",
    ("crawler.components", "_split_domain"): "Scrapy's cookies have no setting against the download of a list",
    ("crawler.platforms.page", "_validate_input"): "web-poet's method keeps a reference cycle of megabytes alive",
    (
        "crawler.middlewares",
        "_engine_started",
    ): "Scrapy's redirect middleware warns where RefererMiddleware is disabled",
    ("crawler.downloads.handlers", "_pool"): "Scrapy's handler has no public way to set its pool",
    ("crawler.downloads.handlers", "_contextFactory"): "the setting of its TLS settings' class is deprecated",
    (
        "crawler.service.edge",
        "_respondToBadRequestAndDisconnect",
    ): "Twisted responds to a malformed request without a body",
}
"""Module and name -> why no public name can replace it."""
DOCUMENTED = {("crawler.outputs.feeds", "_job"): "the spider argument in which Scrapyd passes the id of a job"}
"""Names with an underscore that the library documents."""
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
"""The public attributes of named tuples. Their underscore only prevents conflicts with fields."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def own_names() -> set[str]:
    """Return the private names (functions, classes, attributes, variables) that the project itself defines."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self" | "cls")):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
    return {name for name in found if PRIVATE.fullmatch(name)}


def foreign_accesses(path: Path, own: set[str]) -> Iterator[str]:
    """Yield the private names that a module uses (also by ``getattr``) and the project does not define."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(attr=name) if PRIVATE.fullmatch(name) and name not in own:
                yield name
            case ast.ImportFrom(module=str(module), names=names) if not module.startswith("crawler"):
                yield from (alias.name for alias in names if PRIVATE.fullmatch(alias.name))
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]
            ):
                if PRIVATE.fullmatch(name) and name not in own:
                    yield name


def inherited(module: str) -> Iterator[str]:
    """Yield the private names of library classes that a module's subclasses override or use through ``self``."""
    for value in vars(importlib.import_module(module)).values():
        if not isinstance(value, type) or value.__module__ != module:
            continue
        used = set(re.findall(r"(?:self\.|super\(\)\.|def )(_\w+)", _source(value)))
        kinds = (base for base in value.__mro__[1:] if used)
        bases = [base for base in kinds if not base.__module__.startswith(("crawler", "builtins", "typing"))]
        theirs = {name for base in bases for name in vars(base)} | {
            name for base in bases for name in re.findall(r"self\.(_\w+)\s*(?::[^=\n]+)?=", _source(base))
        }
        yield from (name for name in used & theirs if PRIVATE.fullmatch(name))


@cache
def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def test_private_names_of_libraries_are_few_and_listed_with_a_reason() -> None:
    own = own_names()
    used: set[tuple[str, str]] = set()
    for path in MODULES:
        module = name_of(path)
        used |= {(module, name) for name in foreign_accesses(path, own) if name not in NAMED_TUPLE}
        used |= {(module, name) for name in inherited(module)}
    assert used == set(REASONS) | set(DOCUMENTED)
    assert len(REASONS) <= 7
