"""Fills the skeletons of simulated pages. Their constant structure is data; Python adds only the invented content.

The skeletons of a module are in the file beside it that has the module's name: ``row.json`` for ``row.py``. Texts in a
JSON skeleton are format strings. A text that is only a field, such as ``"{post.likes}"``, becomes the value of the
field, with its type. Other texts are formatted: ``"/watch?v={item.id}"``. Keys and rows with the value ``ABSENT`` are
omitted.

An HTML file contains fragments, each below a comment with its name. Fragments are format strings, too. The values of
fields are HTML, and ``{row[title]!e}`` escapes a text. Of the line breaks at the end of a fragment, the last one does
not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from string import Formatter
from types import SimpleNamespace
from typing import Any

import orjson

ABSENT: Any = object()
"""The value of a field that the page omits, together with its key."""
_FIELD = re.compile(r"\{([\w.\[\]]+)\}")
_NAME = re.compile(r"^<!-- (.+) -->\n", re.MULTILINE)


class _Formatter(Formatter):
    """Formats with the conversion ``!e``, which escapes a text for HTML."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return escape(value) if conversion == "e" else super().convert_field(value, conversion)


_FORMATTER = _Formatter()


def invented(module: str) -> SimpleNamespace:
    """Return the invented words and names of a module, from the JSON file beside it. ``module``: its ``__file__``."""
    return SimpleNamespace(**orjson.loads(Path(module).with_suffix(".json").read_bytes()))


class Skeletons:
    """The skeletons of one module. ``module``: its ``__file__``."""

    def __init__(self, module: str) -> None:
        self._skeletons: dict[str, Any] = orjson.loads(Path(module).with_suffix(".json").read_bytes())

    def __call__(self, skeleton: str, /, **fields: Any) -> dict[str, Any]:
        """Return a new copy of a skeleton, named by its key in the file, filled with the fields.

        Raises:
            TypeError: a field is missing. It is no ``KeyError``, which sites answer with 404.
        """
        with _named(skeleton):
            found: dict[str, Any] = _filled(self._skeletons[skeleton], fields)
        return found


class Fragments:
    """The HTML fragments of one module. ``module``: its ``__file__``."""

    def __init__(self, module: str) -> None:
        _, *parts = _NAME.split(Path(module).with_suffix(".html").read_text(encoding="utf-8"))
        self._fragments = {name: text[:-1] for name, text in zip(parts[::2], parts[1::2], strict=True)}

    def __call__(self, fragment: str, /, **fields: Any) -> str:
        """Return a fragment filled with the fields.

        Raises:
            TypeError: a field is missing.
        """
        with _named(fragment):
            return _FORMATTER.vformat(self._fragments[fragment], (), fields)


@contextmanager
def _named(skeleton: str) -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        raise TypeError(f"the skeleton {skeleton!r} has no field {error}; add it to the file or pass it") from error


def _filled(node: Any, fields: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        pairs = ((key, _filled(child, fields)) for key, child in node.items())
        return {key: child for key, child in pairs if child is not ABSENT}
    if isinstance(node, list):
        return [child for each in node if (child := _filled(each, fields)) is not ABSENT]
    if not isinstance(node, str) or "{" not in node:
        return node
    found = _FIELD.fullmatch(node)
    return _FORMATTER.get_field(found[1], (), fields)[0] if found else node.format_map(fields)
