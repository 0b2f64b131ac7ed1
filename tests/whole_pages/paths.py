"""The structure of a response as paths: names and nesting, without values.

A path has the keys of JSON, also of JSON in scripts and in texts, or the names of a page's metadata, scripts and
elements (``id``, ``data-section``, and the names of parts in classes).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import orjson
from lxml import html

PART = re.compile(
    r"[a-z0-9]+(?:[-_][a-z0-9]+)*__[a-z0-9_-]+|experience-[a-z-]+|browsemap|slide-list__item|show-more-[a-z-]+"
)
"""The names of parts in classes. Other classes are about looks, and change with each release."""
METADATA = ("name", "property", "http-equiv", "itemprop", "rel")
"""The attributes that name metadata of a page."""
HEAD = {"meta", "link", "script"}
"""The elements that are compared on all pages. Others are compared only on pages whose elements page objects read."""
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
OBJECT = re.compile(r"[=(,:]\s*(?=\{\s*\")")
"""Matches what stands before a JSON object that a script assigns or passes to a function."""


def paths(body: bytes, *, elements: bool) -> frozenset[str]:
    """Return the paths of a response. ``elements``: also those of the elements in a page's body."""
    if body.lstrip()[:1] in {b"{", b"["}:
        return frozenset(_of_value(orjson.loads(body)))
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
            yield from _of_stream(inside)
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
    if (whole := _json_of(code.strip())) is not None:
        yield from _of_value(whole)
        return
    decoder, position = json.JSONDecoder(), 0
    while found := OBJECT.search(code, position):
        try:
            value, position = decoder.raw_decode(code, found.end())
        except ValueError:
            position = found.end()
        else:
            yield from _of_value(value)


def _of_stream(code: str) -> Iterator[str]:
    """Yield the keys in a stream of JavaScript objects, without keys that are content and the key after each."""
    keys = re.findall(r'([A-Za-z_$][\w$]*|"[^"\\]*"):', code)
    for before, key in pairwise(["", *(each.strip('"') for each in keys)]):
        if _is_name(key) and _is_name(before):
            yield f"js>{key}"


def _of_value(value: Any, path: str = "") -> Iterator[str]:
    match value:
        case dict():
            for key, each in value.items():
                below = f"{path}.{key if _is_name(key) else '*'}"
                yield below
                yield from _of_value(each, below)
        case list():
            for each in value:
                yield from _of_value(each, f"{path}[]")
        case str():
            if (nested := _json_of(value)) is not None:
                yield from _of_value(nested, f"{path}>")


def _json_of(text: str) -> Any:
    """Return the JSON object or list that a text contains, or None."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, (dict, list)) and found else None


@cache
def _is_name(key: str) -> bool:
    """Return whether a key is a name. Other keys (ids, URLs, texts) are content."""
    mixed = re.search(r"\d", key) and re.search(r"[a-z]", key) and re.search(r"[A-Z]", key) and len(key) >= 10
    plain = re.fullmatch(r"[\w$@.:/-]{0,60}", key, re.ASCII) and not re.search(r"\d{5}", key)
    return bool(plain and not mixed and not _is_encoded(key))


def _is_encoded(key: str) -> bool:
    """Return whether a key encodes a text, such as JSON or "name:number", in base64."""
    if not BASE64.fullmatch(key):
        return False
    plain = key.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return text.isprintable() and bool(re.search(r"[:{\"]", text))
