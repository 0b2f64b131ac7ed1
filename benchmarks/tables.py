"""Tables in Markdown, and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable


def value(number: float) -> str:
    """Return a number with three digits, or with all digits before the point.

    >>> [value(each) for each in (0, 0.0213, 0.5, 6.248, 64.21, 1234.5)]
    ['0', '0.0213', '0.500', '6.25', '64.2', '1,234']
    """
    size = abs(number)
    digits = 0 if not size else 4 if size < 0.1 else 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{number:,.{digits}f}"


def grid(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    r"""Return a Markdown table.

    >>> print(grid(("figure", "ms"), [("a|b", "3")]))
    | figure | ms |
    |---|---|
    | a\|b | 3 |
    """
    head, *body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, *rows)]
    return "\n".join([head, "|" + "---|" * len(list(header)), *body])
