r"""Parser for script literals: data in a page's scripts that is written as JavaScript values, not as JSON.

The literals are written by a stream serialiser: ``$R[7]={name:"x",ok:!0,parent:$R[3]}``. Keys may have quotes.
``$R[n]=`` assigns a value to a numbered slot, and a later ``$R[n]`` refers to that value. Function calls surround the
data. The parser evaluates no code: a regular expression and one loop with an explicit stack build the values, so
neither deep nesting nor text that looks like code can cause an error. Anything that is not a literal, such as a
function or a name, becomes None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import length_hint
from typing import Any

from crawler.errors import ExtractionFailed
from crawler.reading.contract import invalid_error

MAX_CHARACTERS = 500_000
"""Maximum number of characters in a page's scripts, to limit the time for parsing. Real pages have fewer than
100,000."""
MAX_ELEMENTS = 50_000
"""Number of elements in a page's scripts, such as ``name:"x",``, from which on the page is refused. The 47,838
characters of a real page have 3,452."""

_QUOTES = "\"'`"
_STRING = "|".join(rf"{quote}[^{quote}\\]*+(?:{quote}|(?:\\.[^{quote}\\]*+)+{quote})" for quote in _QUOTES)
_NUMBER = r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,9})?n?(?![\w$])"
# To save time, each match covers as much of an element as possible, such as `name:$R[7]={` or `ok:!0}],`. Operators and
# everything else that is not part of an element are matched as signs, and so is an unclosed string, up to the end of
# the script. Spaces between matches are skipped. "(?:x|)" means the same as "(?:x)?", and is faster.
_ELEMENT = re.compile(
    rf"""
      (?:
        (?: (?P<key> [\w$]++ | {_STRING} ) \s*+ : \s*+ | )
        (?:
            \$R\[ (?P<slot> \d{{1,9}} ) \] (?: \s*+ (?P<assigns> = (?![=>]) ) \s*+ (?: (?P<opens> [{{\[(] ) | ) | )
          | (?P<opens_alone> [{{\[(] )
          | (?P<string> {_STRING} )
          | (?P<word> {_NUMBER} | ![01](?![\w$]) | void\ 0(?![\w$]) | [\w$]++ )
        )
        \s*+ (?: (?P<closes> [}}\])]++ ) | )
        | (?P<closes_alone> [}}\])]++ )
      )
      \s*+ (?: (?P<ends> [,;] ) | )
    | (?P<sign> =>|[=!]={{1,2}}|["'`].*|\S )
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER_ALONE = re.compile(_NUMBER)
_ESCAPE = re.compile(
    r"\\(?:u\{(?P<point>[0-9a-fA-F]{1,8})\}|u(?P<unit>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})"
    r"|(?P<line>\r\n|\n|\u2028|\u2029)|(?P<one>.))",
    re.DOTALL,
)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_WORDS = {"!0": True, "true": True, "!1": False, "false": False, "null": None, "undefined": None, "void 0": None}
_NOTHING = object()
"""Marks an element of which no value has been read yet."""
_CLOSES = {"}": "{", "]": "[", ")": "("}

Container = dict[str, Any] | list[Any]


@dataclass
class Literals:
    """The values in a page's scripts.

    A script may refer to slots (``$R[n]``) of earlier scripts, so the scripts must be read in the page's order.
    """

    containers: list[Container] = field(default_factory=list)
    """Every object and array that was read to its closing bracket, in the order of the opening brackets."""
    complete: bool = True
    """Whether all values were read to their end. False if a script ends in the middle of a value."""
    _slots: dict[str, Any] = field(default_factory=dict)
    _characters: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(MAX_ELEMENTS)))
    """Limits the number of elements: yields one number for each element that may still be read."""

    def read(self, script: str) -> None:
        r"""Read a script, and add its objects and arrays to ``containers``.

        >>> found = Literals()
        >>> found.read('($R=>$R[0]={a:$R[1]=[!0,-1.5,"\x3Cb>"],"c d":$R[1],e:void 0})($R["tsr"])')
        >>> found.containers[0]
        {'a': [True, -1.5, '<b>'], 'c d': [True, -1.5, '<b>'], 'e': None}

        Raises:
            ExtractionFailed: the page's scripts have more than ``MAX_CHARACTERS`` characters, or ``MAX_ELEMENTS``
                elements or more.
        """
        self._characters += len(script)
        if self._characters > MAX_CHARACTERS:
            raise _too_long(f"more than {MAX_CHARACTERS:,} characters")
        reader = _Reader(self._slots)
        reader.read(zip(_ELEMENT.finditer(script), self._numbers, strict=False))
        if not length_hint(self._numbers):
            raise _too_long(f"{MAX_ELEMENTS:,} elements or more")
        unfinished = {id(frame.container) for frame in [*reader.outer, reader.frame] if frame.kind}
        self.complete = self.complete and not unfinished and not reader.is_truncated
        self.containers += [each for each in reader.opened if id(each) not in unfinished]

    @property
    def dicts(self) -> list[dict[str, Any]]:
        """The objects among ``containers``, without the arrays."""
        return [each for each in self.containers if isinstance(each, dict)]


def _too_long(what: str) -> ExtractionFailed:
    message = f"The page's scripts have {what}."
    return invalid_error(message, ["script"], "Script too long", "too_long", reason="broken_data_block")


@dataclass(slots=True)
class _Frame:
    """An open bracket, and the beginning of the element inside it."""

    kind: str
    container: Any = None
    """The object or array that the bracket opens. None for a parenthesis, and for the script's top level."""
    key: str | None = None
    assigned_slots: list[str] | None = None
    """The numbers of the slots that the element's value is assigned to."""

    def assign(self, slot: str) -> None:
        """Record the number of a slot for the element's value. The slot is filled once the value is known."""
        if self.assigned_slots is None:  # most brackets need no list
            self.assigned_slots = [slot]
        else:
            self.assigned_slots.append(slot)


