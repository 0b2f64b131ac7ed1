"""The regular expressions of the project, and the texts for which each of them takes longest.

A text is made from the expression's own syntax tree: what leads to a repetition, its part many times, and a tail with
which the match fails.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import re._constants as sre  # type: ignore[import-not-found]  # there is no public syntax tree
import re._parser as sre_parser  # type: ignore[import-not-found]
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import crawler

ROOT = Path(crawler.__file__).parent
FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
ANCHORED = {"match", "fullmatch"}
"""Methods that try a match only at the start. The others try it at each position."""
TAILS = ("", "\x00", "!", "\n", " ", '"', "a", "0")
FEW = 20
"""A repetition of at most this many parts takes a bounded time."""
REPRESENTATIVES = (*" \n\t0a_Z-.,:;/\"'<>&=#@(){}[]\\%+é\xa0\u200b",)
CATEGORIES = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
}
NEGATED = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}
REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}


class Expression(NamedTuple):
    """An expression, where it stands, and whether it is tried at each position of a text."""

    place: str
    pattern: str | bytes
    flags: int
    is_searched: bool

    def seconds(self, text: str) -> float:
        """Return the seconds of processor time in which the expression is tried on a text."""
        compiled = re.compile(self.pattern, self.flags)
        given: Any = text.encode("latin-1", "replace") if isinstance(self.pattern, bytes) else text
        start = time.thread_time()
        if self.is_searched:
            for _ in compiled.finditer(given):
                pass
        else:
            compiled.match(given)
        return time.thread_time() - start


def expressions() -> Iterator[Expression]:
    """Yield the expressions of all modules but those of the sandbox, which reads no text of strangers."""
    modules = {}
    for found in pkgutil.walk_packages(crawler.__path__, "crawler."):
        if not found.name.startswith("crawler.sandbox"):
            module = importlib.import_module(found.name)
            path = Path(str(module.__file__))
            modules[path] = vars(module), ast.parse(path.read_text())
    methods = {path: _methods(tree) for path, (_, tree) in modules.items()}
    everywhere: defaultdict[str, set[str]] = defaultdict(set)
    for of_module in methods.values():
        for name, used in of_module.items():
            everywhere[name] |= used
    for path, (variables, tree) in modules.items():
        for name, call, function in _calls(tree):
            pattern, flags = _arguments(call, function, variables)
            if function == "compile":
                used = (methods[path] if name.startswith("_") else everywhere)[name] & FUNCTIONS
            else:
                used = {function}
            if isinstance(pattern, str | bytes):
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                yield Expression(place, pattern, flags, not used or bool(used - ANCHORED))


def _methods(tree: ast.AST) -> defaultdict[str, set[str]]:
    """Return the attributes of each name in a module, such as the methods of an expression."""
    methods: defaultdict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            methods[owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")].add(node.attr)
    return methods


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call, str]]:
    """Yield each call that has an expression, with the name of its result and that of the function."""
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, name = pending.pop()
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pending += [(value, getattr(each, "id", "")) for each, value in zip(names, values, strict=True)]
                continue
            case ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found)):
                name = found
            case ast.keyword(arg=str(found)):
                name = found
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function)) if function in FUNCTIONS:
                yield name, node, function
            case ast.Call(func=ast.Attribute(value=ast.Name(id="msgspec"), attr="Meta")):
                yield name, node, "Meta"
        pending += [(child, name) for child in ast.iter_child_nodes(node)]


def _arguments(call: ast.Call, function: str, variables: dict[str, Any]) -> tuple[Any, int]:
    """Return the pattern and the flags of a call. The pattern is None if it is made at run time."""
    named = {each.arg: each.value for each in call.keywords}
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function, 2)
    pattern = named.get("pattern") if function == "Meta" else call.args[0]
    flags = named.get("flags") or (call.args[place] if len(call.args) > place else ast.Constant(0))
    try:
        return (pattern and _value(pattern, variables)), _value(flags, variables)
    except NameError:
        return None, 0


def _value(node: ast.expr, variables: dict[str, Any]) -> Any:
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval"), variables)  # noqa: S307  # the project's own source


class Pumped(NamedTuple):
    """A text of any length: ``before``, ``part`` many times, ``tail``."""

    before: str
    part: str
    tail: str

    def of(self, length: int) -> str:
        return self.before + self.part * (length // len(self.part)) + self.tail


def pumped(expression: Expression) -> Iterator[Pumped]:
    """Yield texts for which the expression may take long."""
    tree = sre_parser.parse(expression.pattern, expression.flags)
    found = {
        text: None
        for prefix, parts in _pumped(list(tree), "")
        for part in parts
        for tail in TAILS
        for text in (Pumped(prefix, part, tail), Pumped("", part, tail), Pumped("", prefix + part, tail))
        if part
    }
    yield from found


def _pumped(items: list[Any], prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what leads to each repetition of a sequence, and parts that may be repeated."""
    for position, (operator, argument) in enumerate(items):
        if operator in REPEATS:
            _, most, body = argument
            if most > FEW:
                follow = _examples(items[position + 1 :][:2])
                parts = _examples(list(body))
                yield prefix, [*parts, *(part + other for part in parts[:2] for other in follow[:2] if other)]
            yield from _pumped(list(body), prefix)
        elif operator is sre.SUBPATTERN:
            yield from _pumped(list(argument[3]), prefix)
        elif operator is sre.ATOMIC_GROUP:
            yield from _pumped(list(argument), prefix)
        elif operator is sre.BRANCH:
            for branch in argument[1]:
                yield from _pumped(list(branch), prefix)
        elif operator in {sre.ASSERT, sre.ASSERT_NOT}:
            yield from _pumped(list(argument[1]), prefix)
        prefix += next(iter(_examples([(operator, argument)])), "")


