"""An HTML page whose elements are found through an index, for page objects that look for hundreds of them.

An XPath expression searches the page, or a part of it, each time. Here, all elements are numbered once in document
order, so that an element with its descendants is a range of numbers. A selector without combinators is answered once
for the whole page; within an element, its answer is a slice of these numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

import cssselect
from cssselect import parser as css_parser
from lxml import etree
from web_poet import HttpResponse

Element = Any
"""An element of lxml, which has no types."""

BREAK = "<br>"
"""What ``Node.pieces`` yields for a line break."""

_UTF8 = "utf-8"
_NOT_UTF8 = frozenset({etree.ErrorTypes.ERR_INVALID_ENCODING, etree.ErrorTypes.ERR_INVALID_CHAR})
"""The parser's errors for bytes that are not UTF-8. Reading them from the elements would raise an exception."""
_EMPTY = b"<html/>"
_TOKEN = re.compile(r"[^ \t\r\n]+")  # CSS in XPath knows only these four kinds of white space
_ANY = "*"


def indexed(response: HttpResponse) -> Node:
    """Parse a response, and return the page's root element.

    UTF-8 is parsed without decoding and encoding it first, which takes a third of the parser's time.
    """
    if response.encoding == _UTF8:
        root, errors = _parsed_bytes(bytes(response.body))
        if not any(error.type in _NOT_UTF8 for error in errors):
            return Node(Index(root), 0)
    return indexed_text(response.text)


def indexed_text(html: str) -> Node:
    """Parse an HTML text, and return the page's root element."""
    return Node(Index(_parsed_bytes(html.strip().encode())[0]), 0)


def _parsed_bytes(html: bytes) -> tuple[Element, Iterable[Any]]:
    """Return the root of a page in UTF-8, which has a root even if it is empty, and the parser's errors.

    lxml's HTML elements with methods, which parsel makes, take twice as long to index.
    """
    parser = etree.HTMLParser(recover=True, encoding=_UTF8, huge_tree=True)
    root = etree.fromstring(html.replace(b"\x00", b"").strip() or _EMPTY, parser=parser)
    errors = parser.error_log
    return (etree.fromstring(_EMPTY, parser=parser) if root is None else root), errors


class Node:
    """An element of an indexed page."""

    __slots__ = ("index", "number")

    def __init__(self, index: Index, number: int) -> None:
        self.index = index
        self.number = number

    def css(self, selector: str) -> list[Node]:
        """Return the matches among this element and its descendants, in document order."""
        index = self.index
        found = index.select(selector, self.number, index.end(self.number))
        return [Node(index, number) for number in found]

    def first(self, selector: str) -> Node | None:
        """Return the first of the matches among this element and its descendants, or None."""
        index = self.index
        found = index.select(selector, self.number, index.end(self.number))
        return Node(index, found[0]) if found else None

    def has(self, selector: str) -> bool:
        """Whether a descendant matches."""
        return bool(self.index.select(selector, self.number + 1, self.index.end(self.number)))

    def outermost(self, selector: str) -> list[Node]:
        """Return the descendants that match, except those inside other matches, also matches around this element."""
        spans = self.index.spans(selector)
        start, end = bisect_right(spans.starts, self.number), bisect_left(spans.starts, self.index.end(self.number))
        return [Node(self.index, number) for number in spans.starts[start:end]]

    def is_inside(self, selector: str) -> bool:
        """Whether this element or an ancestor matches."""
        return self.index.spans(selector).contain(self.number)

    def ancestor(self, selector: str) -> Node | None:
        """Return the nearest ancestor that matches, or None."""
        index = self.index
        before = index.select(selector, 0, self.number) if self.is_inside(selector) else []
        return next((Node(index, number) for number in reversed(before) if index.end(number) > self.number), None)

    def is_child(self, selector: str) -> bool:
        """Whether the parent element matches."""
        parent = self.element.getparent()
        return parent is not None and self.index.numbers[parent] in self.index.select(selector, 0, self.number)

    def children(self) -> list[Node]:
        """Return the children, also comments."""
        return [Node(self.index, self.index.numbers[child]) for child in self.element]

    def get(self, attribute: str) -> str | None:
        """Return the value of an attribute, or None."""
        value: str | None = self.element.get(attribute)
        return value

    @property
    def element(self) -> Element:
        """The element itself."""
        return self.index.elements[self.number]

    @property
    def classes(self) -> list[str]:
        """The names of the element's classes."""
        return _TOKEN.findall(self.get("class") or "")

    @property
    def text(self) -> str:
        """All text in the element."""
        return text_of(self.element)

    def pieces(self, hidden: str) -> Iterator[str]:
        """Yield the texts in the element, and each line break as ``BREAK``, except those inside elements that match.

        ``hidden`` also applies to this element and its ancestors.
        """
        if self.is_inside(hidden):
            return
        if not self.has(hidden) and not self.has("br"):
            yield self.text
            return
        root, numbers, left_out = self.element, self.index.numbers, self.index.spans(hidden)
        walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in walk:
            if event != "start":  # the text after an element, or after a comment
                if element is not root and element.tail:
                    yield element.tail
            elif left_out.contain(numbers[element]):
                walk.skip_subtree()
            elif element.tag == "br":
                yield BREAK
            elif element.text:
                yield element.text


