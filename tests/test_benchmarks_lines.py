"""``python -m benchmarks lines``: the number of code lines in each top-level part of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lines import by_room, code_lines, report

pytestmark = pytest.mark.meta


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("# comment\n\n   \nx = 1  # one\n", 1, id="comments and blank lines"),
        pytest.param('"""Module.\n\nText.\n"""\nx = 1\n"""Constant."""\n', 1, id="docstrings"),
        pytest.param('class A:\n    """Class."""\n\n    def f(self):\n        """Method."""\n', 2, id="inside"),
        pytest.param("def f(self):  # why\n    '''Text.'''; return 1\n", 2, id="code after a docstring"),
        pytest.param('x = """a\n# b\n\nc"""\n', 4, id="a text that is a value"),
        pytest.param("x = f(\n    1,\n    # why\n)\n", 3, id="a call on several lines"),
    ],
)
def test_a_code_line_has_a_token_outside_of_comments_and_docstrings(source: str, expected: int) -> None:
    assert code_lines(source) == expected


def test_each_room_is_counted_once(tmp_path: Path) -> None:
    sizes = {
        "crawler/items.py": 1,
        "crawler/platforms/page.py": 2,
        "crawler/platforms/retail/pages.py": 3,
        "crawler/sandbox/retail/site.py": 4,
        "crawler/service/docs/site.py": 5,
        "crawler/service/site.py": 6,
        "tests/spiders/test_retail.py": 7,
    }
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n" * size)
    assert dict(by_room(tmp_path)[0]) == {
        "crawler": 1,
        "crawler/platforms": 2,
        "crawler/platforms/retail": 3,
        "crawler/sandbox": 4,
        "crawler/service": 11,
        "tests": 7,
    }
    table = report(tmp_path)
    assert "| **`crawler` without the sandbox** | 17 | 5 |" in table
    assert "| all of `crawler/platforms` | 5 | 2 |" in table
    assert "| all of `crawler` | 21 | 6 |" in table
