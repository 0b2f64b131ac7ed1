"""Cleans the texts that people paste: params, and the links among them."""

from __future__ import annotations

import re
from unicodedata import normalize

from crawler.platforms.grammar import Grammar

_FORMLESS = r"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
"""Characters without a form of their own, for a set of an expression: soft hyphens, spaces of no width, marks of
direction."""
_INVISIBLE = re.compile(f"[{_FORMLESS}]")
JOINERS = "\u200c\u200d"
"""Belong to words of some scripts, and to emoji, but not to the ends of a text."""
WORDS = Grammar(rf"[\s\S]*[^\s\u200c\u200d{_FORMLESS}][\s\S]*", "the text has no words to search for")
"""Words to search for: any text with a visible character."""
_PAIRS = {'"': '"', "'": "'", "`": "`", "<": ">", "“": "”", "„": "“", "‘": "’", "‚": "‘", "«": "»", "»": "«"}
"""Opening -> closing quotation mark or angle bracket."""
_OPENING = "([{<\"'“„‘‚«"
_ENDING = ".,;:!>“”‘’»" + JOINERS
"""Characters that may follow a link in a sentence, and with which no link ends."""
_QUOTES = "\"'`"
_BRACKETS = {")": "(", "]": "[", "}": "{"}


def cleaned(text: str) -> str:
    r"""Return a text in Unicode's form NFC, without invisible characters, and without white space around it.

    >>> cleaned("\ufeff caf\u0065\u0301 \u00a0")
    'café'
    """
    text = _INVISIBLE.sub("", text).strip()
    return normalize("NFC", text.strip(JOINERS).strip())


def unquoted(text: str) -> str:
    """Return a clean text without one pair of quotation marks or angle brackets around it.

    >>> unquoted('"976759"'), unquoted("<https://x.com/a>"), unquoted('"')
    ('976759', 'https://x.com/a', '"')
    """
    text = cleaned(text)
    if len(text) > 2 and _PAIRS.get(text[0]) == text[-1]:  # the pair, and something between
        return cleaned(text[1:-1])
    return text


def link_in(text: str) -> str:
    """Return a link without the characters that a sentence or a list puts around it.

    A closing bracket stays if the link has its opening bracket, too. The time grows with the square of the text's
    length.

    >>> link_in("(https://x.com/nasa)."), link_in("https://a.example/b_(c)"), link_in("<x.com/nasa>,")
    ('https://x.com/nasa', 'https://a.example/b_(c)', 'x.com/nasa')
    """
    text = cleaned(text).lstrip(_OPENING)
    while text and (text[-1] in _ENDING or _is_unopened(text)):
        text = text[:-1]
    return text.strip()


def _is_unopened(text: str) -> bool:
    """Whether a text ends with a bracket or a quotation mark that it does not open."""
    if text[-1] in _QUOTES:
        return text.count(text[-1]) % 2 == 1
    opening = _BRACKETS.get(text[-1])
    return opening is not None and text.count(opening) < text.count(text[-1])
