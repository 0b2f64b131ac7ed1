"""Reads what people paste: links, and the texts of params with the handles, ids and words in them.

The module ``urls`` of each platform defines ``LINKS``: the platform's hosts, and the links that lead to a target.
``read_link`` reads a link of any platform. No request is made: only the text of a link is read, and only values with
known formats are taken from it, so a link cannot determine which host or URL is requested.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, NamedTuple
from unicodedata import normalize
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from crawler.platforms import Platform, platforms


@dataclass(frozen=True)
class Grammar:
    """The form of a name. In ``Annotated``, it makes a pydantic field accept only texts of this form.

    Python's ``re`` alone decides. Pydantic would apply the expression by another library, which differs from it. In the
    JSON schema, the expression is the ``pattern``.
    """

    expression: str
    expected: str
    """The message for other texts: a sentence without a full stop, which begins in lower case."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.expression)

    def matches(self, text: str) -> bool:
        """Whether a whole text has this form."""
        return self._pattern.fullmatch(text) is not None

    def check(self, text: str) -> str:
        """Return a text of this form unchanged.

        Raises:
            ValueError: the text has another form.
        """
        if not self.matches(text):
            raise ValueError(self.expected)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a text that is checked."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema of a text with a pattern."""
        return {**handler(schema), "pattern": f"^{self.expression}$"}


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

    >>> cleaned("\ufeff caf\u0065\u0301 \u00a0"), cleaned(" \u200d name \u200d ")
    ('café', 'name')
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


