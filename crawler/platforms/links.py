"""Parsing of the URLs that callers send. Each platform checks hosts and paths itself."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

SCHEME = re.compile(r"https?://", re.IGNORECASE)


def split_link(url: str, expected: str) -> tuple[str, str]:
    """Split an HTTP or HTTPS URL into its host and path. The host is in lower case, and keeps its port and credentials.

    The scheme is optional, as in a browser's address bar.

    >>> split_link("https://Shop.example/a/b?c=d#e", "expected a product")
    ('shop.example', '/a/b')
    >>> split_link("shop.example/a/b", "expected a product")
    ('shop.example', '/a/b')

    Raises:
        ValueError: the text is not an HTTP or HTTPS URL, or contains a space or an unprintable character, which
            ``urlsplit`` would accept. The message of the ``ValueError`` is ``expected``.
    """
    if not url.isprintable() or " " in url:  # urlsplit would silently drop line breaks and tabs
        raise ValueError(expected)
    try:
        parts = urlsplit(url if SCHEME.match(url) else f"https://{url}")
    except ValueError:  # an unclosed bracket, or a host with characters that Unicode normalises to URL delimiters
        raise ValueError(expected) from None
    return parts.netloc.lower(), parts.path
