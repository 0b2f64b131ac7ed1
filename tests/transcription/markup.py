"""Transcribes markup: tags, attribute names, classes and script wrappers are kept, and content is made up."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.transcription import shape, words

if TYPE_CHECKING:
    from tests.transcription.invent import Inventor

PIECE = re.compile(
    r"""(?P<comment><!--.*?-->)
    |(?P<open><(?:script|style)\b[^>]*>)(?P<code>.*?)(?P<close></(?:script|style)\s*>)
    |(?P<tag><[a-zA-Z/!?](?:[^<>"']|"[^"]*"|'[^']*')*>|<[a-zA-Z/!?][^<>]*(?:>|(?=<|\Z)))
    |(?P<text>[^<]+|<)""",
    re.VERBOSE | re.DOTALL,
)
ATTRIBUTE = re.compile(r"""(?P<name>[^\s=<>"'/]+)(?P<equals>\s*=\s*)(?P<value>"[^"]*"|'[^']*'|[^\s>"']+)""")
NAME = re.compile(r"</?([a-zA-Z][\w:-]*)")
KEPT_ATTRIBUTES = re.compile(
    r"class|name|property|rel|type|itemprop|itemscope|itemtype|charset|http-equiv|role|lang|xml.*|version|media|for|id"
    r"|method|target|tabindex|width|height|viewbox|fill|aria-hidden|data-(?:section|test-?id|e2e|tracking-[a-z-]+)",
    re.IGNORECASE,
)
BLANK_ATTRIBUTES = re.compile(r"style|d|points|integrity|srcset|on[a-z]+|transform", re.IGNORECASE)
ENUM_METAS = re.compile(
    r"pageKey|og:type|og:locale|locale|robots|viewport|twitter:card|twitter:label\d|referrer|content-type",
    re.IGNORECASE,
)
MIN_ROWS = 2
ROWS = {"li", "entry", "tr", "option"}
JS = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|\$R\[\d+\]|[A-Za-z_$][\w$]*|(?<![\w.])\d+(?![\w.])', re.DOTALL
)
TORN = re.compile(r'[^"{(=;]+"(?=[,:}\]])')
STATEMENT_CHARACTERS = 200


class Piece(NamedTuple):
    """A part of markup: its kind (a group name of ``PIECE``), its text, and the name of the tag."""

    kind: str
    text: str
    tag: str = ""


def pieces(markup: str) -> Iterator[Piece]:
    """Yield the parts of markup in order."""
    for found in PIECE.finditer(markup):
        if found["open"]:
            yield Piece("script", found[0])
        else:
            name = NAME.match(found[0])
            yield Piece(found.lastgroup or "", found[0], name[1].lower() if name else "")


def transcribe(inventor: Inventor, markup: str, prune: Callable[[Any], Any], seen: set[str]) -> str:
    """Return markup with the same structure and made-up content. Lists and whitespace between tags are shortened.

    ``seen``: the kinds of rows that the platform's earlier fixtures have. The kinds of this fixture's rows are added.
    """
    kept = cut_rows(list(pieces(markup)), inventor.platform, seen)
    return "".join(_piece(inventor, each, prune) for each in kept)


def _piece(inventor: Inventor, piece: Piece, prune: Callable[[Any], Any]) -> str:
    match piece.kind:
        case "comment":
            inner = piece.text[4:-3]
            nested = shape.json_of(inner)
            return f"<!--{dumps(inventor.value(prune(nested)))}-->" if nested is not None else "<!---->"
        case "script":
            found = PIECE.match(piece.text)
            assert found is not None
            return transcribe_tag(inventor, found["open"]) + code(inventor, found["code"], prune) + found["close"]
        case "tag":
            return transcribe_tag(inventor, piece.text)
    if "$R[" in piece.text:
        return js(inventor, piece.text)
    return inventor.text(piece.text) if piece.text.strip() else re.sub(r"\s{2,}", "\n", piece.text)


def transcribe_tag(inventor: Inventor, tag: str) -> str:
    """Return a tag with the same name, attribute names and classes, and with made-up values of other attributes."""
    if tag.startswith(("</", "<!", "<?")):
        return tag
    is_kept = kept_attributes(tag)

    def replace(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        mark = value[0] if value[0] in "\"'" else ""
        inner = html.unescape(value[len(mark) : len(value) - len(mark)])
        if BLANK_ATTRIBUTES.fullmatch(name):
            made = ""
        elif is_kept(name, inner):
            return found[0]
        else:
            made = html.escape(inventor.text(inner, name), quote=True)
        mark = mark or '"'
        return f"{name}{found['equals']}{mark}{made}{mark}"

    return ATTRIBUTE.sub(replace, tag)


def kept_attributes(tag: str) -> Callable[[str, str], bool]:
    """Return a function that maps name and value of an attribute of the tag to whether it is structure, and kept."""
    meta = re.search(r"""\b(?:name|property|http-equiv)=["']?([\w:.-]+)""", tag)
    known = bool(meta and ENUM_METAS.fullmatch(meta[1]))

    def is_kept(name: str, value: str) -> bool:
        structural = bool(KEPT_ATTRIBUTES.fullmatch(name)) or (name == "content" and known)
        return structural and not re.search(r"\d{5}", value)

    return is_kept


# Scripts


def dumps(value: Any) -> str:
    """Return JSON in the format of scripts in pages."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def code(inventor: Inventor, text: str, prune: Callable[[Any], Any]) -> str:
    """Return the content of a script or style. JSON is transcribed; of other code, only texts of page objects stay."""
    if (whole := shape.json_of(text.strip())) is not None:
        return dumps(inventor.value(prune(whole)))
    if "$R[" in text:
        return js(inventor, text)
    made, end = [], 0
    for start, after, value in json_values(text):
        made += [_statements(inventor, text[end:start], around=True), dumps(inventor.value(prune(value)))]
        end = after
    return "".join([*made, _statements(inventor, text[end:], around=bool(made))])


def json_values(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield start, end and value of each JSON object that a script assigns or passes to a function."""
    decoder, position = json.JSONDecoder(), 0
    while found := re.compile(r"[=(,:]\s*(?=\{\s*\")").search(text, position):
        try:
            value, end = decoder.raw_decode(text, found.end())
        except ValueError:
            position = found.end()
            continue
        yield found.end(), end, value
        position = end


def _statements(inventor: Inventor, text: str, *, around: bool) -> str:
    """Return the statements with texts that page objects compare. ``around``: also the text before the next JSON."""
    marks = [each for each in words.literals(inventor.platform) if len(each) >= 6] + list(words.PHRASES)
    parts = re.split(r"(?<=[;\n}])", text)
    kept = [part if len(part) <= STATEMENT_CHARACTERS else _near(part, marks) for part in parts if _has(part, marks)]
    if around and parts and parts[-1] not in kept:
        kept.append(parts[-1][-80:])
    return "".join(js(inventor, each) for each in kept)


def _has(text: str, marks: list[str]) -> bool:
    return any(mark in text for mark in marks)


def _near(text: str, marks: list[str]) -> str:
    return "".join(f'"{mark}";' for mark in marks if mark in text)


def js(inventor: Inventor, text: str) -> str:
    """Return JavaScript with its strings and numbers replaced. Names are kept unless they are ids."""
    if TORN.match(text):  # an excerpt can begin inside a string
        return js(inventor, f'"{text}')[1:]
    key = ""

    def replace(found: re.Match[str]) -> str:
        nonlocal key
        token, is_key = found[0], text[found.end() : found.end() + 1] == ":"
        if token.startswith("$R["):
            return token
        if token[0] in "\"'":
            return _string(inventor, double_quoted(token), key, is_key=is_key)
        if token.isdecimal():
            return str(inventor.integer(int(token), key)) if len(token) < 2 or token[0] != "0" else token
        if is_key:
            key = token
        return inventor.key(token)

    return JS.sub(replace, text)


def double_quoted(literal: str) -> str:
    """Return a JavaScript string literal in double quotes."""
    if literal.startswith('"'):
        return literal
    inner = literal[1:-1].replace("\\'", "'")
    return '"' + re.sub(r'(?<!\\)"', '\\"', inner) + '"'


def _string(inventor: Inventor, literal: str, key: str, *, is_key: bool) -> str:
    try:
        plain = json.loads(re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", literal).replace("\n", "\\n"))
    except ValueError:
        return '""'
    made = inventor.key(plain) if is_key else inventor.text(plain, key)
    return json.dumps(made, ensure_ascii=False).replace("<", "\\x3C")


# Lists


def cut_rows(parts: list[Piece], platform: str, seen: set[str]) -> list[Piece]:
    """Return markup with lists reduced to the first two rows, and the rows with a tag, class or marker not in ``seen``.

    The tags, classes and markers of the rows that stay are added to ``seen``.
    """
    marks = [each for each in words.literals(platform) if "/" in each and len(each) > 3]
    kept: list[Piece] = []
    rows = position = 0
    while position < len(parts):
        piece = parts[position]
        end = _end_of_row(parts, position) if piece.tag in ROWS and not piece.text.startswith("</") else 0
        if not end:
            if piece.text.strip():
                rows = 0
            kept.append(piece)
            position += 1
            continue
        row = parts[position:end]
        kinds = {each.text if each.kind != "tag" else _kind(each.text) for each in row if each.kind == "tag"}
        kinds |= {mark for mark in marks if any(mark in each.text for each in row)}
        if rows < MIN_ROWS or not kinds <= seen:
            kept += [row[0], *cut_rows(row[1:-1], platform, seen), row[-1]]
            seen |= kinds
            rows += 1
        position = end
    return kept


def _kind(tag: str) -> str:
    name, classes = NAME.match(tag), re.search(r'class="([^"]*)"', tag)
    return f"{name[1] if name else tag} {classes[1] if classes else ''}"


def _end_of_row(parts: list[Piece], start: int) -> int:
    """Return the index after the row's end tag, or 0 if there is none."""
    depth, name = 0, parts[start].tag
    for position in range(start, len(parts)):
        if parts[position].tag == name:
            depth += -1 if parts[position].text.startswith("</") else not parts[position].text.endswith("/>")
            if depth == 0:
                return position + 1
    return 0


# Structure


def paths(markup: str) -> Iterator[str]:
    """Yield the structure of markup: tags with classes, attribute names and parents, and the keys in scripts."""
    open_tags = [""]
    for piece in pieces(markup):
        if piece.kind == "script":
            yield from _script_paths(piece.text)
        elif piece.kind == "tag" and piece.tag:
            if piece.text.startswith("</"):
                if piece.tag in open_tags:
                    while open_tags.pop() != piece.tag:
                        pass
                continue
            yield f"<{open_tags[-1]}<{_kind(piece.text)}"
            yield from (f"<{piece.tag}@{found['name']}" for found in ATTRIBUTE.finditer(piece.text))
            if not piece.text.endswith("/>") and piece.tag not in {"meta", "link", "img", "br", "input", "hr", "path"}:
                open_tags.append(piece.tag)
        elif "$R[" in piece.text:
            yield from js_paths(piece.text)


def _script_paths(text: str) -> Iterator[str]:
    found = PIECE.match(text)
    assert found is not None
    yield f"<{_kind(found['open'])}"
    if (whole := shape.json_of(found["code"].strip())) is not None:
        yield from shape.paths(whole, "script>")
    elif "$R[" in found["code"]:
        yield from js_paths(found["code"])
    else:
        for _, _, value in json_values(found["code"]):
            yield from shape.paths(value, "script>")


def js_paths(text: str) -> Iterator[str]:
    """Yield the keys in a stream of JavaScript objects, without keys that are content and the key after each."""
    keys = re.findall(r'([A-Za-z_$][\w$]*|"[^"\\]*"):', text)
    for before, key in pairwise(["", *(each.strip('"') for each in keys)]):
        if shape.is_name(key) and shape.is_name(before):
            yield f"js>{key}"