MAX_LENGTH = 2_000
"""Maximum length of a link in characters."""
MAX_REDIRECTS = 3
"""Maximum number of redirects that are one in another."""
SCHEME = re.compile(r"https?://", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"(?!https?://)[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
_START_OF_LINK = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//[^\s/]|https?(?::|%3a)|www\.", re.IGNORECASE)
_HOST_AND_PATH = re.compile(r"(?!@)[^\s/?#]+\.[a-z]{2,}(?::\d+)?[/?#]\S*", re.IGNORECASE)
_DEFAULT_PORTS = {80, 443}
_DOT_SEGMENTS = {".", ".."}
_WITHOUT_JOINERS = dict.fromkeys(map(ord, JOINERS))
_SLASH = re.compile(r"[/\\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class LinkError(ValueError):
    """Raised for a text that is not a link to a target. The message describes the text.

    ``read_link`` and ``PlatformLinks.read`` add the valid links to the message.
    """


class Url(NamedTuple):
    """The parts of a link. Percent escapes are not decoded."""

    host: str
    """The host in lower case, with its port if this is another one than that of websites."""
    path: str
    query: str
    fragment: str = ""

    def segments(self) -> list[str]:
        """Return the path's segments, decoded, without empty ones.

        Raises:
            LinkError: a segment is not text, or the path leads to another one, such as ``/a/../b``.
        """
        segments = [decoded(each) for each in self.path.split("/") if each]
        if not all(each and each not in _DOT_SEGMENTS and not _SLASH.search(each) for each in segments):
            raise LinkError("this is not the address of a page")
        return [each for each in segments if each]

    def arguments(self) -> dict[str, str]:
        """Return the first value of each query parameter, decoded. Values with control characters are skipped."""
        try:
            values = parse_qs(self.query, errors="strict")
        except ValueError:  # escapes that are not UTF-8, or too many parameters
            return {}
        return {name: each[0] for name, each in values.items() if not _CONTROL.search(each[0])}


@dataclass(frozen=True, slots=True)
class Link:
    """The target of a link: its platform, its kind of page, and its params."""

    platform: str
    """The platform's name, which is also the name of its spider."""
    kind: str
    """The kind of page: ``category``, ``search``, ``channel``, ``profile``, ``post`` or ``share link``."""
    scrapers: tuple[str, ...]
    """The names of the scrapers that read pages of this kind, the default scraper first."""
    params: Mapping[str, str]
    """The params that the link stands for, as text: ``{"cat_id": "976759", "page": "2"}``. Links that differ only in
    their host or in parameters for tracking have equal params. Scrapers other than the default may not have all of
    these params."""

    def __str__(self) -> str:
        readers = " and ".join(self.scrapers)
        return f"a {self.kind} on the platform {self.platform}, which {readers} can read (spider {self.platform})"


Found = tuple[str, dict[str, str]]
"""The kind of page that a link leads to, and its params (see ``Link``)."""


@dataclass(frozen=True)
class PlatformLinks:
    """The links of one platform."""

    platform: Platform
    hosts: re.Pattern[str]
    """Matches the hosts of the platform's pages, in lower case."""
    scrapers: Mapping[str, tuple[str, ...]]
    """Maps each kind of page that can be scraped to the names of its scrapers, the default scraper first."""
    target_of: Callable[[Url], Found | None]
    """Returns the target that a URL on one of the hosts leads to, or None. May raise ``LinkError`` with a reason."""
    expected: str
    """A description of the accepted links, for the end of error messages: ``expected a category page of ...``."""
    other_pages: Mapping[str, re.Pattern[str]]
    """Patterns for the paths of pages that no scraper reads, by the kind of page (``a product``), for error
    messages."""
    short_hosts: frozenset[str] = frozenset()
    """Hosts of short links. Short links are refused, because only a request would show where they lead."""
    redirects: re.Pattern[str] = re.compile(r"(?!)")
    """Matches the host and the path of pages that lead to the page in one of their query parameters: logins, consent,
    links in messages."""
    redirect_hosts: frozenset[str] = frozenset()
    """The hosts that have only such pages."""
    destinations: tuple[str, ...] = ()
    """The query parameters of such pages that contain the address of the other page."""

    def owns(self, host: str) -> bool:
        """Whether a host belongs to the platform. ``host`` is in lower case."""
        return host in self.short_hosts or host in self.redirect_hosts or self.hosts.fullmatch(host) is not None

    def read(self, text: str, *kinds: str) -> Link:
        """Read a link to a target of this platform, as people paste it: see ``read_link``.

        ``kinds``: the kinds of pages that the link may lead to; without ``kinds``, any.

        Raises:
            LinkError: the text is not such a link.
        """
        try:
            url = split_link(text)
            link = _owner(url).read_url(url)  # another platform's, for the message
        except LinkError as error:
            raise LinkError(f"{error}; {self.expected}") from None
        if link.platform != self.platform.name or (kinds and link.kind not in kinds):
            raise LinkError(f"this is {link}; {self.expected}")
        return link

    def read_url(self, url: Url) -> Link:
        """Read a URL on one of the platform's hosts.

        Raises:
            LinkError: no scraper reads the page that the URL leads to. The message does not contain ``expected``.
        """
        if url.host in self.short_hosts:
            raise LinkError(
                f"{url.host} has short links, whose destination is unknown: open the link in a browser, and copy "
                "the address of the page"
            )
        url = self._destination(url)
        found = self.target_of(url)
        if found is None:
            page = next((page for page, paths in self.other_pages.items() if paths.match(url.path)), "another page")
            raise LinkError(f"this is {page} on the platform {self.platform.name}, which no scraper can read")
        kind, params = found
        return Link(self.platform.name, kind, self.scrapers[kind], params)

    def _destination(self, url: Url) -> Url:
        """Return the URL to which a redirect of the platform leads, or the URL itself if it is none.

        Raises:
            LinkError: it leads to another site, to no page, or through too many redirects.
        """
        for _ in range(MAX_REDIRECTS):
            if self.redirects.match(url.host + url.path) is None:
                return url
            arguments = url.arguments()
            stated = next((arguments[name] for name in self.destinations if arguments.get(name)), None)
            if stated is None:
                if url.host in self.redirect_hosts:
                    raise LinkError("this is a redirect that does not name the page to which it leads")
                return url
            url = split_link(_address(stated, self.platform.origin))
            if not self.owns(url.host):
                raise LinkError(f"this is a redirect to {url.host[:100]!r}, which is another site")
        raise LinkError("this is a redirect through other redirects")


@cache
def all_links() -> tuple[PlatformLinks, ...]:
    """Return one ``PlatformLinks`` for each platform: its hosts, and what the URLs on these hosts identify."""
    return tuple(import_module(f"crawler.platforms.{name}.urls").LINKS for name in platforms())


def read_link(text: str) -> Link:
    """Read a pasted link to a target of any platform.

    Differences that arise when links are copied are accepted: what a sentence puts around the link, ``//`` or nothing
    before the host, the default port, doubled slashes. Redirects of the platforms' own hosts are read, too.

    >>> link = read_link(" www.walmart.com/browse/food/976759?povid=x&page=2")
    >>> link.platform, link.kind, link.scrapers, link.params
    ('retail', 'category', ('retail-category-v4',), {'cat_id': '976759', 'page': '2'})

    Raises: LinkError: the text is not a link, or no scraper reads the page that it leads to. The message starts with a
    lower-case letter and has no full stop, so that it can follow a prefix.
    """
    try:
        url = split_link(text)
    except LinkError as error:
        raise LinkError(f"{error}; expected a link to a page of {', '.join(platforms())}") from None
    return _owner(url).read(text)


def is_link(text: str) -> bool:
    """Whether a text is a link to any site, or contains one. Any other text is an id, a name or search words.

    >>> [is_link(text) for text in ("https://a.example", "www.a.example", "a.example/b", "//a.example/b", "see http://a")]
    [True, True, True, True, True]
    >>> [is_link(text) for text in ("a.example", "AC/DC", "1.5/2 inch", "@a.b", "node.js and/or x", "//", "a // b")]
    [False, False, False, False, False, False, False]
    """
    text = cleaned(text).lstrip("<([")
    return "://" in text or _START_OF_LINK.match(text) is not None or _HOST_AND_PATH.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """Whether a text is a host of a platform, without a path: ``x.com``."""
    host = cleaned(text).lower()
    return any(links.owns(host) for links in all_links())


def split_link(text: str) -> Url:
    """Split an HTTP or HTTPS URL into its parts, without what a sentence puts around it.

    The scheme is optional, as in a browser's address bar.

    >>> split_link("https://Shop.example/a/b?c=d#e")
    Url(host='shop.example', path='/a/b', query='c=d', fragment='e')
    >>> split_link("shop.example/a/b").path
    '/a/b'

    Raises:
        LinkError: the text is not an HTTP or HTTPS URL, is longer than ``MAX_LENGTH``, contains a user name or a
            password, or has a space or an unprintable character, which ``urlsplit`` would accept.
    """
    if len(text := cleaned(text)) > MAX_LENGTH:
        raise LinkError(f"a link has at most {MAX_LENGTH} characters")
    text = link_in(text)
    page, _, query = text.partition("?")
    # urlsplit would silently drop line breaks and tabs. Words in a query may have spaces and joined emoji.
    if not _is_printable(page) or " " in page or _CONTROL.search(query):
        raise LinkError("this is not a link alone: it contains spaces or unprintable characters")
    if (scheme := _OTHER_SCHEME.match(text)) is not None:
        raise LinkError(f"this begins with {scheme[0]!r} and not with https://")
    try:
        parts = urlsplit(text if SCHEME.match(text) else f"https://{text.removeprefix('//')}")
        host = parts.hostname or ""
        port = parts.port
    except ValueError:  # an unclosed bracket, or a host with characters that Unicode normalises to URL delimiters
        raise LinkError("this is not a URL") from None
    if "@" in parts.netloc:  # the message must not quote the part before "@", which may contain a password
        raise LinkError("this link contains a user name or a password")
    is_usual = port is None or port in _DEFAULT_PORTS
    return Url(host if is_usual else f"{host}:{port}", parts.path, parts.query, parts.fragment)


def decoded(path: str) -> str | None:
    """Decode the percent escapes in a path or in a segment of it. Return None if the result is not printable text."""
    try:
        text = normalize("NFC", unquote_to_bytes(path).decode())
    except UnicodeError:
        return None
    return text if _is_printable(text) else None


def _is_printable(text: str) -> bool:
    """Whether a text is printable. Joiners, which belong to words of some scripts, are."""
    return text.translate(_WITHOUT_JOINERS).isprintable()


def _address(stated: str, origin: str) -> str:
    """Return the address in a redirect's parameter: a URL or a path, which may be in base 64."""
    if not is_link(stated) and not stated.startswith("/"):
        try:
            stated = b64decode(stated, validate=True).decode()
        except ValueError:  # it is the address of something else
            return stated
    return f"{origin}{stated}" if stated.startswith("/") and not stated.startswith("//") else stated


def _owner(url: Url) -> PlatformLinks:
    """Return the links of the platform that a URL's host belongs to.

    Raises:
        LinkError: the host does not belong to a platform.
    """
    for links in all_links():
        if links.owns(url.host):
            return links
    hosts = ", ".join(f"{links.platform.domain} ({links.platform.name})" for links in all_links())
    what = "a host of a platform" if "." in url.host else "a link to a platform"
    raise LinkError(f"{url.host[:100]!r} is not {what}: {hosts}")
