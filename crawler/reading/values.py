"""Functions that convert texts to values. A missing or unreadable text becomes None, "" or [], never 0 or a guess."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

_PLAIN_PATH = re.compile(r"(?:/[\w%~-][\w%~.-]*)+(?:\?[\w%=&.~-]*)?", re.ASCII)
_ABSOLUTE = re.compile(r"https?://[a-z0-9]")
_CLOCK = re.compile(r"(?:(\d{1,4}):)?([0-5]?\d):([0-5]\d)", re.ASCII)
_DAY = re.compile(r"\b([A-Za-z]{3})[a-z]*\.? (\d{1,2}), (\d{4})$|\b(\d{1,2}) ([A-Za-z]{3})[a-z]*\.? (\d{4})$", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?", re.ASCII)

_AMOUNT = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,3}|[1-9][0-9]{0,8}|0)(?:\.[0-9]{2})?"
"""An amount of dollars in a recorded shape: 9, 9.99, 9,999.99."""
_LEAD = r"(?:(?!(?i:for)\s|[A-Z]{1,2}\s|[A-Z]{2}D\s|MXN\s)[^\W\d_][^\d\s$¢€£¥%]*\s)*"
"""Words before an amount. "for" belongs to the price of several pieces, and "CA" or "AUD" to another currency."""
PRICE_TEXT = rf"(?P<lead>{_LEAD})\$(?P<low>{_AMOUNT})(?: – \$(?P<high>{_AMOUNT}))?"
"""The regular expression of a text with a price or a range of prices in US dollars."""
_PRICE = re.compile(PRICE_TEXT)
MAX_PRICE_LENGTH = 200
"""Maximum number of characters of a text with a price, because such texts are cached. Recorded ones have at most 40."""
_PLAIN_AMOUNT = re.compile(rf"\$?({_AMOUNT})")

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""English abbreviations of the months, as platforms write them. The month names of the standard library depend on the
locale."""


class StatedPrice(NamedTuple):
    """A price or a range of prices in a text."""

    lead: str
    """The words before the price: "Now". "" if there are none."""
    low: float
    high: float | None
    """The upper end of a range. None: the text has one price."""


def stated_price(text: str | None) -> StatedPrice | None:
    """Return the price in a text, in US dollars. For any other text, return None.

    A text with another number, a percentage, another currency or a unit is not a price of the product. A text of more
    than ``MAX_PRICE_LENGTH`` characters is not read.

    >>> stated_price("Now $1,159.00"), stated_price("$7")
    (StatedPrice(lead='Now', low=1159.0, high=None), StatedPrice(lead='', low=7.0, high=None))
    >>> stated_price("Options from $9.91 – $1,022.64")
    StatedPrice(lead='Options from', low=9.91, high=1022.64)
    >>> others = "98¢", "2 for $5.00", "two for $5.00", "20% off $7.46", "7,46 $", "CA$7.46", "CA $7.46", "$7.46/lb", ""
    >>> [text for text in others if stated_price(text)]
    []
    """
    return _stated_price(text) if text and len(text) <= MAX_PRICE_LENGTH else None


@lru_cache(maxsize=1024)  # a row's texts are read for its price and for each check
def _stated_price(text: str) -> StatedPrice | None:
    found = _PRICE.fullmatch(text)
    if found is None:
        return None
    lead, low, high = found.group("lead", "low", "high")
    return StatedPrice(lead.strip(), _money(low), None if high is None else _money(high))


def _money(number: str) -> float:
    return float(number.replace(",", ""))


def amount(value: object) -> float | None:
    """Return an amount of money from a number or a text, or None. For 0, return None: platforms use 0 as a placeholder.

    >>> amount("69.99"), amount("$1,159.00"), amount(69)
    (69.99, 1159.0, 69.0)
    >>> amount(""), amount(0), amount("0"), amount(-1), amount(None), amount(True), amount("13.7 ¢/count")
    (None, None, None, None, None, None, None)
    """
    if isinstance(value, str):  # most amounts
        found = _PLAIN_AMOUNT.fullmatch(value)
        return (_money(found[1]) or None) if found else None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12:
        return round(float(value), 2) or None
    return None


