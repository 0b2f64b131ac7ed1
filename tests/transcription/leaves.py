"""Extracts all content of a body, decoded: texts in JSON, markup, scripts, URLs and base64, nested in any order."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.transcription import markup, shape

WORD = re.compile(r"[^\W\d_]{6,}")
NUMBER = re.compile(r"\d{5,}")
HASH = re.compile(r"(?<![0-9A-Za-z])(?=\d*[a-f])[0-9a-f]{32,}(?![0-9A-Za-z])")
"""Matches a hexadecimal hash, which is one part: among thousands, six of its digits equal a number by chance."""
MARKUP = re.compile(r"<[a-zA-Z][^<>]*>")
PARAMETER = re.compile(r"([?&;])[A-Za-z_.-]{1,30}=|\"\w{1,40}\":")
"""Matches the name of a URL argument, or a JSON key in one. These are names, not content."""
MIN_BASE64, MIN_TEXT = 12, 6
TOKEN = re.compile(r"(?<![\w+-])[\w+-]{12,}={0,2}")


def of_body(body: str) -> Iterator[tuple[str, str]]:
    """Yield each text and number of a body, with its key or attribute."""
    if (value := shape.json_of(body)) is not None:
        yield from _of_value(value, "")
        return
    for piece in markup.pieces(body):
        if piece.kind == "script":
            yield from _of_script(piece.text)
        elif piece.kind == "tag":
            yield from _of_tag(piece.text)
        elif "$R[" in piece.text:
            yield from _of_code(piece.text)
        else:
            yield from _of_text(html.unescape(piece.text.removeprefix("<!--").removesuffix("-->")), "")


def _of_value(value: Any, key: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, each in value.items():
                if not shape.is_name(name):
                    yield from _of_text(name, "")
                yield from _of_value(each, name)
        case list():
            for each in value:
                yield from _of_value(each, key)
        case str():
            yield from _of_text(value, key)
        case int() | float() if not isinstance(value, bool):
            yield key, str(value)


def _of_text(text: str, key: str) -> Iterator[tuple[str, str]]:
    """Yield a text, and the texts that it contains in another encoding."""
    if (value := shape.json_of(text)) is not None:
        yield from _of_value(value, key)
        return
    if not text.strip():
        return
    if "<" in text and MARKUP.search(text):
        yield from of_body(text)
        return
    plain = unquote(text) if "%" in text else text
    plain = html.unescape(plain) if "&" in plain else plain
    if plain != text:
        yield from _of_text(plain, key)
        return
    for token in TOKEN.findall(text) if len(text) >= MIN_BASE64 else ():
        if (inner := shape.base64_text(token)) is not None:
            yield from _of_text(inner, "")
            text = text.replace(token, "")
    yield key, PARAMETER.sub(r"\1=", text) if "=" in text else text


def _of_tag(tag: str) -> Iterator[tuple[str, str]]:
    is_kept = markup.kept_attributes(tag)
    for found in markup.ATTRIBUTE.finditer(tag):
        value = html.unescape(found["value"].strip("\"'"))
        if not is_kept(found["name"], value):
            yield from _of_text(value, found["name"])


def _of_script(text: str) -> Iterator[tuple[str, str]]:
    found = markup.PIECE.match(text)
    assert found is not None
    yield from _of_tag(found["open"])
    if (value := shape.json_of(found["code"])) is not None:
        yield from _of_value(value, "")
    else:
        yield from _of_code(found["code"])


def _of_code(text: str) -> Iterator[tuple[str, str]]:
    key, text = "", f'"{text}' if markup.TORN.match(text) else text
    for found in markup.JS.finditer(text):
        token, is_key = found[0], text[found.end() : found.end() + 1] == ":"
        if is_key and shape.is_name(token.strip('"')):
            key = token.strip('"')
        elif token[0] in "\"'":
            token = markup.double_quoted(token)
            try:
                plain = json.loads(re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", token).replace("\n", "\\n"))
            except ValueError:
                plain = token
            yield from _of_text(plain, "" if is_key else key)
        elif token.isdecimal():
            yield key, token
        elif not shape.is_name(token):
            yield from _of_text(token, "")


@dataclass(frozen=True)
class Content:
    """The content of many bodies: texts of at least 6 characters, and the words and numbers of ``parts_of()``."""

    texts: frozenset[str]
    parts: frozenset[str]


def content(bodies: Iterable[str]) -> Content:
    """Collect the content of bodies, both raw and decoded."""
    found: set[str] = set()
    parts: set[str] = set()
    for body in bodies:
        found.update(text for _, text in of_body(body))
        parts |= parts_of(body)
    texts = {plain for text in found if len(plain := " ".join(text.split())) >= MIN_TEXT}
    for text in found:
        parts |= parts_of(text)
    return Content(frozenset(texts), frozenset(parts))


def parts_of(text: str) -> set[str]:
    """Return the hashes, words of 6 or more letters (in lower case) and numbers of 5 or more digits (not zeros)."""
    hashes = HASH.findall(text)
    rest = HASH.sub(" ", text) if hashes else text
    return {*hashes, *WORD.findall(rest.lower()), *(number for number in NUMBER.findall(rest) if number.strip("0"))}
