"""Reads JSON: one object per line (JSON Lines), or an array, which is parsed element by element."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from crawler.reading.documents import strict_decoder
from crawler.targets.files.rows import MAX_LINE_CHARACTERS, UNDECODABLE, Row, UnreadableFileError, Words, damaged
from crawler.targets.files.text import TextFile

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|["{}\[\],]', re.DOTALL)
"""Matches a whole string, the opening quotation mark of an incomplete string, a bracket, a brace or a comma."""

_SPACE = re.compile(r"\s*")


def read_json_lines(text: TextFile) -> Iterator[Row]:
    """Yield the objects of a file that has one per line. Empty lines are left out."""
    for line in text.lines():
        if line.is_cut:
            yield Row(line.number, None, line.text, f"is longer than {MAX_LINE_CHARACTERS} characters")
        elif not line.text.isspace():
            yield _row(line.number, line.text, text.words)


def read_json_array(text: TextFile) -> Iterator[Row]:
    """Yield the elements of an array: objects, or texts and integers as in a plain list.

    Raises:
        UnreadableFileError: the array is not closed, an element is too long, or something follows the array.
    """
    elements = _Elements(text)
    for number, (line, element) in enumerate(elements, 1):
        yield _row(line, element, text.words, number)


class _Elements:
    """Iterates over the texts of an array's elements, with the line on which each of them begins."""

    def __init__(self, text: TextFile) -> None:
        self._chunks = text.chunks()
        self._text = ""
        self._start = 0
        """The index in the text at which the unread part begins."""
        self._line = 1

    def __iter__(self) -> Iterator[tuple[int, str]]:
        self._fill()
        self._skip(self._text.index("[") + 1)
        while True:
            end = _element_end(self._text, self._start)
            if end is not None:
                yield from self._take(end)
                self._skip(end + 1)
                if self._text[end] == "]":
                    break
            elif len(self._text) - self._start > MAX_LINE_CHARACTERS:
                self._skip_space()
                raise UnreadableFileError(
                    self._line, f"the element is not closed within {MAX_LINE_CHARACTERS} characters."
                )
            elif not self._fill():
                self._skip_space()
                raise UnreadableFileError(self._line, "the array is not closed: the file may be truncated.")
        self._check_rest()

    def _fill(self) -> bool:
        """Append pieces of the file until the unread part is twice as long. Return False at the end of the file.

        So each character of a long element is searched at most twice for the element's end, whatever its length.
        """
        pieces = [self._text[self._start :]]
        self._text, self._start = "", 0
        left = max(len(pieces[0]), 1)
        while left > 0 and (piece := next(self._chunks, "")):
            pieces.append(piece)
            left -= len(piece)
        self._text = "".join(pieces)
        return len(pieces) > 1

    def _skip(self, end: int) -> None:
        self._line += self._text.count("\n", self._start, end)
        self._start = end

    def _skip_space(self) -> None:
        content = _SPACE.match(self._text, self._start)
        assert content is not None
        self._skip(content.end())

    def _take(self, end: int) -> Iterator[tuple[int, str]]:
        """Yield the element before ``end``, unless it is the empty text before the closing bracket."""
        element = self._text[self._start : end]
        before = len(element) - len(element.lstrip())
        if element.strip() or self._text[end] == ",":
            yield self._line + element.count("\n", 0, before), element.strip()

    def _check_rest(self) -> None:
        while not self._text[self._start :].strip() and self._fill():
            self._skip_space()
        if self._text[self._start :].strip():
            self._skip_space()
            raise UnreadableFileError(self._line, "something follows the array.")


def _element_end(text: str, start: int) -> int | None:
    """Return the index of the comma or bracket after the element at ``start``. None: the element is incomplete."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        match token[0]:
            case "{" | "[":
                depth += 1
            case "}" | "]" if depth:
                depth -= 1
            case "," | "]" if not depth:
                return token.start()
            case '"':
                return None
    return None


def _row(line: int, text: str, words: Words, element: int | None = None) -> Row:
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        return Row(line, None, text, "is nested too deeply", element=element)
    except ValueError as error:
        undecodable = UNDECODABLE.search(text)
        problem = damaged([undecodable[0]], words) if undecodable else None
        return Row(line, None, text, problem or f"is not valid JSON: {_cause(error)}", element=element)
    if isinstance(value, dict):
        return Row(line, value, text, is_text=False, element=element)
    if element is not None and isinstance(value, str | int) and not isinstance(value, bool):
        return Row(line, str(value), text, element=element)
    return Row(line, None, text, "is not a JSON object", element=element)


def _cause(error: ValueError) -> str:
    return f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)


_DECODER = strict_decoder()
