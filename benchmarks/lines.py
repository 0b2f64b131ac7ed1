"""The size of the project: code lines by room, for ``python -m benchmarks lines``.

A line counts if it holds a token that is neither a comment nor part of a docstring. A docstring is any expression
statement that is a text, so that the description of an attribute or a constant is one, too.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath

from benchmarks.tables import grid

PACKAGE, SANDBOX, PLATFORMS = "crawler", "crawler/sandbox", "crawler/platforms"
BESIDE = ("tests", "benchmarks", "scripts")
"""Folders beside the package, counted as one room each."""
WITHOUT_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
"""The types of tokens that do not make a line a code line."""


def code_lines(source: str) -> int:
    """Return the number of code lines of a module."""
    docstrings = {
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in WITHOUT_CODE and token.start not in docstrings:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def room(module: PurePath) -> str:
    """Return the room of a module: the folder below the package; each platform is a room.

    >>> [room(PurePath(each)) for each in ("crawler/items.py", "crawler/service/docs/site.py", "tests/spiders/a.py")]
    ['crawler', 'crawler/service', 'tests']
    >>> room(PurePath("crawler/platforms/retail/pages.py")), room(PurePath("crawler/platforms/page.py"))
    ('crawler/platforms/retail', 'crawler/platforms')
    """
    folders = module.parts[:-1]
    if folders[0] != PACKAGE:
        return folders[0]
    return "/".join(folders[: 3 if folders[1:2] == ("platforms",) else 2])


def by_room(root: Path) -> tuple[Counter[str], Counter[str]]:
    """Return the number of code lines and the number of modules by room, in the order of the rooms' names."""
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for folder in (PACKAGE, *BESIDE):
        for file in sorted((root / folder).rglob("*.py")):
            name = room(file.relative_to(root))
            lines[name] += code_lines(file.read_text(encoding="utf-8"))
            modules[name] += 1
    return lines, modules


def report(root: Path) -> str:
    """Return a Markdown table of all rooms, and of the totals."""
    lines, modules = by_room(root)
    inside = [name for name in lines if name.startswith(PACKAGE)]
    product = [name for name in inside if name != SANDBOX]
    platforms = [name for name in product if name.startswith(PLATFORMS)]

    def row(name: str, rooms: Iterable[str]) -> tuple[str, str, str]:
        rooms = list(rooms)
        return name, f"{sum(lines[each] for each in rooms):,}", f"{sum(modules[each] for each in rooms):,}"

    cells = [
        *(row(name, [name]) for name in sorted(product)),
        row("all of `crawler/platforms`", platforms),
        row("**`crawler` without the sandbox**", product),
        row("`crawler/sandbox`", [SANDBOX]),
        row("all of `crawler`", inside),
        *(row(f"`{name}`", [name]) for name in BESIDE),
    ]
    return grid(("room", "code lines", "modules"), cells) + "\n"
