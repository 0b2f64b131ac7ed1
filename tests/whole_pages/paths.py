"""The structure of a response as paths: names and nesting, without values.

A path has the keys of JSON, also of JSON in scripts and in texts, or the names of a page's metadata, scripts and
elements (``id``, ``data-section``, and the names of parts in classes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson
from lxml import html

from tests.transcription import markup, shape

PART = re.compile(
    r"[a-z0-9]+(?:[-_][a-z0-9]+)*__[a-z0-9_-]+|experience-[a-z-]+|browsemap|slide-list__item|show-more-[a-z-]+"
)
"""The names of parts in classes. Other classes are about looks, and change with each release."""
METADATA = ("name", "property", "http-equiv", "itemprop", "rel")
"""The attributes that name metadata of a page."""
HEAD = {"meta", "link", "script"}
"""The elements that are compared on all pages. Others are compared only on pages whose elements page objects read."""


def paths(body: bytes, *, elements: bool) -> frozenset[str]:
    """Return the paths of a response. ``elements``: also those of the elements in a page's body."""
    if body.lstrip()[:1] in {b"{", b"["}:
        return frozenset(shape.paths(orjson.loads(body)))
    return frozenset(_of_page(body.decode("utf-8", "replace"), elements=elements))


def is_below(path: str, parents: list[str]) -> bool:
    """Whether a path is one of the parents, or below one."""
    return any(path == each or (path.startswith(each) and path[len(each)] in ".[<>") for each in parents)


def _of_page(text: str, *, elements: bool) -> Iterator[str]:
    for element in html.document_fromstring(text).iter("*"):
        name = _name(element) if elements or element.tag in HEAD else ""
        above = next(filter(None, map(_name, element.iterancestors())), "") if elements else ""
        if name:
            yield f"<{above}<{name}"
        if elements:
            yield from (f"<{name or above}.{part}" for part in PART.findall(element.get("class", "")))
        inside = element.text or ""
        if "$R[" in inside:
            yield from markup.js_paths(inside)
        elif element.tag == "script":
            yield from (f"{name or 'script'}{path}" for path in _of_script(inside))


def _name(element: html.HtmlElement) -> str:
    """Return the name of an element, or "" for an element that only has a tag."""
    tag, given = str(element.tag), element.attrib
    if tag in {"meta", "link"}:
        return " ".join([tag, *(given[key] for key in METADATA if key in given)])
    identity = given.get("data-section", "") or given.get("id", "")
    if "modal" in identity:  # a page has a dozen windows, named after the places that open them
        identity = "modal"
    elif re.search(r"\d|session", identity):
        identity = "#"
    named = [part for part in (given.get("type", "") if tag == "script" else "", identity) if part]
    return " ".join([tag, *named]) if named else ""


def _of_script(code: str) -> Iterator[str]:
    if (whole := shape.json_of(code.strip())) is not None:
        yield from shape.paths(whole)
    else:
        for _, _, value in markup.json_values(code):
            yield from shape.paths(value)
