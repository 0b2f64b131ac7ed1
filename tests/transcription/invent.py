"""Replaces the content of captures by made-up content of the same format.

Equal values of a capture get equal replacements, which depend on a secret: the hash of the capture. So the result is
reproducible, and nobody without the capture can compute the original content from the fixture.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
import random
import re
import unicodedata
from collections.abc import Callable, Container
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from tests.transcription import leaves, shape, words

FOUR_YEARS = 1461 * 86_400
SNOWFLAKE_EPOCH_MS = 1_288_834_974_657
LONG_TOKEN, SHORT_TOKEN, LONG_TEXT = 60, 24, 300
CONSONANTS, VOWELS = "bcdfghjklmnprstvz", "aeiou"

TOKEN = re.compile(
    r"""(?P<url>https?://[^\s"'<>\\()]+)
    |(?P<tag></?[a-zA-Z][^<>]*>)
    |(?P<entity>&(?:\#\d+|\#[xX][0-9a-fA-F]+|[a-zA-Z]{2,8});)
    |(?P<iso>(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)
    |(?P<stamp>(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\ [A-Z][a-z]{2}\ \d\d\ \d\d:\d\d:\d\d\ \+0000\ \d{4})
    |(?P<number>(?<!\w)(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[kKmMbBhdwsx]|bn|st|nd|rd|th)?(?!\w))
    |(?P<word>\w+)
    |(?P<symbol>[^\w\s])""",
    re.VERBOSE,
)
RECORD_ID = re.compile(r"(?:client|urt):")
"""Matches the start of ids that other records refer to. They are not shortened, because the references would break."""
PLAIN_URL = re.compile(r"(?P<scheme>https?:)?//(?P<host>[^/?#\s]+)(?P<rest>\S*)")


class Inventor:
    """Makes up the content of one fixture. ``taken``: words and numbers of captures, which no fixture may contain."""

    def __init__(self, platform: str, secret: bytes, taken: Container[str]) -> None:
        self.platform = platform
        self.overrides: dict[str, str] = {}
        """Text -> its prescribed replacement, for example for ids that encode another id."""
        self._secret = secret
        self._taken = taken
        self._hosts = (*words.HOSTS[platform], *words.COMMON_HOSTS)

    def _random(self, kind: str, value: str, attempt: int = 0) -> random.Random:
        digest = hmac.new(self._secret, f"{kind}\0{value}\0{attempt}".encode(), hashlib.sha256)
        return random.Random(digest.digest())  # noqa: S311  # seeded by a keyed hash

    def _untaken(self, kind: str, value: str, make: Callable[[random.Random], str]) -> str:
        for attempt in range(1000):
            made = make(self._random(kind, value, attempt))
            if made != value and not any(part in self._taken for part in leaves.parts_of(made)):
                return made
        raise AssertionError(f"no replacement for a {kind} of {len(value)} characters")

    # Values

    def value(self, value: Any, key: str = "") -> Any:
        """Return a JSON value with made-up content. ``key``: the key of the value in its object, if it has one."""
        match value:
            case bool() | None:
                return value
            case dict():
                return {self.key(name): self.value(each, name) for name, each in value.items()}
            case list():
                return [self.value(each, key) for each in value]
            case str():
                return self.text(value, key)
            case int():
                return self.integer(value, key)
        return self.decimal(value)

    def key(self, name: str) -> str:
        """Return a key, replaced if it looks like an id: such keys are content."""
        return name if shape.is_name(name) else self.text(name)

    def integer(self, value: int, key: str = "") -> int:
        if abs(value) <= 31 or value in words.numbers(self.platform):
            return value
        if abs(value) < 10_000 and words.ENUM_NUMBER.search(key):
            return value
        return int(self.digits(str(abs(value)))) * (1 if value > 0 else -1)

    def decimal(self, value: float) -> float:
        whole, _, fraction = repr(abs(value)).partition(".")
        if "e" in fraction or "e" in whole or not fraction.isdigit():
            return 0.5
        return float(self._decimal(whole, fraction)) * (1 if value >= 0 else -1)

    def _decimal(self, whole: str, fraction: str) -> str:
        return f"{self.digits(whole)}.{fraction if len(fraction) <= 2 else self._fraction(fraction)}"

    def _fraction(self, digits: str) -> str:
        return self._untaken("fraction", digits, lambda r: "".join(r.choice("123456789") for _ in digits))

    # Numbers and times

    def digits(self, text: str) -> str:
        """Return the same number of other digits. Numbers up to 31 are kept. Times and the times in ids stay times."""
        if not text.strip("0"):
            return text
        if len(text) <= 4:
            return self._small(text)
        return self._time(text) or self._untaken("digits", text, lambda r: _digits(r, text))

    def _small(self, text: str) -> str:
        number = int(text)
        if number <= 31:
            return text
        if 1900 <= number <= 2100:
            return str(number - 4)
        scale = self._random("scale", "").uniform(0.7, 0.95)  # one factor for all, so that ranges stay ranges
        return str(max(int(number * scale), 32, 10 ** (len(text) - 1))).zfill(len(text))

    def _time(self, text: str) -> str:
        number = int(text)
        for unit in (1, 1000, 1_000_000):
            if 1_100_000_000 <= number / unit < 1_900_000_000 and len(text) == 10 + len(str(unit)) - 1:
                return str(self.moment(number // unit) * unit + (number % unit and self._below(text, unit)))
        if self.platform == "microblog" and 10**17 < number < 2**63:
            seconds = ((number >> 22) + SNOWFLAKE_EPOCH_MS) // 1000
            moved = self.moment(seconds) * 1000 + self._below(text, 1000) - SNOWFLAKE_EPOCH_MS
            return str((moved << 22) + self._below(text, 1 << 22))
        if self.platform == "shortvideo" and len(text) == 19 and 1_400_000_000 < number >> 32 < 1_900_000_000:
            return str((self.moment(number >> 32) << 32) + self._below(text, 1 << 32))
        return ""

    def _below(self, value: str, limit: int) -> int:
        return self._random("below", value).randrange(limit)

    def moment(self, seconds: int) -> int:
        """Return a time about four years before a Unix time in seconds. Equal times stay equal."""
        return seconds - FOUR_YEARS + self._random("moment", str(seconds)).randrange(-400_000, 400_000)

    def _iso(self, text: str) -> str:
        moment = datetime.fromisoformat(text)
        zone = moment.tzinfo or UTC
        moved = datetime.fromtimestamp(self.moment(int(moment.replace(tzinfo=zone).timestamp())), zone)
        tail = re.search(r"(?P<fraction>\.\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?$", text)
        assert tail is not None
        fraction = "." + "0" * (len(tail["fraction"]) - 1) if tail["fraction"] else ""
        seconds = re.match(r".{10}.\d\d:\d\d:\d\d", text)
        form = "%Y-%m-%d" + text[10] + ("%H:%M:%S" if seconds else "%H:%M")
        return moved.strftime(form) + fraction + (tail["zone"] or "")

    def _stamp(self, text: str) -> str:
        form = "%a %b %d %H:%M:%S +0000 %Y"
        moment = datetime.strptime(text, form).replace(tzinfo=UTC)
        return datetime.fromtimestamp(self.moment(int(moment.timestamp())), UTC).strftime(form)

    # Texts

    def text(self, text: str, key: str = "") -> str:
        """Return a text of the same structure, cut if it is long. ``key``: the key or attribute of the text.

        Equal words get equal replacements. Numbers stay numbers, links stay links, and markup stays markup.
        """
        if not text.strip() or words.is_enumerated(self.platform, key, text):
            return text
        if text in self.overrides:
            return self.overrides[text]
        if (nested := shape.json_of(text)) is not None:
            return json.dumps(self.value(nested), ensure_ascii=False, separators=(",", ":"))
        if (readable := self._readable(text)) is not None:
            return readable
        if re.match(r"/(?:/\w|\w)", text) or (" " not in text and re.match(r"https?://", text)):
            return self.url(text)
        if len(text) > LONG_TOKEN and not re.search(r"\s", text) and not RECORD_ID.match(text):
            text = _shortened(text)
        if len(text) > LONG_TEXT and self.platform != "microblog":
            text = text[: text.rindex(" ", 0, LONG_TEXT) if " " in text[:LONG_TEXT] else LONG_TEXT]
        return self._phrases(text)

    def _phrases(self, text: str) -> str:
        for phrase in words.PHRASES:
            before, found, after = text.partition(phrase)
            if found:
                return self._phrases(before) + found + self._phrases(after)
        return TOKEN.sub(self._token, text)

    def _token(self, found: re.Match[str]) -> str:
        kind, token = found.lastgroup or "", found[0]
        replace = {
            "url": self.url,
            "tag": self.tag,
            "entity": self._entity,
            "iso": self._iso,
            "stamp": self._stamp,
            "number": self._number,
            "word": self.word,
            "symbol": self._symbol,
        }
        return replace[kind](token)

    def _entity(self, token: str) -> str:
        plain = html.unescape(token)
        return self.word(plain) if plain.isalnum() else token

    def _number(self, token: str) -> str:
        parts = re.fullmatch(r"([\d,]+)(?:\.(\d+))?(\D*)", token)
        assert parts is not None
        whole, fraction, unit = parts[1].replace(",", ""), parts[2], parts[3]
        made = self.digits(whole)
        if "," in parts[1]:
            made = f"{int(made):,}"
        return made + (f".{fraction if len(fraction) <= 2 else self._fraction(fraction)}" if fraction else "") + unit

    def word(self, token: str) -> str:
        """Return the replacement of a sequence of letters, digits and underscores."""
        if words.is_kept(self.platform, token):
            return token
        known = self.overrides.get(token) or self._readable(token)
        if known is not None:
            return known
        if "_" in token and len(token) > 1:
            return "_".join(self.word(part) if part else "" for part in token.split("_"))
        if token.isdecimal() and token.isascii():
            return self.digits(token)
        return self._prefixed(token, self._letters if token.isalpha() else self._mixed)

    def _prefixed(self, token: str, replace: Callable[[str], str]) -> str:
        """Replace a token, but keep a prefix such as UC or PL, which distinguishes the video site's kinds of ids."""
        prefix = (
            re.match(r"(?:VL)?(?:UC|UULF|UUSH|UULV|UU|PL)(?=[\w-]*$)", token) if self.platform == "videosite" else None
        )
        kept = prefix[0] if prefix and len(token) > len(prefix[0]) else ""
        return kept + replace(token[len(kept) :])

    def _letters(self, token: str) -> str:
        if len(token) == 1:
            return token
        lower = token.lower()

        def make(r: random.Random) -> str:
            start = r.randrange(2)
            return "".join(
                r.choice((CONSONANTS, VOWELS)[(i + start) % 2]) if c.isascii() else _alike(c, r)
                for i, c in enumerate(lower)
            )

        made = self._untaken("word", lower, make)
        return "".join(
            m.upper() if c.isupper() and len(m.upper()) == 1 else m for m, c in zip(made, token, strict=False)
        )

    def _mixed(self, token: str) -> str:
        runs = re.findall(r"\d+|\D+", token)
        if len(token) < 8 or len(runs) == 2:
            return "".join(
                self.digits(run) if run.isdecimal() else run if len(run) <= 2 else self._letters(run) for run in runs
            )
        alphabet = "0123456789abcdef" if re.fullmatch(r"[0-9a-f]+", token) else ""
        return self._untaken("id", token, lambda r: "".join(_alike(c, r, alphabet) for c in token))

    def _symbol(self, token: str) -> str:
        if unicodedata.category(token) != "So":
            return token
        return _alike(token, self._random("symbol", token))

    # Links and markup

    def url(self, url: str) -> str:
        """Return a URL of the same structure. The platform's own hosts are kept."""
        found = PLAIN_URL.match(url)
        if found is None:
            return self._rest(url)
        return f"{found['scheme'] or ''}//{self._host(found['host'])}{self._rest(found['rest'])}"

    def _host(self, host: str) -> str:
        own = next((each for each in self._hosts if host == each or host.endswith(f".{each}")), None)
        if own is None:
            labels = host.rpartition(".")[0] or host
            return f"{self._labels(labels)}.example"
        above = host.removesuffix(own).rstrip(".")
        return f"{self._labels(above)}.{own}" if above else own

    def _labels(self, labels: str) -> str:
        return ".".join(
            label
            if label in words.HOST_LABELS or re.fullmatch(r"[a-z]{1,2}\d{0,2}", label)
            else TOKEN.sub(self._token, label)
            for label in labels.split(".")
        )

    def _rest(self, rest: str) -> str:
        """Replace path, query and fragment. Percent-encoded parts are decoded, replaced and encoded again."""
        path, mark, query = rest.partition("?")
        parts = [self._segment(part) for part in re.split(r"(/)", path)]
        fields = [self._field(each) for each in re.split(r"([&#;]|&amp;)", query)] if mark else []
        return "".join(parts) + mark + "".join(fields)

    def _segment(self, part: str) -> str:
        if part == "/" or part in words.literals(self.platform) or (len(part) <= 2 and not part.isdecimal()):
            return part
        stem, dot, ending = part.rpartition(".")
        if dot and re.fullmatch(r"[a-z]{2,4}\d?", ending):
            return f"{self._encoded(stem)}.{ending}"
        return self._encoded(part)

    def _field(self, field: str) -> str:
        name, mark, value = field.partition("=")
        if not mark:
            return field if len(field) <= 6 else self._encoded(field)
        return f"{name if re.fullmatch(r'[A-Za-z_.-]{1,30}', name) else self._encoded(name)}={self._encoded(value)}"

    def _encoded(self, part: str) -> str:
        plain = unquote(part)
        made = self.text(plain)
        return made if plain == part else quote(made, safe="")

    def tag(self, tag: str) -> str:
        """Return a markup tag with the content of its attributes replaced."""
        from tests.transcription.markup import transcribe_tag  # noqa: PLC0415  # the modules need each other

        return transcribe_tag(self, tag)

    def _readable(self, token: str) -> str | None:
        """If a token is base64 of a text or of JSON, return its replacement, else None."""
        text = shape.base64_text(token)
        if text is None:
            return None
        made = base64.b64encode(self.text(text).encode()).decode()
        made = made if token.endswith("=") else made.rstrip("=")
        return made.replace("+", "-").replace("/", "_") if re.search(r"[-_]", token) else made


def _shortened(token: str) -> str:
    """Return the beginning of a long token. The id of a post at the end of its words is kept."""
    post = re.search(r"-activity-\d{15,}.*$", token)
    return token[: min(SHORT_TOKEN, post.start())] + post[0] if post else token[:SHORT_TOKEN]


def _digits(r: random.Random, text: str) -> str:
    zeros = len(text) - len(text.lstrip("0"))
    rest = len(text) - zeros
    return "0" * zeros + "".join(r.choice("2345678" if i == 0 else "0123456789") for i in range(rest))


def _alike(character: str, r: random.Random, alphabet: str = "") -> str:
    """Return a random character of the same kind, or of ``alphabet`` if it is given."""
    if alphabet:
        return r.choice(alphabet)
    if character.isascii():
        for kind in ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
            if character in kind:
                return r.choice(kind)
        return character
    start = ord(character) & ~0x1F
    category = unicodedata.category(character)
    near = [c for c in map(chr, range(start, start + 32)) if unicodedata.category(c) == category and c != character]
    return r.choice(near) if near else character