def text_of(element: Element) -> str:
    """Return all text in an element, without comments."""
    text: str = etree.tostring(element, method="text", encoding="unicode", with_tail=False)
    return text


class Index:
    """The elements of a page by number, and the answers to selectors."""

    def __init__(self, root: Element) -> None:
        self.elements: list[Element] = list(root.iter())
        self.numbers: dict[Element, int] = dict(zip(self.elements, range(len(self.elements)), strict=True))
        self._ends: dict[int, int] = {}
        self._attributes: dict[str, defaultdict[str, list[int]]] = {}
        self._found: dict[_Simple, list[int]] = {}
        self._unions: dict[str, list[int]] = {}
        self._spans: dict[str, _Spans] = {}

    def end(self, number: int) -> int:
        """Return the number after an element's last descendant."""
        end = self._ends.get(number)
        if end is None:
            last = self.elements[number]
            while len(last):
                last = last[-1]
            end = self._ends[number] = self.numbers[last] + 1
        return end

    def select(self, selector: str, start: int, end: int) -> list[int]:
        """Return the numbers of the matches, of which the leftmost element's number is in a range."""
        union = self._unions.get(selector)
        if union is not None:
            return _between(union, start, end)
        alternatives = _compiled(selector)
        if all(len(steps) == 1 for steps in alternatives):
            found = (self._simple(simple) for ((_, simple),) in alternatives)
            union = self._unions[selector] = next(found) if len(alternatives) == 1 else _merged(found)
            return _between(union, start, end)
        return _merged(self._combined(steps, start, end) for steps in alternatives)

    def spans(self, selector: str) -> _Spans:
        """Return the ranges of the page's elements that match, except of those inside other matches."""
        spans = self._spans.get(selector)
        if spans is None:
            spans = self._spans[selector] = _Spans()
            for number in self.select(selector, 0, len(self.elements)):
                if not spans.contain(number):
                    spans.starts.append(number)
                    spans.ends.append(self.end(number))
        return spans

    def _combined(self, steps: tuple[_Step, ...], start: int, end: int) -> Iterable[int]:
        (_, simple), *others = steps
        found: Iterable[int] = _between(self._simple(simple), start, end)
        for combinator, simple in others:
            matches = self._simple(simple)
            if combinator == "+":
                after = (next(self.elements[each].itersiblings(_ANY), None) for each in found)
                found = {self.numbers[each] for each in after if each is not None} & set(matches)
            elif combinator == ">":
                parents = {self.elements[each] for each in found}
                found = [number for number in matches if self.elements[number].getparent() in parents]
            else:
                found = self._below(sorted(found), matches)
        return found

    def _below(self, around: list[int], matches: list[int]) -> list[int]:
        """Return the matches that are descendants of other elements, in order and once each."""
        found: list[int] = []
        reached = 0
        for number in around:
            if number >= reached:  # the descendants of an element inside another one are known
                reached = self.end(number)
                found += _between(matches, number + 1, reached)
        return found

    def _simple(self, simple: _Simple) -> list[int]:
        """Return the numbers of the page's elements that match a selector without combinators."""
        found = self._found.get(simple)
        if found is None:
            found = self._candidates(simple)
            if simple.has_more_than_one_part:
                found = [number for number in found if simple.matches(self.elements[number])]
            self._found[simple] = found
        return found

    def _candidates(self, simple: _Simple) -> list[int]:
        """Return the few elements that may match: with the class, else with the tag, else with the attribute."""
        if simple.classes:
            return min((self._classes.get(name, []) for name in simple.classes), key=len)
        if simple.tag:
            return self._tags.get(simple.tag, [])
        if not simple.conditions:
            return [number for number, element in enumerate(self.elements) if isinstance(element.tag, str)]
        condition = simple.conditions[0]
        values = self._values(condition.attribute)
        return sorted(number for value in values if condition.accepts(value) for number in values[value])

    @cached_property
    def _tags(self) -> dict[str, list[int]]:
        tags: defaultdict[str, list[int]] = defaultdict(list)
        for number, element in enumerate(self.elements):
            tags[element.tag].append(number)
        return tags

    @cached_property
    def _classes(self) -> dict[str, list[int]]:
        classes: defaultdict[str, list[int]] = defaultdict(list)
        for value, numbers in self._values("class").items():
            for name in set(_TOKEN.findall(value)):
                classes[name] += numbers
        return {name: sorted(numbers) for name, numbers in classes.items()}

    def _values(self, attribute: str) -> dict[str, list[int]]:
        """Return the numbers of the elements with each of an attribute's values, which are few: rows repeat them."""
        values = self._attributes.get(attribute)
        if values is None:
            values = self._attributes[attribute] = defaultdict(list)
            for number, element in enumerate(self.elements):
                value = element.get(attribute)
                if value is not None:
                    values[value].append(number)
        return values


