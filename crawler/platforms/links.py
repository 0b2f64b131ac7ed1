"""Parsing of the URLs that callers send. Each platform checks hosts and paths itself."""

from __future__ import annotations

from urllib.parse import urlsplit


def split_link(url: str, expected: str) -> tuple[str, str]:
    """Host (in lower case, including a port or credentials) and path of an HTTP or HTTPS URL.

    >>> split_link("https://Shop.example/a/b?c=d#e", "expected a product")
    ('shop.example', '/a/b')

    Raises:
        ValueError: any other URL, with ``expected`` as the message. ``urlsplit`` accepts more than a browser does.
    """
    if not url.isprintable() or " " in url:  # urlsplit silently drops line breaks and tabs
        raise ValueError(expected)
    try:
        parts = urlsplit(url)
    except ValueError:  # an unclosed bracket, or a host that normalises to another host
        raise ValueError(expected) from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError(expected)
    return parts.netloc.lower(), parts.path