def _examples(items: list[Any]) -> list[str]:
    """Return a few texts that a sequence matches."""
    texts = [""]
    for operator, argument in items:
        texts = [text + part for text in texts for part in _parts(operator, argument)][:6]
    return texts


def _parts(operator: Any, argument: Any) -> list[str]:
    """Return a few texts that an item of the syntax tree matches."""
    found = [""]
    if operator is sre.LITERAL:
        found = [chr(argument)]
    elif operator is sre.NOT_LITERAL:
        found = [char for char in REPRESENTATIVES if char != chr(argument)][:3]
    elif operator is sre.ANY:
        found = [" ", "a"]
    elif operator is sre.IN:
        found = [char for char in (*REPRESENTATIVES, *_literals(argument)) if _is_in(char, argument)][:12]
    elif operator in REPEATS:
        least, most, body = argument
        found = [each * max(least, 1 if most else 0) for each in _examples(list(body))] + [""] * (not least)
    elif operator is sre.SUBPATTERN:
        found = _examples(list(argument[3]))
    elif operator is sre.ATOMIC_GROUP:
        found = _examples(list(argument))
    elif operator is sre.BRANCH:
        found = [each for branch in argument[1] for each in _examples(list(branch))][:6]
    return found or [""]


def _literals(items: list[Any]) -> list[str]:
    return [
        chr(argument if operator is sre.LITERAL else argument[0])
        for operator, argument in items
        if operator in {sre.LITERAL, sre.RANGE}
    ]


def _is_in(char: str, items: list[Any]) -> bool:
    is_negated = items[0][0] is sre.NEGATE
    for operator, argument in items:
        if operator is sre.LITERAL and ord(char) == argument:
            return not is_negated
        if operator is sre.RANGE and argument[0] <= ord(char) <= argument[1]:
            return not is_negated
        if operator is sre.CATEGORY:
            category = NEGATED.get(argument, argument)
            if CATEGORIES[category](char) != (argument in NEGATED):
                return not is_negated
    return is_negated
