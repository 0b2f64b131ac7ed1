"""Saved responses without what must not be kept: cookies, tokens, network and mail addresses.

A value keeps its length and its kind (letters become ``x``, digits ``0``), so that the page reads as before.
What people wrote, and their names, stay: that is the data.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

PRIVATE = (
    r"token|csrf|xsrf|session|secret|passw|nonce|api[_-]?key|authorization|cookie|fingerprint"
    r"|visitor[_-]?(?:data|id)|guest[_-]?id|device[_-]?id|(?:request|trace|correlation)[_-]?id|traceparent"
    r"|(?:client|remote|user|visitor)[_-]?(?:ip|addr)|ip[_-]?addr|e[_-]?mail"
)
"""What is part of the name of a value that must not be kept, in any spelling."""
_NAME = rf"(?<![\w.-])[\w.-]{{0,40}}(?:{PRIVATE})[\w.-]{{0,40}}"

NAMED_VALUE = re.compile(
    # "name": "value" in JSON, also within a JSON text (\"name\":\"value\"); name = 'value' in scripts.
    rf"""(?P<before>(?P<q>\\*["']?)(?P<name>{_NAME})(?P=q)\s*[:=]\s*(?P<v>\\*["']))(?P<value>[^\n"'\\]{{4,}})(?=(?P=v))""",
    re.IGNORECASE,
)
ATTRIBUTE = re.compile(  # <meta name="csrf-token" content="...">, <input name="..." value="...">
    rf"""(?P<before>\bname=["'](?P<name>{_NAME})["'][^<>]{{0,200}}\b(?:content|value)=["'])(?P<value>[^"'<>]+)""",
    re.IGNORECASE,
)
PARAMETER = re.compile(  # ?name=value in URLs, wherever they stand
    rf"(?P<before>[?&;](?P<name>[\w.-]{{0,40}}(?:{PRIVATE}|signature|\bsig|\bkey|ticket|bogus)[\w.-]{{0,40}})=)"
    r"(?P<value>[^&\s\"'<>\\;]+)",
    re.IGNORECASE,
)
SIGNED = re.compile(r"(?P<before>)(?P<name>)(?P<value>\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)")  # a JSON Web Token
MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,4}(?!png|jpe?g|webp|gif|svg|avif)[A-Za-z]{2,24}\b")
IP4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
IP6 = re.compile(r"(?<![\w:.])(?=[\w:]*:[\w:]*:)[0-9A-Fa-f:]{3,39}(?![\w:]|\.\d)")

SHORTEST = 6
"""Characters from which a cookie's value is looked for: shorter ones ("en", "1") are words of any page."""


@dataclass
class Scrubber:
    """Takes secrets out of texts. ``known`` are values to be removed wherever they stand, ``keep`` names to be left."""

    known: set[str] = field(default_factory=set)
    keep: Collection[str] = ()

    def learn(self, headers: Iterable[tuple[str, str]]) -> None:
        """Notes the values of headers that are secrets: cookies sent or set, tokens."""
        for name, value in headers:
            match name.lower():
                case "set-cookie":
                    found = [value.partition(";")[0].partition("=")[2]]
                case "cookie":
                    found = [part.partition("=")[2] for part in value.split(";")]
                case _:
                    found = [value] if re.search(PRIVATE, name, re.IGNORECASE) else []
            for each in found:
                plain = each.strip(' "')
                self.known |= {form for form in (plain, unquote(plain)) if len(form) >= SHORTEST}

    def __call__(self, text: str) -> str:
        """The text without them."""
        for value in sorted(self.known, key=len, reverse=True):
            text = text.replace(value, blank(value))
        for pattern in (NAMED_VALUE, ATTRIBUTE, PARAMETER, SIGNED):
            text = pattern.sub(self._blanked, text)
        text = MAIL.sub("someone@example.com", text)
        text = IP4.sub(lambda found: _other(found[0], "192.0.2.1"), text)
        return IP6.sub(lambda found: _other(found[0], "2001:db8::1"), text)

    def _blanked(self, found: re.Match[str]) -> str:
        return found[0] if found["name"] in self.keep else found["before"] + blank(found["value"])


def blank(value: str) -> str:
    """A value of the same length and kind that tells nothing.

    >>> blank("eyJ0-é9")
    'xxx0-x0'
    """
    return "".join("0" if c.isdigit() else "x" if c.isalpha() else c for c in value)


def _other(address: str, example: str) -> str:
    """An address of those kept for documentation; the text as it is where it is none (a version, a time)."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return address
    return example