def count(value: object) -> int | None:
    """Return a count as an integer, from a number or a text. For any other value, such as -1 for "hidden", return None.

    >>> count(3), count(3.0), count("12"), count("1,234")
    (3, 3, 12, 1234)
    >>> count("many"), count(True), count(2.5), count(-1), count(None)
    (None, None, None, None, None)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 10**18 else None
    if isinstance(value, float):
        return count(int(value)) if value.is_integer() else None
    if isinstance(value, str):
        digits = value.replace(",", "")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    return None


def number(value: object) -> float | None:
    """Return a number below 10**15 as a float, from a number or a text. For any other value, return None.

    >>> number(4), number(4.5), number("4.5"), number("4"), number("-0.5")
    (4.0, 4.5, 4.5, 4.0, -0.5)
    >>> number("4,5"), number("many"), number(""), number(None), number(True), number(float("nan"))
    (None, None, None, None, None, None)
    """
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    finite = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if finite else None  # type: ignore[arg-type]  # checked in the line above


def iso_duration(value: object) -> float | None:
    """Return the number of seconds in an ISO 8601 or XML duration. For a duration that is not positive or any other
    value, return None.

    >>> iso_duration("PT1M12.5S"), iso_duration("PT0H0M4.967S"), iso_duration("P1DT2H")
    (72.5, 4.967, 93600.0)
    >>> iso_duration("PT0S"), iso_duration("P"), iso_duration("72"), iso_duration(None)
    (None, None, None, None)
    """
    if not isinstance(value, str):
        return None
    try:
        seconds = msgspec.convert(value, timedelta).total_seconds()
    except msgspec.ValidationError:
        return None
    return seconds if seconds > 0 else None


def text(value: object) -> str:
    """Return a text unchanged, or an integer (such as a numeric id) as text. For any other value, return "".

    >>> text("a"), text(12), text(None), text([])
    ('a', '12', '', '')
    """
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def absolute_url(origin: str, value: object, *, query: bool = True) -> str:
    """Return a URL as an absolute URL without its fragment. Relative URLs are resolved against the origin. For a value
    that is not an HTTP or HTTPS URL, return "".

    ``query=False`` removes the query, for URLs whose query is used only to track visitors.

    >>> absolute_url("https://shop.example", "/ip/a/1?athbdg=L1", query=False)
    'https://shop.example/ip/a/1'
    >>> [absolute_url("https://shop.example", value) for value in (None, "http://[broken", "javascript:void(0)")]
    ['', '', '']
    """
    if not isinstance(value, str) or not value:
        return ""
    if _PLAIN_PATH.fullmatch(value):  # the common case: nothing to resolve
        return origin + (value if query else value.partition("?")[0])
    if _is_plain(value):
        return value if query else value.partition("?")[0]
    try:
        url = urlsplit(urljoin(origin, value))
    except ValueError:
        return ""
    if url.scheme not in {"http", "https"}:
        return ""
    return urlunsplit((url.scheme, url.netloc, url.path, url.query if query else "", ""))


def _is_plain(value: str) -> bool:
    """Whether resolving a URL would not change it, because it is absolute and has no unusual characters.

    Searching for each unusual character is faster than a regular expression for all of them.
    """
    odd = (
        "#" in value or ";" in value or "[" in value or "]" in value or "\n" in value or "\r" in value or "\t" in value
    )
    return not odd and value[-1] != "?" and value.isascii() and _ABSOLUTE.match(value) is not None


_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:\s*,\s*[0-9]+(?:\.[0-9]+)?)*")
"""The header ``Retry-After`` in seconds. It must be an integer, but some servers send a fraction or repeat it."""


def retry_after_seconds(value: str | None) -> int | None:
    """Return the seconds to wait that a ``Retry-After`` header states, as a number or a date. For any other value,
    return None. The time is limited to one day; for a date in the past, return 0. Of a repeated header, the longest
    time is returned.

    >>> retry_after_seconds("120"), retry_after_seconds("soon"), retry_after_seconds(None)
    (120, None, None)
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return math.ceil(min(max(map(float, text.split(","))), 86_400))
    try:
        date = parsedate_to_datetime(text)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)  # a date without a zone is in UTC, as all in HTTP
        return min(max(0, round(date.timestamp() - time.time())), 86_400)
    except ValueError:
        return None


