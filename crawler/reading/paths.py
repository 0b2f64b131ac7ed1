"""Paths in a payload, as contracts declare them.

``metadata.rows[].text``: the text of each row. ``sources[-1].url``: the URL of the last source. ``overlays[].*.badge``:
the badge under any key of each overlay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

Step = str | int
"""One step of a path: a key, an index, ``EACH`` or ``ANY``."""

EACH = "[]"
"""The step from a list to each of its entries."""
ANY = "*"
"""The step from an object to the value under each of its keys, whatever these are called."""

_PATH = re.compile(r"(?P<index>\[(?P<number>-?\d+)?\])|(?P<key>[^.\[\]]+)|\.")


@cache
def steps(path: str) -> tuple[Step, ...]:
    """Split a path into its steps.

    >>> steps("metadata.rows[].text"), steps("sources[-1].url"), steps("overlays[].*.badge")
    (('metadata', 'rows', '[]', 'text'), ('sources', -1, 'url'), ('overlays', '[]', '*', 'badge'))

    Raises:
        ValueError: the path is empty or malformed.
    """
    found: list[Step] = []
    position = 0
    while position < len(path):
        step = _PATH.match(path, position)
        if step is None:
            break
        position = step.end()
        if step["key"]:
            found.append(step["key"])
        elif step["index"]:
            found.append(EACH if step["number"] is None else int(step["number"]))
    if not found or position < len(path) or path.strip(".") != path or ".." in path:
        raise ValueError(f"{path!r} is not a path: expected keys, [] and [0], joined by dots")
    return tuple(found)


def is_flat(path: str) -> bool:
    """Whether a path leads to at most one value. A path with ``[]`` or ``*`` leads to a list of values.

    >>> is_flat("sources[-1].url"), is_flat("rows[].text")
    (True, False)
    """
    return EACH not in steps(path) and ANY not in steps(path)


def join(parent: str, path: str) -> str:
    """Return the path from the root for a path that is relative to its parent.

    >>> join("rows[]", "title.text"), join("", "rows[]"), join("rows[]", "[0].text")
    ('rows[].title.text', 'rows[]', 'rows[][0].text')
    """
    return f"{parent}{path}" if path.startswith("[") else f"{parent}.{path}".lstrip(".")


def joined(path: Iterable[Step]) -> str:
    """Return the text of a path: the inverse of ``steps``.

    >>> joined(("sources", -1, "url")), joined(("rows", "[]", "*", "text"))
    ('sources[-1].url', 'rows[].*.text')
    """
    text = ""
    for step in path:
        text = f"{text}[{step}]" if isinstance(step, int) else join(text, step)
    return text
