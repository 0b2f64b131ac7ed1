"""Fills the skeletons of simulated pages. Their constant structure is data; Python adds only the invented content.

The skeletons of a module are in the JSON file beside it that has the module's name: ``row.json`` for ``row.py``. Texts
in a skeleton are format strings. A text that is only a field, such as ``"{post.likes}"``, becomes the field's value
with its type; other texts are formatted: ``"/watch?v={item.id}"``. Keys and rows whose value is ``ABSENT`` are omitted.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter
from typing import Any

import orjson

ABSENT: Any = object()
"""The value of a field that the page omits, together with its key."""
_FIELD = re.compile(r"\{([\w.\[\]]+)\}")
_FORMATTER = Formatter()


class Skeletons:
    """The skeletons of one module. ``module``: its ``__file__``."""

    def __init__(self, module: str) -> None:
        self._skeletons: dict[str, Any] = orjson.loads(Path(module).with_suffix(".json").read_bytes())

    def __call__(self, skeleton: str, /, **fields: Any) -> dict[str, Any]:
        """Return a new copy of a skeleton, named by its key in the file, filled with the fields.

        Raises:
            TypeError: a field is missing. It is no ``KeyError``, which sites answer with 404.
        """
        try:
            found: dict[str, Any] = _filled(self._skeletons[skeleton], fields)
        except KeyError as error:
            raise TypeError(f"the skeleton {skeleton!r} has no field {error}; add it to the file or pass it") from error
        return found


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
