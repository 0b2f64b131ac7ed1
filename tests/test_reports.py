"""Each line that reports something runs for a fixture or a row of a table, and not for each one that reaches it.

A line reports if it raises an error, or adds to the unread or the skipped parts. The lines are found in the syntax tree
of the platforms' modules and of ``crawler/reading``, so that a new one needs a row that shows it.
"""

from __future__ import annotations

import ast
import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from web_poet.testing import Fixture

from crawler.errors import ScrapeError
from tests.platforms.tables import FIXTURES, PLATFORMS, behaviours, page_class

pytestmark = pytest.mark.meta

ROOT = Path(__file__).parents[1]
REPORTS = {"Unread", "skip"}
OF_CODE = {"ValueError", "TypeError", "NotImplementedError", "LinkError"}
"""Errors about params, links and code, not about pages."""
LISTS = {"unread", "skipped"}
ELSEWHERE: dict[str, dict[str, str]] = {
    "microblog": {
        "guest: raise self._refusal": "no page: microblog/test_guest_token.py",
        'merge: raise missing_error("No source': "several pages: microblog/test_merge.py",
        'js_literals: raise _too_long(f"more than {MAX_CHARACTERS:,} characters")': "megabytes: test_js_literals.py",
        'js_literals: raise _too_long(f"{MAX_ELEMENTS:,} elements or more")': "megabytes: test_js_literals.py",
        'pages: raise invalid_error(message, ["script"], "Too many objects"': "megabytes: test_js_literals.py",
    },
    "professional": {
        'markup: raise invalid_error(message, ["html"], "Too many elements': "megabytes: professional/test_unread.py",
    },
    "reading": {
        "careful: raise invalid_error(": "a deep document: tests/reading/test_contract.py",
        'careful: raise invalid_error(message, [path], "Too many rows"': "megabytes: tests/reading/test_contract.py",
        'documents: raise invalid_error(message, [what], str(error), "json_invalid"': "rare: reading/test_json.py",
        'documents: raise invalid_error(message, ["html"], "Too many tags': "megabytes: tests/reading/test_markup.py",
    },
    "videosite": {
        "record: raise mismatch_error(message": "several pages: videosite/test_pages.py",
    },
}
"""The beginnings of the lines that no page of a table shows, each with the reason and the test that shows it."""
CONDITIONS = (ast.If, ast.For, ast.While, ast.Try, ast.Match)

Line = tuple[str, int]
"""A file and a number of a line."""


def reports(node: ast.AST) -> bool:
    """Whether a statement itself reports something."""
    match node:
        case ast.Raise(ast.Name("NotImplementedError")):
            return False
        case ast.Raise(exc) if exc is not None:
            return not (isinstance(exc, ast.Call) and isinstance(exc.func, ast.Name) and exc.func.id in OF_CODE)
        case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(attr=name), "append" | "extend"))) if name in LISTS:
            return True
        case ast.Expr(value):
            calls = (each for each in ast.walk(value) if isinstance(each, ast.Call))
            return any(getattr(each.func, "attr", getattr(each.func, "id", "")) in REPORTS for each in calls)
    return False


@cache
def reporting(folder: str) -> dict[Line, Line]:
    """Return the first lines of the statements that report, and for each the first line of its function."""
    found: dict[Line, Line] = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
                for node in ast.walk(function):
                    if isinstance(node, ast.stmt) and reports(node):
                        found[str(file), node.lineno] = str(file), first
    return found


def conditional(folder: str) -> set[Line]:
    """Return the reporting lines that follow a condition in their function. Without one, a function always reports."""
    starts: dict[Line, list[int]] = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
                found = [each.lineno for each in ast.walk(function) if isinstance(each, CONDITIONS)]
                starts[str(file), first] = found
    lines = reporting(folder)
    return {line for line, function in lines.items() if any(start <= line[1] for start in starts[function])}


@contextmanager
def lines_of(functions: set[Line]) -> Iterator[set[Line]]:
    """Collect the lines that run in some functions, and the functions' first lines."""
    ran: set[Line] = set()

    def each_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            ran.add((frame.f_code.co_filename, frame.f_lineno))
        return each_line

    def each_call(frame: FrameType, _event: str, _: Any) -> Any:
        code: CodeType = frame.f_code
        place = code.co_filename, code.co_firstlineno
        if place not in functions:
            return None
        ran.add(place)
        return each_line

    before = sys.gettrace()
    sys.settrace(each_call)
    try:
        yield ran
    finally:
        sys.settrace(before)


def readings(platform: str) -> Iterator[None]:
    """Read all fixtures and all rows of the table of a platform, one after the other."""
    for folder in sorted(FIXTURES.glob(f"crawler.platforms.{platform}.*")):
        kind = page_class(platform, folder.name.removeprefix(f"crawler.platforms.{platform}."))
        for fixture in sorted(folder.iterdir()):
            page: Any = Fixture(fixture).get_page(kind)
            with suppress(ScrapeError):
                asyncio.run(page.to_item())
            yield
    for behaviour in behaviours(platform):
        for row in behaviour.rows:
            behaviour.page.read(row)
            yield


@cache
def replay(platform: str) -> tuple[set[Line], set[Line]]:
    """Return the reporting lines that ran for a fixture or row of a platform, and those that did not for another."""
    lines = reporting(f"crawler/platforms/{platform}") | reporting("crawler/reading")
    of_function = defaultdict(set)
    for line, function in lines.items():
        of_function[function].add(line)
    triggered: set[Line] = set()
    passed: set[Line] = set()
    source = readings(platform)
    while True:
        with lines_of(set(of_function)) as ran:
            if next(source, ran) is ran:
                return triggered, passed
        for function in ran & of_function.keys():
            triggered |= of_function[function] & ran
            passed |= of_function[function] - ran


def unseen(lines: set[Line], room: str) -> list[str]:
    """Return the code of lines, with the names of their files, without those that are shown elsewhere."""
    code = {f"{Path(file).stem}: {Path(file).read_text().splitlines()[line - 1].strip()}" for file, line in lines}
    elsewhere = ELSEWHERE.get(room, {})
    shown = {start: [each for each in code if each.startswith(start)] for start in elsewhere}
    assert all(shown.values()), "a line is shown by a table, or is gone"
    return sorted(code.difference(*shown.values()))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_reporting_line_of_a_platform_has_a_page_with_and_one_without_the_report(platform: str) -> None:
    folder = f"crawler/platforms/{platform}"
    triggered, passed = replay(platform)
    missing = reporting(folder).keys() - triggered
    assert unseen(missing, platform) == []
    assert sorted(conditional(folder) - passed - missing) == []


def test_each_reporting_line_of_the_readers_has_a_page_with_and_one_without_the_report() -> None:
    replays = [replay(platform) for platform in PLATFORMS]
    missing = reporting("crawler/reading").keys() - set[Line]().union(*(triggered for triggered, _ in replays))
    always = conditional("crawler/reading") - set[Line]().union(*(passed for _, passed in replays))
    assert unseen(missing, "reading") == []
    assert sorted(always - missing) == []
