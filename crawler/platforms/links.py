"""URLs that callers send: taken apart once and in one way. Hosts and paths are each platform's own matter."""

from __future__ import annotations

from urllib.parse import urlsplit


def split_link(url: str, expected: str) -> tuple[str, str]:
    """Host (in lower case, with what stands around it: a port, a password) and path of a URL of the web.

    >>> split_link("https://Shop.example/a/b?c=d#e", "expected a product")
    ('shop.example', '/a/b')

    Raises:
        ValueError: ``expected``, for everything else. ``urlsplit`` takes more than a browser does.
    """
    if not url.isprintable() or " " in url:  # urlsplit drops line breaks and tabs without a word
        raise ValueError(expected)
    try:
        parts = urlsplit(url)
    except ValueError:  # an unclosed bracket, a host that is another one once it is normalised
        raise ValueError(expected) from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError(expected)
    return parts.netloc.lower(), parts.path
