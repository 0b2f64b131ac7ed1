"""The mutants of a module: changes that a maintainer makes by mistake, each at one place of the syntax tree.

Left out, because no test should compare them: what is logged and printed, texts with spaces (messages), f-strings,
docstrings, annotations, decorators, ``__repr__`` and ``__str__``, assertions, and the keywords ``UNTESTED``. Left out
because nobody can observe them: the names of type variables, and bodies of abstract methods. Left out because they
cannot be changed where they stand: patterns of ``match``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain

_PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    *((ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)),
    *((ast.And, ast.Or), (ast.Mult, ast.Div), (ast.Sub, ast.Add)),
]
SWAPPED = {**dict(_PAIRS), **{after: before for before, after in _PAIRS}}
LOGGED = {"log", "logger", "warnings", "print", "say", "cast"}
TYPED = {"TypeVar", "ParamSpec", "NewType"}
KEY = re.compile(r"[\w.$\[\]*/:-]{1,60}")
"""Texts that are names, keys, paths or values, not sentences."""
SAME = {"strip", "lower", "casefold", "upper", "escape", "quote", "quote_plus", "unquote", "sorted", "reversed", "abs"}
"""Functions and methods whose call can be forgotten: the value stays as it is."""
OTHER = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNTESTED = {
    *("help", "description", "title", "examples", "strict", "maxsize", "daemon", "name", "separators", "metavar", "eq"),
}
LOST_FILTER = [("lost filter", ast.Constant(value=True))]
STATUSES = range(100, 600)
GENERIC = {"Literal", "Annotated", "Callable", "dict", "list", "tuple", "type", "Iterator"}
LEFT_OUT = (
    *(ast.JoinedStr, ast.pattern, ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal),
    *(ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop),
)


def conditions(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the kinds of mistakes in conditions and arithmetic, and what stands in the place of the expression."""
    match node:
        case ast.Compare(left, [operator], right) if type(operator) in SWAPPED:
            yield "comparison", ast.Compare(left, [SWAPPED[type(operator)]()], right)  # type: ignore[list-item]
        case ast.BoolOp(operator, [first, *others]):
            yield "condition", ast.BoolOp(SWAPPED[type(operator)](), [first, *others])  # type: ignore[arg-type]
            yield "null rule", first
        case ast.BinOp(left, ast.Mult() | ast.Div() | ast.Sub() as operator, right):
            yield "arithmetic", ast.BinOp(left, SWAPPED[type(operator)](), right)  # type: ignore[arg-type]
        case ast.BinOp(left, ast.Add(), ast.Constant(int()) as right):
            yield "off by one", ast.BinOp(left, ast.Sub(), right)
        case ast.UnaryOp(ast.Not(), operand):
            yield "condition", operand
        case ast.IfExp(test, body, orelse):
            yield "condition", ast.IfExp(test, orelse, body)


def values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the kinds of mistakes in constants and calls, and what stands in the place of the expression."""
    match node:
        case ast.Constant(bool() as value):
            yield "default", ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            is_small = abs(value) <= 20 or value in STATUSES
            yield "number", ast.Constant(value + 1 if is_small else value * 10)
        case ast.Constant(str() as value) if KEY.fullmatch(value):
            yield "key", ast.Constant(f"{value}X")
        case ast.Await(value):
            yield "lost await", value
        case ast.Call(ast.Attribute(value, name), []) | ast.Call(ast.Name(name), [value]) if name in SAME:
            yield "lost call", value
        case ast.Call(ast.Name(name) as function, arguments, keywords) if name in OTHER:
            yield "other function", ast.Call(ast.Name(OTHER[name], function.ctx), arguments, keywords)
        case ast.Call(function, arguments, [*others, ast.keyword(str(first), one), ast.keyword(str(second), two)]):
            if ast.dump(one) != ast.dump(two):
                swapped = [*others, ast.keyword(first, two), ast.keyword(second, one)]
                yield "swapped fields", ast.Call(function, arguments, swapped)
        case ast.Dict([*_, ast.expr(), ast.expr()] as keys, [*others, one, two]) if ast.dump(one) != ast.dump(two):
            yield "swapped fields", ast.Dict(keys, [*others, two, one])


def statements(node: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the kinds of mistakes in a statement, and what stands in its place."""
    match node:
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield "result", ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()) | ast.Expr(ast.Await()) | ast.AugAssign() | ast.Raise(ast.AST()):
            yield "removed", ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Continue() | ast.Break() | ast.Delete():
            yield "removed", ast.Pass()
        case ast.If(ast.Name() | ast.Attribute() | ast.Call() | ast.NamedExpr() as test, body, orelse):
            yield "condition", ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)


@dataclass(frozen=True)
class Mutant:
    """A change of a module. Its place is the number of the change in the module."""

    file: str
    line: int
    place: int
    kind: str
    block: str
    """The part of a function in which the change is (``Places.blocks``); "": it runs when the module is imported."""
    name: str
    """The name that is assigned or defined around the change."""
    change: str = ""


