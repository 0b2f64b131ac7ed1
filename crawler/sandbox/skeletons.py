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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from operator import attrgetter, itemgetter
from pathlib import Path
from string import Formatter
from types import SimpleNamespace
from typing import Any

import orjson

ABSENT: Any = object()
"""The value of a field that the page omits, together with its key."""
_FIELD = re.compile(r"\{([\w.\[\]]+)\}")
_NAME = re.compile(r"^<!-- (.+) -->\n", re.MULTILINE)

Fields = dict[str, Any]
Build = Callable[[Fields], Any]
"""A function that builds a part of a page from the fields. Files are compiled to such functions when they are loaded,
so that pages are built about as fast as from literals."""


def invented(module: str) -> SimpleNamespace:
    """Return the invented words and names of a module, from the JSON file beside it. ``module``: its ``__file__``."""
    return SimpleNamespace(**orjson.loads(Path(module).with_suffix(".json").read_bytes()))


class Skeletons:
    """The skeletons of one module. ``module``: its ``__file__``."""

    def __init__(self, module: str) -> None:
        skeletons = orjson.loads(Path(module).with_suffix(".json").read_bytes())
        self._builds = {name: _compiled(node) for name, node in skeletons.items()}

    def __call__(self, skeleton: str, /, **fields: Any) -> dict[str, Any]:
        """Return a new copy of a skeleton, named by its key in the file, filled with the fields.

        Raises:
            TypeError: the skeleton or a field is missing. Sites would hide a ``KeyError``: they respond to it with 404.
        """
        with _named(skeleton):
            found: dict[str, Any] = self._builds[skeleton](fields)
        return found


class Fragments:
    """The HTML fragments of one module. ``module``: its ``__file__``."""

    def __init__(self, module: str) -> None:
        _, *parts = _NAME.split(Path(module).with_suffix(".html").read_text(encoding="utf-8"))
        self._builds = {name: list(_pieces(text[:-1])) for name, text in zip(parts[::2], parts[1::2], strict=True)}

    def __call__(self, fragment: str, /, **fields: Any) -> str:
        """Return a fragment filled with the fields.

        Raises:
            TypeError: the fragment or a field is missing.
        """
        with _named(fragment):
            return "".join([build(fields) for build in self._builds[fragment]])


@contextmanager
def _named(skeleton: str) -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        raise TypeError(f"skeleton {skeleton!r}: {error} is neither in the file nor among the fields") from error


def _compiled(node: Any) -> Build:
    if isinstance(node, dict):
        return partial(_object, node, [(key, _compiled(child)) for key, child in node.items() if _varies(child)])
    if isinstance(node, list):
        return partial(_array, [_compiled(child) for child in node])
    if not _varies(node):
        return lambda _: node
    found = _FIELD.fullmatch(node)
    build: Build = _field(found[1]) if found else node.format_map
    return build


def _varies(node: Any) -> bool:
    """Whether a node must be built anew for each page."""
    return isinstance(node, dict | list) or (isinstance(node, str) and "{" in node)


def _object(constant: dict[str, Any], varying: list[tuple[str, Build]], fields: Fields) -> dict[str, Any]:
    made = constant.copy()
    for key, build in varying:
        made[key] = build(fields)
        if made[key] is ABSENT:
            del made[key]
    return made


def _array(builds: list[Build], fields: Fields) -> list[Any]:
    return [child for build in builds if (child := build(fields)) is not ABSENT]


def _pieces(text: str) -> Iterator[Build]:
    for literal, path, form, conversion in Formatter().parse(text):
        yield partial(_constant, literal)
        if path is not None:
            yield partial(_text, _field(path), form or "", conversion == "e")


def _constant(text: str, _: Fields) -> str:
    return text


def _text(get: Build, form: str, escaped: bool, fields: Fields) -> str:  # noqa: FBT001
    shown = format(get(fields), form)
    return escape(shown) if escaped else shown


def _field(path: str) -> Build:
    """Return a function that returns the value of a field, such as ``post``, ``post.owner.name`` or ``row[title]``."""
    name, *steps = re.findall(r"\w+|[.\[]", path)
    get: Build = itemgetter(name)
    for kind, step in zip(steps[::2], steps[1::2], strict=True):
        follow = attrgetter(step) if kind == "." else itemgetter(int(step) if step.isdecimal() else step)
        get = partial(_followed, get, follow)
    return get


def _followed(get: Build, follow: Callable[[Any], Any], fields: Fields) -> Any:
    return follow(get(fields))