_SCALES = {
    "k": 10**3,
    "thousand": 10**3,
    "lakh": 10**5,
    "m": 10**6,
    "million": 10**6,
    "crore": 10**7,
    "b": 10**9,
    "bn": 10**9,
    "billion": 10**9,
}
# In a number without a unit, commas separate groups of digits. A number with a unit such as "M" must not contain a
# comma, which would be the decimal point of another language: "1,2 M".
_ROUNDED = rf"(?P<rounded>[0-9]{{1,6}}(?:\.[0-9]{{1,6}})?)\s?(?P<scale>{'|'.join(_SCALES)})"
_EXACT = r"(?P<exact>[0-9]{1,3}(?:,[0-9]{2,3}){0,6},[0-9]{3}|[0-9]{1,20})"


@cache
def _stating(things: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{_ROUNDED}|{_EXACT}|no)\s{things}", re.IGNORECASE)


def stated_count(text: str | None, things: str = "") -> int | None:
    """Return the number of things that a text states, such as 501000 for "501k views". For any other text, return None.

    ``things`` is a regular expression for the English name of the things; "" for a number alone. The number may be
    exact or rounded. Units such as "B" have other meanings in other languages (12 thousand in "12 B takipçi"), so a
    rounded number is read only beside the English name.

    >>> stated_count("8.84k subscribers", "subscribers?"), stated_count("3,993,451 views", "views?")
    (8840, 3993451)
    >>> stated_count("No views", "views?"), stated_count("2.4 thousand views", "views?"), stated_count("1,204")
    (0, 2400, 1204)
    >>> stated_count("12 B takipçi", "followers?"), stated_count("12 B"), stated_count("501k")
    (None, None, None)
    >>> [stated_count(text, "views?") for text in ("1.7bn views", "2.5 lakh views", "1,2 M views")]
    [1700000000, 250000, None]
    >>> [stated_count(text, "views?") for text in ("8 watching", "20 Tr views", "5 reviews", "views", None)]
    [None, None, None, None, None]
    """
    shown = (text or "").strip()
    if not things:
        return count(shown) if re.fullmatch(_EXACT, shown) else None
    found = _stating(things).fullmatch(shown)
    if not found:
        return None
    exact, rounded, scale = found.group("exact", "rounded", "scale")
    if exact:
        return count(exact)
    return round(float(rounded) * _SCALES[scale.lower()]) if rounded else 0


def clock_seconds(text: str | None) -> int | None:
    """Return the number of seconds in a duration in the format of video players, such as "1:07:34". For any other text,
    return None.

    >>> clock_seconds("1:07:34"), clock_seconds("0:09"), clock_seconds("LIVE"), clock_seconds("1:75")
    (4054, 9, None, None)
    """
    found = _CLOCK.fullmatch((text or "").strip())
    if not found:
        return None
    hours, minutes, seconds = found.groups("0")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def stated_day(text: str) -> datetime | None:
    """Return the start (UTC) of the day that an English text ends with, such as "Joined Feb 1, 2015", or None.

    >>> stated_day("Joined Feb 1, 2015") == stated_day("1 February 2015") == datetime(2015, 2, 1, tzinfo=UTC)
    True
    >>> stated_day("Đã tham gia 1 thg 2, 2015"), stated_day("Feb 30, 2015"), stated_day("21h"), stated_day("")
    (None, None, None, None)
    """
    found = _DAY.search(text.strip())
    if not found:
        return None
    month, day, year = found.group(1, 2, 3) if found[1] else found.group(5, 4, 6)
    try:
        return datetime(int(year), MONTHS.index(month.capitalize()) + 1, int(day), tzinfo=UTC)
    except ValueError:
        return None


def unix_time(text: object) -> int | None:
    """Convert an ISO 8601 time with a UTC offset to Unix seconds. Without an offset, or before 1971, return None.

    >>> unix_time("2015-02-01T16:32:30+00:00"), unix_time("2022-11-12T13:00:00-08:00"), unix_time("2022-11-12")
    (1422808350, 1668286800, None)
    """
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return int(moment.timestamp()) if moment.tzinfo and moment.year > 1970 else None
    except (ValueError, OverflowError):
        return None


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

    A number alone ("the #1 boat") is not a hashtag: in the recorded texts with links, 31 of 31 words are linked, and
    the number is not (capture adb4f2a205e4 of the video site).

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