class Places(ast.NodeTransformer):
    """Finds the mutants of a module, and puts the chosen mutants behind the switch.

    Marks the blocks of its functions: statements that follow each other, up to the first one that has a body.
    """

    def __init__(self, file: str, chosen: Mapping[int, int], blocks: dict[str, int]) -> None:
        """``chosen``: place -> number of the mutant; ``blocks``: name -> number, for which new ones are added."""
        self.file, self._chosen, self._blocks = file, chosen, blocks
        self.found: list[Mutant] = []
        self.uses: defaultdict[str, set[str]] = defaultdict(set)
        """Name -> the blocks in which it occurs."""
        self._scope: list[str] = []
        self._counts: Counter[str] = Counter()
        self._filters: dict[int, ast.expr] = {}
        self._function, self._block, self._name = "", "", ""

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node with the chosen mutants in it."""
        if is_left_out(node):
            return node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self._visit_definition(node)
        outer = self._name
        self._note(node)
        is_filter, chosen = id(node) in self._filters, []
        for kind, after in chain(statements(node), conditions(node), values(node), LOST_FILTER if is_filter else ()):
            if number := self._chosen.get(len(self.found)):
                chosen.append((number, deepcopy(after)))
            change = f"{ast.unparse(node)} → {ast.unparse(after)}" if number else ""
            line = node.lineno  # type: ignore[attr-defined]
            self.found.append(Mutant(self.file, line, len(self.found), kind, self._block, self._name, change))
        for name, value in ast.iter_fields(node):
            if name not in {"annotation", "cause"}:
                setattr(node, name, self._visited(value))
        for number, after in chosen:
            node = ast.copy_location(switched(number, after, node), node)
        self._name = outer
        return node

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)) if not self._function:
                self._name = name
            case ast.comprehension(ifs=filters):
                self._filters |= {id(each): each for each in filters}
            case ast.Name(name) | ast.Attribute(attr=name) if self._block:
                self.uses[name].add(self._block)

    def _visited(self, value: object) -> object:
        if isinstance(value, list):
            if self._function and value and isinstance(value[0], ast.stmt):
                return self._marked(value)
            return [self.visit(each) if isinstance(each, ast.AST) else each for each in value]
        return self.visit(value) if isinstance(value, ast.AST) else value

    def _marked(self, body: list[ast.stmt]) -> list[ast.AST]:
        """Visit statements of a function, and put a mark at the start of each block."""
        outer, marked, is_start = self._block, list[ast.AST](), True
        for each in body:
            if is_start:
                self._counts[self._function] += 1
                self._block = f"{self._function}:{self._counts[self._function]}"
                number = self._blocks.setdefault(self._block, len(self._blocks) + 1)
                marked += ast.parse(f"_switch[{number}] = 1").body
            marked.append(self.visit(each))
            is_start = hasattr(each, "body") or isinstance(each, ast.Match)
        self._block = outer
        return marked

    def _visit_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.AST:
        outer, self._name = (self._function, self._block, self._name), node.name
        self._scope.append(node.name)
        if isinstance(node, ast.ClassDef):
            node.body = [self.visit(each) for each in node.body]  # type: ignore[misc]
        else:
            node.args.defaults = [self.visit(each) for each in node.args.defaults]  # type: ignore[misc]
            node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]  # type: ignore[misc]
            self._function = f"{self.file}:{'.'.join(self._scope)}"
            head = ast.get_docstring(node, clean=False) is not None
            node.body[head:] = self._marked(node.body[head:])  # type: ignore[assignment]
        self._scope.pop()
        self._function, self._block, self._name = outer
        return node


def switched(number: int, after: ast.AST, before: ast.AST) -> ast.AST:
    """Return the code that is another one while a mutant is active."""
    test = ast.parse(f"_switch[0] == {number}", mode="eval").body
    if isinstance(before, ast.stmt):
        return ast.If(test, [after], [before])  # type: ignore[list-item]
    return ast.IfExp(test, after, before)  # type: ignore[arg-type]


def is_left_out(node: ast.AST) -> bool:
    """Whether nothing is changed in a part of the tree."""
    match node:
        case ast.FunctionDef(name=name):
            return name in {"__repr__", "__str__"}
        case ast.Call(function) | ast.Expr(ast.Call(function)):
            return any(getattr(each, "id", getattr(each, "attr", "")) in LOGGED | TYPED for each in ast.walk(function))
        case ast.keyword(arg=name) | ast.Subscript(ast.Name(name)):
            return name in UNTESTED | GENERIC
        case ast.Assign([ast.Name(name)]):
            return name.startswith("__")
        case ast.If(ast.Name("TYPE_CHECKING")) | ast.Expr(ast.Constant()) | ast.Raise(ast.Name("NotImplementedError")):
            return True
    return isinstance(node, LEFT_OUT)


def instrumented(
    file: str, source: str, chosen: Mapping[int, int], blocks: dict[str, int]
) -> tuple[ast.Module, Places]:
    """Return a module with the chosen mutants and marks of its blocks, and all of its mutants. See ``Places``."""
    places, tree = Places(file, chosen, blocks), ast.parse(source)
    places.visit(tree)
    [switch] = ast.parse("from scripts.mutants.switch import SWITCH as _switch").body
    head = [isinstance(each, ast.Expr) or ast.unparse(each).startswith("from __future__") for each in tree.body[:2]]
    tree.body.insert(sum(head), switch)
    return ast.fix_missing_locations(tree), places
