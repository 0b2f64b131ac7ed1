"""The places of the project that parse text or walk nested data, and texts that are nested for them.

The places are found in the modules' own syntax trees, so that a new one without a row in ``tests.test_parsers`` fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import crawler

ROOT = Path(crawler.__file__).parent
PARSERS = re.compile(
    r"""(?:^|\.)(?:
        (?:json|orjson)\.loads? | msgspec\.\w+\.[dD]ecode\w* | \w*JSONDecoder | raw_decode | (?:model_)?validate_json
      | (?:response|\))\.json
      | Selector | \w*HTMLParser | \w*Soup | fromstring(?:list)? | X(?:ML|MLID) | iterparse | literal_eval
      | csv\.reader | DictReader | safe_load | Literals | \w+\.load_workbook | chompjs\.\w+
    )$""",
    re.VERBOSE,
)
"""Matches the dotted names of functions and classes that parse."""


def places() -> Iterator[tuple[str, ast.AST]]:
    """Yield the functions of all modules but those of the sandbox, as ``module.py:Class.function``, with their trees.

    Statements outside of functions belong to ``module.py:``.
    """
    for path in sorted(ROOT.rglob("*.py")):
        if "sandbox" not in path.relative_to(ROOT).parts:
            yield from _functions(ast.parse(path.read_text()), f"{path.relative_to(ROOT)}:", "")


def _functions(tree: ast.AST, module: str, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield a part of a module and the functions in it. Its tree is without those of the functions."""
    own = ast.Module([], [])
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions(node, module, f"{name}.{node.name}".lstrip("."))
        else:
            own.body.append(ast.Expr(node) if isinstance(node, ast.expr) else node)  # type: ignore[arg-type]
            if any(isinstance(each, ast.FunctionDef) for each in ast.walk(node)):
                waiting += ast.iter_child_nodes(node)
                own.body.pop()
    yield f"{module}{name}", own


def parsing_places() -> set[str]:
    """Return the functions that parse text."""
    return {place for place, tree in places() if any(map(PARSERS.search, _called(tree)))}


def recursive_places() -> set[str]:
    """Return the functions that call themselves."""
    found = set()
    for place, tree in places():
        _, _, name = place.rpartition(":")
        owner, _, own = name.rpartition(".")
        is_method = owner[:1].isupper() or (owner.startswith("_") and owner[1:2].isupper())
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        if own and calls & ({f"self.{own}", f"cls.{own}"} if is_method else {own}):
            found.add(place)
    return found


def _called(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the functions that are called, or passed to another one, in a part of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)
            yield from (ast.unparse(each) for each in node.args if isinstance(each, ast.Name | ast.Attribute))


class Nested(NamedTuple):
    """A text of any length: ``before``, ``opens`` many times, ``inside``, ``closes`` as many times, ``after``."""

    opens: str
    closes: str = ""
    before: str = ""
    inside: str = ""
    after: str = ""

    def of(self, length: int) -> str:
        number = length // len(self.opens + self.closes)
        return self.before + self.opens * number + self.inside + self.closes * number + self.after
