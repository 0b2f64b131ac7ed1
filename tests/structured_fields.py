"""A strict parser for the subset of RFC 9651 that this project's headers use: lists of tokens, strings and integers."""

from __future__ import annotations

import re

ITEM = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*|\"(?:[ !#-\[\]-~]|\\[\"\\])*\"")
KEY = re.compile(r"[a-z*][a-z0-9_.*-]*")

INTEGER = re.compile(r"-?[0-9]{1,15}(?![.0-9])")

Parameters = dict[str, str | int | bool]


def parse_list(text: str) -> list[tuple[str, Parameters]]:
    """Parse a list of items with parameters (section 4.2.1 of RFC 9651).

    Raises:
        ValueError: the text is not a valid list.
    """
    items: list[tuple[str, Parameters]] = []
    rest = text.strip(" ")
    while rest:
        name, rest = _take(ITEM, rest)
        parameters: Parameters = {}
        while rest.startswith(";"):
            key, rest = _take(KEY, rest[1:].lstrip(" "))
            if not rest.startswith("="):
                parameters[key] = True
            elif INTEGER.match(rest, 1):
                value, rest = _take(INTEGER, rest[1:])
                parameters[key] = int(value)
            else:
                value, rest = _take(ITEM, rest[1:])
                parameters[key] = _text(value)
        items.append((_text(name), parameters))
        rest = rest.lstrip(" \t")
        if rest:
            if not rest.startswith(","):
                raise ValueError(f"a comma is missing before {rest!r}")
            rest = rest[1:].lstrip(" \t")
            if not rest:
                raise ValueError("a comma at the end")
    return items


def _take(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    found = pattern.match(text)
    if found is None:
        raise ValueError(f"{pattern.pattern} does not match {text!r}")
    return found[0], text[found.end() :]


def _text(item: str) -> str:
    return re.sub(r"\\(.)", r"\1", item[1:-1]) if item.startswith('"') else item
