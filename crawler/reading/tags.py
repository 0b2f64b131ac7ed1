"""Finds the hashtags and the mentioned handles in a text, in any script, as the platforms link them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

_LETTERS = re.compile(r"\w+")
_MARKS = frozenset({"Mn", "Mc", "Me"})
"""Unicode categories of combining marks, such as vowels in Hindi, for which ``str.isalnum`` is false."""
_JOINERS = frozenset("\u200c\u200d")
"""Invisible characters inside words of some scripts, and inside emoji."""
_FIRST_EMOJI = "\u2300"
"""The first symbol that may be part of a hashtag. Symbols with smaller code points, such as ™, end a hashtag."""
_NOT_EMOJI = frozenset("\ufffc\ufffd")
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_IN_HANDLES = frozenset(".-·")
_HANDLE_LENGTHS = range(3, 31)


def hashtags(text: str) -> list[str]:
    """Return the hashtags in a text, each once, without "#".

    A number alone ("the #1 boat") is none: in the recorded texts with links, 31 of 31 words are linked, and the number
    is not (capture adb4f2a205e4 of the video site).

    >>> hashtags("#one, x#no #हिन्दी and #two_2 &#39; #🔥fire🔥! ❤️#heart #1 #2024 #24h")
    ['one', 'हिन्दी', 'two_2', '🔥fire🔥', 'heart', '24h']
    """
    if "#" not in text:
        return []
    found = _after(text, "#", not_after="&/#", is_part=_is_in_tag)
    return [each for each in dict.fromkeys(found) if not each.isnumeric()]


def mentions(text: str) -> list[str]:
    """Return the mentioned handles in a text, each once, without "@".

    >>> mentions("by @one.two. and (@वीडियो), not a@b.example or https://a.example/@name")
    ['one.two', 'वीडियो']
    """
    if "@" not in text:
        return []
    found = (each.rstrip("".join(_IN_HANDLES)) for each in _after(text, "@", not_after="./@-", is_part=_is_in_handle))
    return [each for each in dict.fromkeys(found) if len(each) in _HANDLE_LENGTHS and each[0] not in _IN_HANDLES]


def _after(text: str, sign: str, *, not_after: str, is_part: Callable[[str], bool]) -> Iterator[str]:
    """Yield the words that follow a sign, unless the sign is inside a word or follows a character in ``not_after``."""
    at = text.find(sign)
    while at >= 0:
        end = _end_of_letters(text, at + 1)
        while end < len(text) and is_part(text[end]):
            end = _end_of_letters(text, end + 1)
        before = at - 1
        while before >= 0 and (text[before] in _JOINERS or _is_mark(text[before])):
            before -= 1
        if end > at + 1 and not (before >= 0 and (_is_letter(text[before]) or text[before] in not_after)):
            yield text[at + 1 : end]
        at = text.find(sign, end)


def _end_of_letters(text: str, start: int) -> int:
    found = _LETTERS.match(text, start)
    return found.end() if found else start


def _is_letter(char: str) -> bool:
    return char.isalnum() or char == "_"


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in _MARKS


def _is_in_word(char: str) -> bool:
    return _is_letter(char) or (not char.isascii() and (char in _JOINERS or _is_mark(char)))


def _is_in_handle(char: str) -> bool:
    return char in _IN_HANDLES or _is_in_word(char)


def _is_in_tag(char: str) -> bool:
    return _is_in_word(char) or (char >= _FIRST_EMOJI and _is_emoji(char))


def _is_emoji(char: str) -> bool:
    first, last = _SKIN_TONES
    return first <= char <= last or (char not in _NOT_EMOJI and unicodedata.category(char) == "So")
