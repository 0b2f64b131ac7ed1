"""Inserts code into a module at places found in its syntax tree. All other text is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeVar

from scrapy.exceptions import UsageError

Node = TypeVar("Node", bound=ast.AST)
Method = ast.FunctionDef | ast.AsyncFunctionDef


class Insertion:
    """A module, and the texts to insert.

    ``path``: the path of the module, for messages. The methods that return or use a place raise ``UsageError`` unless
    the module has exactly one such place.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._source = text.encode()
        self._tree = ast.parse(text)
        self._starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._inserts: list[tuple[int, str]] = []

    @property
    def text(self) -> str:
        """The module with all insertions."""
        source = self._source
        for offset, text in sorted(self._inserts, key=lambda each: each[0], reverse=True):
            source = source[:offset] + text.encode() + source[offset:]
        return source.decode()

    # Places

    def find_class(self, name: str) -> ast.ClassDef:
        """Return the class that is called ``name``, or whose base class is called ``name``."""
        classes = (each for each in self._tree.body if isinstance(each, ast.ClassDef))
        found = (each for each in classes if name in {each.name, *map(ast.unparse, each.bases)})
        return self._one(found, f"class {name}")

    def method(self, owner: ast.ClassDef, name: str) -> Method:
        """Return a method of a class."""
        return self._one(_methods(owner, name), f"method {owner.name}.{name}")

    def has_method(self, owner: ast.ClassDef, name: str) -> bool:
        """Whether a class itself has a method."""
        return any(_methods(owner, name))

    def assigned(self, owner: ast.ClassDef, name: str) -> ast.expr:
        """Return the value that is assigned to a name in a class."""
        found = (
            each.value for each in owner.body if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name
        )
        return self._one(found, f"{owner.name}.{name}")

    def keyword(self, name: str) -> ast.expr:
        """Return the value of a keyword argument that occurs in only one call of the module."""
        found = (each.value for each in ast.walk(self._tree) if isinstance(each, ast.keyword) and each.arg == name)
        return self._one(found, f"argument {name}")

    def item(self, method: Method, key: str) -> ast.expr:
        """Return the value of a key in a dictionary in a method."""
        found = (
            value
            for each in ast.walk(method)
            if isinstance(each, ast.Dict)
            for name, value in zip(each.keys, each.values, strict=True)
            if isinstance(name, ast.Constant) and name.value == key
        )
        return self._one(found, f"key {key!r} in {method.name}()")

    # Insertions

    def refuse_taken(self, *names: str) -> None:
        """Raise ``UsageError`` if the module uses one of the names."""
        used = {each.id for each in ast.walk(self._tree) if isinstance(each, ast.Name)}
        used |= {each.asname or each.name for each in ast.walk(self._tree) if isinstance(each, ast.alias)}
        for name in names:
            if name in used:
                raise UsageError(f"The name is taken: {self.path} uses {name}. Choose another name.")

    def add_import(self, text: str) -> None:
        """Add lines after the imports of the module."""
        last = [each for each in self._tree.body if isinstance(each, ast.Import | ast.ImportFrom)][-1]
        self._insert_line(last, text)

    def prepend(self, method: Method, text: str) -> None:
        """Add statements at the start of a method, after its docstring."""
        first = method.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            self._insert_line(first, text)
        else:
            self._inserts.append((self._starts[first.lineno - 1], text))

    def append(self, sequence: ast.expr, text: str) -> None:
        """Add an element at the end of a tuple or list that is not empty."""
        elements = sequence.elts if isinstance(sequence, ast.Tuple | ast.List) else []
        last = self._one(elements[-1:], "tuple with elements")
        self._inserts.append((self._end(last), f", {text}"))

    def extend(self, value: ast.expr, text: str) -> None:
        """Add the elements of another list to a list. ``value``: a list display, or an expression such as a name."""
        if isinstance(value, ast.List):
            self.append(value, f"*{text}")
        else:
            self._inserts.append((self._starts[value.lineno - 1] + value.col_offset, "[*"))
            self._inserts.append((self._end(value), f", *{text}]"))

    def _insert_line(self, after: ast.stmt, text: str) -> None:
        assert after.end_lineno is not None
        self._inserts.append((self._starts[after.end_lineno], text))

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def _one(self, found: Iterable[Node], what: str) -> Node:
        nodes = list(found)
        if len(nodes) != 1:
            raise UsageError(f"{self.path} has {len(nodes) or 'no'} {what}: add the scraper by hand.")
        return nodes[0]


def _methods(owner: ast.ClassDef, name: str) -> Iterable[Method]:
    return (each for each in owner.body if isinstance(each, Method) and each.name == name)