class _Spans:
    """Ranges of numbers that do not overlap."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def contain(self, number: int) -> bool:
        position = bisect_right(self.starts, number) - 1
        return position >= 0 and number < self.ends[position]


def _between(numbers: list[int], start: int, end: int) -> list[int]:
    first = bisect_left(numbers, start)
    return numbers[first : bisect_left(numbers, end, first)]


def _merged(groups: Iterable[Iterable[int]]) -> list[int]:
    return sorted(set().union(*groups))


# Selectors


def _exists(_value: str, _wanted: str) -> bool:
    return True


_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": str.__eq__,
    "*=": str.__contains__,
    "$=": str.endswith,
    "exists": _exists,
}
_COMBINATORS = frozenset({" ", ">", "+"})


class _Condition(NamedTuple):
    """What an attribute must be."""

    attribute: str
    operator: str
    wanted: str

    def accepts(self, value: str | None) -> bool:
        return value is not None and _OPERATORS[self.operator](value, self.wanted)


class _Simple(NamedTuple):
    """A selector without combinators."""

    tag: str
    classes: tuple[str, ...]
    conditions: tuple[_Condition, ...]

    @property
    def has_more_than_one_part(self) -> bool:
        return bool(self.tag) + len(self.classes) + len(self.conditions) > 1

    def matches(self, element: Element) -> bool:
        """Whether an element that has one of the classes matches, too, in all other respects."""
        if self.tag and self.tag != element.tag:
            return False
        if len(self.classes) > 1 and not {*self.classes} <= {*_TOKEN.findall(element.get("class"))}:
            return False
        for attribute, operator, wanted in self.conditions:  # "all" and a generator take twice as long
            value = element.get(attribute)
            if value is None or not _OPERATORS[operator](value, wanted):
                return False
        return True


_Step = tuple[str, _Simple]
"""A combinator, and the selector behind it."""


@cache
def _compiled(selector: str) -> tuple[tuple[_Step, ...], ...]:
    """Return the steps of each of the selectors in a group.

    Raises:
        ValueError: the selector has a part that the index does not support, such as a pseudo-class.
    """
    alternatives = []
    for each in cssselect.parse(selector):
        steps: list[_Step] = []
        tree = each.parsed_tree
        while isinstance(tree, css_parser.CombinedSelector) and tree.combinator in _COMBINATORS:
            steps.append((tree.combinator, _parsed(tree.subselector, selector)))
            tree = tree.selector
        if each.pseudo_element is not None:
            raise ValueError(f"The index does not support pseudo-elements: {selector}")
        alternatives.append((("", _parsed(tree, selector)), *reversed(steps)))
    return tuple(alternatives)


def _parsed(tree: object, selector: str) -> _Simple:
    classes: list[str] = []
    conditions: list[_Condition] = []
    while not isinstance(tree, css_parser.Element):
        if isinstance(tree, css_parser.Class):
            classes.append(tree.class_name)
        elif isinstance(tree, css_parser.Attrib) and tree.operator in _OPERATORS:
            value = "" if tree.value is None else tree.value.value or ""
            conditions.append(_Condition(tree.attrib, tree.operator, value))
        else:
            raise ValueError(f"The index does not support this selector: {selector}")
        tree = tree.selector
    return _Simple(tree.element or "", tuple(classes), tuple(conditions))
