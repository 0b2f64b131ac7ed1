"""Parsing of the URLs that callers send. Each platform checks hosts and paths itself."""

from __future__ import annotations

from urllib.parse import urlsplit


def split_link(url: str, expected: str) -> tuple[str, str]:
    """Split an HTTP or HTTPS URL into its host and path. The host is in lower case, and keeps its port and credentials.

    >>> split_link("https://Shop.example/a/b?c=d#e", "expected a product")
    ('shop.example', '/a/b')

    Raises:
        ValueError: the text is not an HTTP or HTTPS URL, or contains a space or an unprintable character, which
            ``urlsplit`` would accept. The message of the ``ValueError`` is ``expected``.
    """
    if not url.isprintable() or " " in url:  # urlsplit would silently drop line breaks and tabs
        raise ValueError(expected)
    try:
        parts = urlsplit(url)
    except ValueError:  # an unclosed bracket, or a host with characters that Unicode normalises to URL delimiters
        raise ValueError(expected) from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError(expected)
    return parts.netloc.lower(), parts.path
