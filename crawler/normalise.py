"""Text to value: pure converters. None in, None out; what says nothing gives None, never 0 and never a guess."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit, urlunsplit

_PLAIN_PATH = re.compile(r"(?:/[\w%~-][\w%~.-]*)+(?:\?[\w%=&.~-]*)?", re.ASCII)
_AMOUNT = re.compile(r"\d[\d,]{0,14}(?:\.\d{1,6})?")


def amounts(text: str | None) -> list[float]:
    """All amounts of money that a text states, in its order.

    >>> amounts("Options from $9.91 – $1,022.64")
    [9.91, 1022.64]
    >>> amounts("")
    []
    """
    return [round(float(number.replace(",", "")), 2) for number in _AMOUNT.findall(text or "")]


def amount(value: object) -> float | None:
    """The amount that a number or a text states, None where it states none or the zero that platforms fill in.

    >>> amount("Now $1,159.00"), amount("69.99"), amount(69)
    (1159.0, 69.99, 69.0)
    >>> amount(""), amount(0), amount("0"), amount(None), amount(True)
    (None, None, None, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return (round(float(value), 2) or None) if 0 < value < float("inf") else None
    if isinstance(value, str):
        found = amounts(value)
        return (found[0] or None) if found else None
    return None


def count(value: object) -> int | None:
    """A number of things, or the one that a text is; None for what counts nothing, as platforms' -1 for "hidden".

    >>> count(3), count("12"), count("1,234")
    (3, 12, 1234)
    >>> count("many"), count(True), count(2.5), count(-1), count(None)
    (None, None, None, None, None)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 10**18 else None
    if isinstance(value, str):
        digits = value.replace(",", "")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    return None


def number(value: object) -> float | None:
    """A number as float.

    >>> number(4), number(4.5), number("4"), number(None)
    (4.0, 4.5, None, None)
    """
    finite = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if finite else None  # type: ignore[arg-type]  # checked in the line above


def text(value: object) -> str:
    """Text as it is, an id that came as a number as text, and nothing as "".

    >>> text("a"), text(12), text(None), text([])
    ('a', '12', '', '')
    """
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def flag(value: object) -> bool | None:
    """A boolean, None for everything else.

    >>> flag(True), flag(0), flag(None)
    (True, None, None)
    """
    return value if isinstance(value, bool) else None


def absolute_url(origin: str, value: object, *, query: bool = True) -> str:
    """An absolute URL, on the platform where it is relative. Without its fragment; without its query where that tracks.

    >>> absolute_url("https://shop.example", "/ip/a/1?athbdg=L1", query=False)
    'https://shop.example/ip/a/1'
    >>> [absolute_url("https://shop.example", value) for value in (None, "http://[broken", "javascript:void(0)")]
    ['', '', '']
    """
    if not isinstance(value, str) or not value:
        return ""
    if _PLAIN_PATH.fullmatch(value):  # nearly all are: nothing to resolve
        return origin + (value if query else value.partition("?")[0])
    try:
        url = urlsplit(urljoin(origin, value))
    except ValueError:
        return ""
    if url.scheme not in {"http", "https"}:
        return ""
    return urlunsplit((url.scheme, url.netloc, url.path, url.query if query else "", ""))


def retry_after_seconds(value: str | None) -> int | None:
    """The seconds that a ``Retry-After`` header asks for, as a number or a date (from now); None where it says nothing.

    >>> retry_after_seconds("120"), retry_after_seconds("soon"), retry_after_seconds(None)
    (120, None, None)
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return min(int(text), 86_400)
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() - time.time()))
    except ValueError:
        return None
