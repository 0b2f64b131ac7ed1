"""Removes secrets from saved responses: cookies, tokens, network and mail addresses.

The value of a cookie or token keeps its length (its letters become ``x``, its digits ``0``), so that extraction still
works. Addresses become example addresses. Names of people and their texts are not removed, because they are the data
that is extracted.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

PRIVATE_NAME_PARTS = (
    r"token|csrf|xsrf|session|secret|passw|nonce|api[_-]?key|authorization|cookie|fingerprint"
    r"|visitor[_-]?(?:data|id)|guest[_-]?id|device[_-]?id|(?:request|trace|correlation)[_-]?id|traceparent"
    r"|(?:client|remote|user|visitor)[_-]?(?:ip|addr)|ip[_-]?addr|e[_-]?mail"
)
"""Matches parts of names, such as ``token``, whose values are considered secret."""
_NAME = rf"(?<![\w.-])[\w.-]{{0,40}}(?:{PRIVATE_NAME_PARTS})[\w.-]{{0,40}}"

NAMED_VALUE = re.compile(
    # "name": "value" in JSON, also within a JSON text (\"name\":\"value\"); name = 'value' in scripts.
    rf"""(?P<before>(?P<q>\\{{0,8}}["']?)(?P<name>{_NAME})(?P=q)\s*[:=]\s*(?P<v>\\{{0,8}}["']))"""
    r"""(?P<value>[^\n"'\\]{4,})(?=(?P=v))""",
    re.IGNORECASE,
)
_PART = re.compile(PRIVATE_NAME_PARTS)
_BEFORE_PART = re.compile(r"""(?P<quote>\\{0,8}["']?)[\w.-]{0,40}\Z""")
"""Matches what precedes a match of ``PRIVATE_NAME_PARTS``: the opening quote and the first letters of the name."""
ATTRIBUTE = re.compile(  # <meta name="csrf-token" content="...">, <input name="..." value="...">
    rf"""(?P<before>\bname=["'](?P<name>{_NAME})["'][^<>]{{0,200}}\b(?:content|value)=["'])(?P<value>[^"'<>]+)""",
    re.IGNORECASE,
)
PARAMETER = re.compile(  # ?name=value in URLs anywhere
    rf"(?P<before>[?&;](?P<name>[\w.-]{{0,40}}(?:{PRIVATE_NAME_PARTS}|signature|\bsig|\bkey|ticket|bogus)[\w.-]{{0,40}})=)"
    r"(?P<value>[^&\s\"'<>\\;]+)",
    re.IGNORECASE,
)
SIGNED = re.compile(  # a JSON Web Token. The lookahead keeps the time linear: most words have no such end.
    r"(?<![\w-])(?=[\w-]{11,}+\.[\w-]{8,}+\.[\w-])"
    r"(?P<before>(?:[\w-]*?-)??)(?P<name>)(?P<value>eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]+)"
)
MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,4}(?!png|jpe?g|webp|gif|svg|avif)[A-Za-z]{2,24}\b")
IP4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
IP6 = re.compile(r"(?<![\w:.])(?=[\w:]*:[\w:]*:)[0-9A-Fa-f:]{3,39}(?![\w:]|\.\d)")

MIN_SECRET_CHARACTERS = 6
"""Header values shorter than this are not removed from pages: values such as "en" or "1" occur in any page."""


@dataclass
class Scrubber:
    """Removes secrets from texts.

    Secrets are the ``known`` values, the values of names with one of the ``PRIVATE_NAME_PARTS`` that are not in
    ``keep``, signatures and keys in URLs, JSON Web Tokens, and addresses. The ``origins`` of the deployment are
    replaced by the public ones.
    """

    known: set[str] = field(default_factory=set)
    keep: Collection[str] = ()

    def learn(self, headers: Iterable[tuple[str, str]]) -> None:
        """Add the cookies and tokens in headers to the known secrets."""
        for name, value in headers:
            match name.lower():
                case "set-cookie":
                    found = [value.partition(";")[0].partition("=")[2]]
                case "cookie":
                    found = [part.partition("=")[2] for part in value.split(";")]
                case _:
                    found = [value] if re.search(PRIVATE_NAME_PARTS, name, re.IGNORECASE) else []
            for each in found:
                plain = each.strip(' "')
                self.known |= {form for form in (plain, unquote(plain)) if len(form) >= MIN_SECRET_CHARACTERS}

    def __call__(self, text: str) -> str:
        """Return the text with its secrets replaced."""
        for value in sorted(self.known, key=len, reverse=True):
            text = text.replace(value, blanked(value))
        text = self._without_named(text)
        for pattern in (ATTRIBUTE, PARAMETER, SIGNED) if "eyJ" in text else (ATTRIBUTE, PARAMETER):
            text = pattern.sub(self._blanked, text)
        text = MAIL.sub("someone@example.com", text)
        text = IP4.sub(lambda found: _example_for(found[0], "192.0.2.1"), text)
        return IP6.sub(lambda found: _example_for(found[0], "2001:db8::1"), text)

    def _without_named(self, text: str) -> str:
        """Return ``NAMED_VALUE.sub(self._blanked, text)``, in a fifth of the time.

        ``NAMED_VALUE`` is only tried near matches of ``PRIVATE_NAME_PARTS``, which are much faster to find.
        """
        pieces: list[str] = []
        end = 0
        for part in _PART.finditer(text.replace("\u0130", "i").lower()):  # lower() would lengthen the text here
            before = _BEFORE_PART.search(text, max(end, part.start() - 50), part.start())
            for start in range(before.start(), before.end("quote") + 1) if before else ():
                if found := NAMED_VALUE.match(text, start):
                    pieces += (text[end:start], self._blanked(found))
                    end = found.end()
                    break
        return "".join((*pieces, text[end:]))

    def _blanked(self, found: re.Match[str]) -> str:
        return found[0] if found["name"] in self.keep else found["before"] + blanked(found["value"])


def blanked(value: str) -> str:
    """Return a meaningless value of the same length: letters become ``x``, and digits become ``0``.

    >>> blanked("eyJ0-é9")
    'xxx0-x0'
    """
    return "".join("0" if c.isdigit() else "x" if c.isalpha() else c for c in value)


def _example_for(address: str, example: str) -> str:
    """Return ``example`` if the text is an IP address. Return other texts (a version, a time) unchanged."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return address
    return example