class _Reader:
    """Builds values from a script's elements, with one frame for each open bracket."""

    def __init__(self, slots: dict[str, Any]) -> None:
        self.slots = slots
        self.frame = _Frame("")
        self.outer: list[_Frame] = []
        self.depths = dict.fromkeys(_CLOSES.values(), 0)
        """The number of open brackets, by kind of opening bracket."""
        self.opened: list[Container] = []
        self.is_truncated = False
        self.value: Any = _NOTHING
        """The value that was read last in the element."""
        self.word: str | None = None
        """The last text, if it can be the key of an object, else None."""
        self.slot: str | None = None
        """The number of the slot that the last text refers to, or None."""

    def read(self, elements: Iterable[tuple[re.Match[str], int]]) -> None:
        """Read the elements of a script. Each element comes with its number in the page."""
        for element, _ in elements:
            key, slot, assigns, opens, opens_alone, string, word, closes, closes_alone, ends, sign = element.groups()
            frame = self.frame
            is_property = key is not None and frame.key is None and frame.kind == "{"
            if is_property:
                frame.key = unescaped(key[1:-1]) if key[0] in _QUOTES else key
            if string or word:
                self.value = unescaped(string[1:-1]) if string else _value(word)
                self.word, self.slot = self.value if string else word, None
            elif bracket := opens or opens_alone:
                self._open(bracket, slot)
            elif slot is not None:
                self._slot(slot, assigns=assigns is not None)
            elif sign is not None:
                self._sign(sign)
            if closing := closes or closes_alone:
                self._close(closing)
            if ends is not None:
                self._commit()

    def _open(self, kind: str, slot: str | None) -> None:
        """Open a bracket.

        The object or array is assigned to ``slot``, and to the slots that the beginning of the element names.
        """
        container: Container | None = {} if kind == "{" else [] if kind == "[" else None
        frame = self.frame
        if slot is not None:
            frame.assign(slot)
        if container is not None:
            self.opened.append(container)
            for index in frame.assigned_slots or ():
                self.slots[index] = container
            frame.assigned_slots = None
        self.depths[kind] += 1
        self.outer.append(frame)
        self.frame = _Frame(kind, container)
        self.value, self.word, self.slot = _NOTHING, None, None

    def _slot(self, slot: str, *, assigns: bool) -> None:
        """Read the value of a slot; or with ``assigns``, record that the next value is assigned to the slot."""
        self.word = None
        if assigns:
            self.frame.assign(slot)
            self.value, self.slot = None, None
        else:
            self.value, self.slot = self.slots.get(slot), slot

    def _sign(self, text: str) -> None:
        if text[0] in _QUOTES:
            self.is_truncated = True  # after an unclosed quote, text and data cannot be distinguished
        elif text in ",;":
            self._commit()
        elif text == ":" and self.frame.kind == "{" and self.frame.key is None and self.word is not None:
            self.frame.key = self.word
            self.value, self.word = _NOTHING, None
        elif text == "=" and self.slot is not None:
            self._slot(self.slot, assigns=True)

    def _close(self, brackets: str) -> None:
        """Close, for each closing bracket, the innermost open bracket of its kind, and all brackets inside it.

        A closing bracket without an opening one is ignored.
        """
        for bracket in brackets:
            kind = _CLOSES[bracket]
            closed = "" if self.depths[kind] else kind
            while closed != kind:
                frame = self.frame
                if self.value is not _NOTHING or frame.key is not None or frame.assigned_slots:
                    self._commit()
                closed = frame.kind
                self.depths[closed] -= 1
                if frame.container is not None:
                    self.value = frame.container
                elif self.value is _NOTHING:  # otherwise the value in parentheses is the last value inside them
                    self.value = None
                self.frame = self.outer.pop()

    def _commit(self) -> None:
        """Store the element's value in its container and in its slots, and prepare for the next element."""
        frame, value = self.frame, None if self.value is _NOTHING else self.value
        if frame.assigned_slots:
            for index in frame.assigned_slots:
                self.slots[index] = value
            frame.assigned_slots = None
        if frame.key is not None:
            frame.container[frame.key] = value
            frame.key = None
        elif frame.kind == "[" and self.value is not _NOTHING:
            frame.container.append(value)
        if frame.container is not None:
            self.value = _NOTHING
        self.word = self.slot = None


def _value(word: str) -> bool | float | None:
    """Convert a word to its value: a number, true or false. For any other word, return None."""
    if word in _WORDS:
        return _WORDS[word]
    if not _NUMBER_ALONE.fullmatch(word):
        return None
    try:
        return int(word.rstrip("n"))
    except ValueError:
        value = float(word.rstrip("n"))
        return value if abs(value) < float("inf") else None


def unescaped(text: str) -> str:
    r"""Replace the escapes in a string literal's content. Surrogate pairs are joined, and lone surrogates are replaced.

    >>> unescaped(r'\x3Ca\u003e \ud83d\udc3e \ud83d! \u{1F43E} \"q\" \n')
    '<a> 🐾 �! 🐾 "q" \n'
    """
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(_character, text)
    return raw.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(found: re.Match[str]) -> str:
    code = found["point"] or found["unit"] or found["byte"]
    if code:
        point = int(code, 16)
        return chr(point) if point < 0x110000 else "�"
    return "" if found["line"] else _NAMED.get(found["one"], found["one"])
