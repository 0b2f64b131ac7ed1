"""Building blocks of the simulated video site's JSON: tokens, texts, pictures, numbers and durations."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Any

Node = dict[str, Any]


def mark(*of: object, size: int = 27) -> str:
    """Build a meaningless tracking token, as in every part of a page. Equal arguments result in equal tokens."""
    return urlsafe_b64encode(blake2b(repr(of).encode(), digest_size=min(size, 64)).digest()).decode()


def uuid(*of: object) -> str:
    """Build a tracking token with the format of a UUID."""
    digits = blake2b(repr(of).encode(), digest_size=16).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def images(url: str, *sizes: tuple[int, int]) -> list[Node]:
    """Build a picture object with several sizes."""
    return [{"url": url.format(w=width, h=height), "width": width, "height": height} for width, height in sizes]


def simple(words: str) -> Node:
    """Build a text object that has a single string."""
    return {"simpleText": words}


def runs(*parts: str) -> Node:
    """Build a text object that has several parts."""
    return {"runs": [{"text": part} for part in parts]}


def accessibility_label(words: str) -> Node:
    """Build an object with the label for screen readers."""
    return {"accessibility": {"accessibilityData": {"label": words}}}


def compact(number: int, *, digits: int = 2, lower: bool = False) -> tuple[str, int]:
    """Round a number down. Return the short text and the rounded number: "43K" and 43,000 for 43,712."""
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= unit:
            places = max(0, digits - len(str(number // unit)))
            steps = number * 10**places // unit
            text = f"{steps / 10**places:.{places}f}"
            text = text.rstrip("0").rstrip(".") if "." in text else text
            return text + (letter.lower() if lower else letter), steps * unit // 10**places
    return str(number), number


def clock(seconds: int) -> str:
    """Format a duration in seconds as video players do, such as 1:02:03."""
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def ago(seconds: int) -> str:
    """Format the seconds since publication as lists do, such as "3 weeks ago"."""
    for unit, name in ((31_536_000, "year"), (2_592_000, "month"), (604_800, "week"), (86_400, "day"), (3_600, "hour")):
        if seconds >= unit:
            number = seconds // unit
            return f"{number} {name}{'s' if number > 1 else ''} ago"
    return "1 minute ago"
