"""``python -m benchmarks.mutants``: mutations of single lines, and the tests chosen for each mutation."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.mutants import ROOMS, Mutant, Reached, chosen, mutants_of, read_log, summary
from benchmarks.stack import ROOT


def changed(body: str) -> list[str]:
    """Return all mutated versions of a function's body, formatted by ``ast.unparse``."""
    source = f"def f(a: int = 1) -> int:\n    {body}\n"
    return sorted(ast.unparse(ast.parse(each.applied(source)).body[0]).split("\n    ")[1] for each in of(source))


def of(source: str) -> list[Mutant]:
    return list(mutants_of("crawler/reading/f.py", source))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = a == b", ["x = a != b"]),
        ("x = a < b", ["x = a <= b"]),
        ("x = a is not None", ["x = a is None"]),
        ("x = a and b", ["x = a or b"]),
        ("x = not a", ["x = a"]),
        ("x = b if a else c", ["x = c if a else b"]),
        ("x = True", ["x = False"]),
        ("x = a[0]", ["x = a[1]"]),
        ("x = a - b", ["x = a + b"]),
        ("x = a + b", []),
        ("return f(a)", ["return None"]),
        ("return None", []),
        ("raise f(a)", ["pass"]),
        ("f(a)  # why", ["pass"]),
        ("logger.info(a)", []),
        ("x.y = a", ["pass"]),
        ("x: Literal[1] = a", []),
        ('x = f"{a == b}"', []),
        ("x = 'é', a == b", ["x = ('é', a != b)"]),  # columns are in UTF-8
    ],
)
def test_a_line_is_changed(body: str, expected: list[str]) -> None:
    assert changed(body) == expected


def test_only_functions_are_changed() -> None:
    assert of("x = a == b\nclass A:\n    y = not x\n") == []


@pytest.mark.parametrize(
    "source", ["def f(a):\n    if a > 1:\n        g()\n    elif not a:\n        return [a[0] for _ in a if a is b]\n"]
)
def test_a_probe_stands_at_the_place_of_the_change_and_alters_nothing(source: str) -> None:
    for mutant in of(source):
        probed = mutant.probed(source, 7)
        assert probed.count("_hit(7)") == 1
        compile(mutant.applied(source), "f", "exec")
        without = probed.replace("        _hit(7)\n", "").replace("    _hit(7)\n", "").replace("_hit(7) or ", "")
        assert ast.dump(ast.parse(without)) == ast.dump(ast.parse(source))


@pytest.mark.soak
def test_the_choice_depends_on_the_seed_alone_and_has_all_rooms() -> None:
    first = chosen(ROOT, 1, 15)
    assert first == chosen(ROOT, 1, 15)
    assert first != chosen(ROOT, 2, 15)
    assert Counter(each.room for each in first) == {room: 3 if room == ROOMS[0] else 2 for room in ROOMS}
    assert len({(each.file, each.line) for each in first}) == 15


def test_quick_tests_of_different_functions_run_first() -> None:
    seconds = {"a[1]": 0.1, "a[2]": 0.1, "b": 2.0, "c": 30.0}
    reached = Reached(seconds, {5: list(seconds)})
    assert reached.of(5, 100) == ["a[1]", "b", "c", "a[2]"]
    assert reached.of(5, 3) == ["a[1]", "b"]
    assert reached.of(6, 100) == []
    assert Reached(seconds, {5: ["c"]}).of(5, 3) == ["c"]


def test_only_tests_that_passed_count(tmp_path: Path) -> None:
    """A probe that is reached before the first test (number 0) or by a failed test counts for no test."""
    log = tmp_path / "log"
    rows = [
        *(["hit", 1, 0], ["test", "a"], ["hit", 1, 1], ["report", "a", 0.5, False], ["report", "a", 1.0, False]),
        *(["test", "b"], ["hit", 1, 2], ["hit", 2, 2], ["report", "b", 1.0, True]),
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_log(log) == Reached({"a": 1.5}, {1: ["a"], 2: []})


def test_the_share_is_of_all_mutants_of_a_room() -> None:
    mutant = of("def f(a):\n    return not a\n")[0]
    fates = [(mutant, fate, "") for fate in ("killed", "survived", "not reached", "killed")]
    assert "| reading | 4 | 2 | 1 | 0 | 1 | 50% |" in summary(fates)
