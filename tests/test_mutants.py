"""The mutants of ``python -m scripts.mutants``: what is changed, what is not, and the switch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from scripts.mutants.__main__ import OPTIONS, sample
from scripts.mutants.places import Mutant, instrumented
from scripts.mutants.trace import ROOT


def changes(source: str) -> list[str]:
    """Return all changes of a module, as text."""
    every = {place: place + 1 for place in range(20)}
    return [f"{each.kind}: {each.change}" for each in instrumented("crawler/a/b.py", source, every, {})[1].found]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["comparison: a < b → a <= b"]),
        ("a or b", ["condition: a or b → a and b", "null rule: a or b → a"]),
        ("ms * factor", ["arithmetic: ms * factor → ms / factor"]),
        ("end + 1", ["off by one: end + 1 → end - 1", "number: 1 → 2"]),
        ("STATUS = 404", ["number: 404 → 405"]),
        ("LIMIT = 5000", ["number: 5000 → 50000"]),
        ("data.get('user.id')", ["removed: data.get('user.id') → pass", "key: 'user.id' → 'user.idX'"]),
        ("x = escape(text)", ["lost call: escape(text) → text"]),
        ("x = row(first=a, last=b)", ["swapped fields: row(first=a, last=b) → row(first=b, last=a)"]),
        ("x = row(first=a, last=a)", []),
        ("async def f(): x = await g()", ["lost await: await g() → g()"]),
        ("def f(retry=True): pass", ["default: True → False"]),
        ("def f(): return x", ["result: return x → return None"]),
        ("self.at = now", ["removed: self.at = now → pass"]),
        ("x = [a for a in b if a]", ["lost filter: a → True"]),
        *[
            (source, [])
            for source in (
                'logger.warning("lost", count=1)',
                "assert a < b",
                'x = f"of {count + 1}"',
                "x: Literal['a'] = y",
                '"""Docstring."""',
                "def __repr__(self): return 'a' + 1",
                "x = Field(description='text')",
                "x = 'A sentence of a message.'",
                "T = TypeVar('T')",
                "def f(self): raise NotImplementedError",
            )
        ],
    ],
)
def test_the_changes_of_a_module(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


def test_a_change_is_active_by_its_number_only() -> None:
    source = "def f(rows):\n    return [row for row in rows if row.price > 0][:2]\n"
    tree, places = instrumented("crawler/a/b.py", source, {place: 10 + place for place in range(9)}, {})
    found, code = places.found, compile(tree, "b.py", "exec")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102  # the compiled module
    rows = [type("Row", (), {"price": price}) for price in (0, 1, 2, 3)]
    prices = {}
    for number in (0, *range(10, 10 + len(found))):
        names["_switch"] = [number, 0, 0]
        result = names["f"](rows)
        prices[number] = result and [row.price for row in result]
        assert names["_switch"][1] == 1  # the mark of the block
    assert prices[0] == [1, 2]
    assert {found[number - 10].change: each for number, each in prices.items() if number} == {
        "return [row for row in rows if row.price > 0][:2] → return None": None,
        "row.price > 0 → row.price >= 0": [0, 1],
        "row.price > 0 → True": [0, 1],
        "0 → 1": [2, 3],
        "2 → 3": [1, 2, 3],
    }


def test_each_block_has_a_mark_and_the_names_in_it() -> None:
    source = '''
def f(row):
    """Docstring."""
    first = row.price
    if first:
        return LIMIT
    for each in row:
        use(each)
    return first
'''
    blocks: dict[str, int] = {}
    tree, places = instrumented("crawler/a/b.py", source, {}, blocks)
    assert list(blocks) == [f"crawler/a/b.py:f:{number}" for number in (1, 2, 3, 4, 5)]
    names: dict[str, Any] = {}
    exec(compile(tree, "b.py", "exec"), names)  # noqa: S102  # the compiled module
    names |= {"_switch": [0] * 6, "LIMIT": 3}
    row = type("Row", (list,), {"price": 7})()
    assert (names["f"](row), names["f"].__doc__, names["_switch"]) == (3, "Docstring.", [0, 1, 1, 0, 0, 0])
    assert {name: sorted(each[-1] for each in of) for name, of in places.uses.items()} == {
        "row": ["1", "3"],
        "price": ["1"],
        "first": ["1", "5"],
        "LIMIT": ["2"],
        "each": ["3", "4"],
        "use": ["4"],
    }


def test_a_sample_is_the_same_for_a_seed_and_has_one_mutant_of_a_line() -> None:
    mutants = [
        Mutant(f"crawler/{room}/b.py", line, place, "key", "", "")
        for room, lines in (("jobs", 90), ("mcp", 10))
        for line in range(lines)
        for place in range(3)
    ]
    chosen = sample(mutants, [], 20, "1")
    assert chosen == sample(mutants, [], 20, "1") != sample(mutants, [], 20, "2")
    assert len({(each.file, each.line) for each in chosen}) == len(chosen) == 20
    assert sum("mcp" in each.file for each in chosen) == 5
    assert {each.file for each in sample(mutants, ["mcp"], 3, "1")} == {"crawler/mcp/b.py"}
    with pytest.raises(SystemExit, match=r"unknown room: web\. Choose from jobs, mcp"):
        sample(mutants, ["web"], 3, "1")


def test_tests_run_in_a_process_that_has_imported_the_libraries() -> None:
    code = f"import pytest, web_poet; raise SystemExit(pytest.main([*{OPTIONS}, '--collect-only', {__file__!r}]))"
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr[-500:]
