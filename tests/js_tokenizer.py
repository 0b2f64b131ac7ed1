"""A slow parser of script literals, which reads one token at a time. Tests compare ``js_literals`` with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from crawler.platforms.microblog.js_literals import unescaped

_TOKEN = re.compile(
    r"""
      (?P<string> "[^"\\]*+(?:\\.[^"\\]*+)*+" | '[^'\\]*+(?:\\.[^'\\]*+)*+' | `[^`\\]*+(?:\\.[^`\\]*+)*+` )
    | (?P<slot>   \$R\[(?P<index>\d{1,9})\] )
    | (?P<truth>  ![01](?![\w$]) )
    | (?P<void>   void\ 0(?![\w$]) )
    | (?P<number> -?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,9})?n?(?![\w$]) )
    | (?P<word>   [\w$]+ )
    | (?P<equals> =>|[=!]={1,2}|= )
    | (?P<sign>   \S )
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"}": "{", "]": "[", ")": "("}

Container = dict[str, Any] | list[Any]


@dataclass
class Literals:
    """The values in a page's scripts, with the attributes of ``crawler.platforms.microblog.js_literals.Literals``."""

    containers: list[Container] = field(default_factory=list)
    """Every object and array that was read to its closing bracket, in the order of the opening brackets."""
    complete: bool = True
    """Whether all values were read to their end. False if a script ends in the middle of a value."""
    _slots: dict[str, Any] = field(default_factory=dict)

    def read(self, script: str) -> None:
        reader = _Reader(self._slots)
        reader.read(script)
        unfinished = {id(frame.container) for frame in reader.stack[1:]}
        self.complete = self.complete and not unfinished and not reader.is_truncated
        self.containers += [each for each in reader.opened if id(each) not in unfinished]


@dataclass(slots=True)
class _Frame:
    """An open bracket, and the state of the element that the parser is reading inside it."""

    kind: str
    container: Container | None = None
    key: str | None = None
    word: str | None = None
    """The last token if it can be an object's key, else None."""
    value: Any = None
    has_value: bool = False
    """Whether a value of the element has been read."""
    slot: str | None = None
    """The number of the slot that the last token refers to, or None."""
    assigned_slots: list[str] = field(default_factory=list)
    """The numbers of the slots that the element's value is assigned to."""

    def set_value(self, value: Any, *, word: str | None = None, slot: str | None = None) -> None:
        self.value, self.has_value, self.word, self.slot = value, True, word, slot


class _Reader:
    """Builds values from tokens, with one frame for each open bracket."""

    def __init__(self, slots: dict[str, Any]) -> None:
        self.slots = slots
        self.stack = [_Frame("")]
        self.opened: list[Container] = []
        self.is_truncated = False

    def read(self, script: str) -> None:
        for token in _TOKEN.finditer(script):
            kind, text = token.lastgroup, token[0]
            top = self.stack[-1]
            if kind == "slot":
                index = token["index"]
                top.set_value(self.slots.get(index), slot=index)
            elif kind == "equals":
                if text == "=" and top.slot is not None:
                    top.assigned_slots.append(top.slot)
                    top.set_value(None)
            elif kind != "sign":
                value = _value(kind, text)
                top.set_value(value, word=value if kind == "string" else text)
            elif text in "\"'`":
                self.is_truncated = True  # an unclosed string: everything after it could be text or data
                return
            else:
                self._sign(text, top)

    def _sign(self, text: str, top: _Frame) -> None:
        if text in "{[(":
            container: Container | None = {} if text == "{" else [] if text == "[" else None
            if container is not None:
                self.opened.append(container)
                for index in top.assigned_slots:
                    self.slots[index] = container
                top.assigned_slots = []
            self.stack.append(_Frame(text, container))
        elif text in ",;":
            self._commit(top)
        elif text == ":" and top.kind == "{" and top.key is None and top.word is not None:
            top.key = top.word
            top.value, top.has_value, top.word = None, False, None
        elif text in _CLOSES:
            self._close(_CLOSES[text])

    def _close(self, kind: str) -> None:
        """Close the innermost open bracket of this kind, and all brackets inside it.

        A closing bracket without an opening one is ignored.
        """
        depth = next((n for n in range(len(self.stack) - 1, 0, -1) if self.stack[n].kind == kind), 0)
        while depth and len(self.stack) > depth:
            frame = self.stack[-1]
            self._commit(frame)
            self.stack.pop()
            # The value of a pair of parentheses is the last value inside it.
            self.stack[-1].set_value(frame.value if frame.container is None else frame.container)

    def _commit(self, frame: _Frame) -> None:
        """Store the element's value in its container and in its slots, and prepare for the next element."""
        for index in frame.assigned_slots:
            self.slots[index] = frame.value
        if isinstance(frame.container, dict):
            if frame.key is not None:
                frame.container[frame.key] = frame.value
        elif isinstance(frame.container, list) and frame.has_value:
            frame.container.append(frame.value)
        last = frame.value
        frame.key, frame.assigned_slots = None, []
        frame.set_value(last if frame.container is None else None)
        frame.has_value = False


def _value(kind: str | None, text: str) -> Any:
    """Convert a token to its value: a string, number, true or false. For any other token, return None."""
    if kind == "string":
        return unescaped(text[1:-1])
    if kind == "number":
        return _number(text)
    return {"!0": True, "true": True, "!1": False, "false": False}.get(text)


def _number(text: str) -> int | float | None:
    try:
        return int(text.rstrip("n"))
    except ValueError:
        value = float(text.rstrip("n"))
        return value if abs(value) < float("inf") else None
