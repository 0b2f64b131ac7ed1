"""``python -m benchmarks lines``: the number of code lines in each top-level part of the project."""

from __future__ import annotations

import pytest

from benchmarks.lines import code_lines

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
