"""The setting ``EGRESSES``: the operator's own connections to the internet, by proxies.

Only this module reads the setting. A ``repr`` or error message never contains the credentials of a proxy.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from scrapy.settings import BaseSettings

from crawler import platforms
from crawler.components import ABOVE_COMMAND_LINE
from crawler.configuration.setting_types import Budget
from crawler.platforms.model import validation_details

SETTING = "EGRESSES"
DIRECT_NAME = "direct"
"""The name of this machine's own connection."""
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"
"""Matches the names of egresses, which are used in keys of shared limits and in labels of metrics."""
DEFAULT_PORT = 80
HOUR = 3_600.0


class _Strict(BaseModel):
    """The base class of the setting's parts. Errors do not quote values, which may be proxy URLs with credentials."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


class Proxy(_Strict):
    """An HTTP proxy. Connections to ``https`` origins are tunnelled through it with ``CONNECT``."""

    host: str
    port: int
    username: str = Field(default="", repr=False)
    password: str = Field(default="", repr=False)

    @classmethod
    def parse(cls, url: object) -> Proxy:
        """Read a proxy's URL: ``http://user:password@host:port``, with reserved characters percent-encoded.

        Raises:
            ValueError: ``url`` is not the URL of an HTTP proxy. The message contains at most the scheme of the URL.
        """
        expected = "a proxy is http://host:port or http://user:password@host:port"
        if isinstance(url, Proxy):
            return url
        if not isinstance(url, str):
            raise ValueError(f"{expected}, or null")  # noqa: TRY004  # pydantic reports only ValueError
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError(f"{expected}; percent-encode reserved characters in the password") from None
        if parts.scheme == "https" or parts.scheme.startswith("socks"):
            raise ValueError(
                f"{parts.scheme}:// proxies cannot be used, because Scrapy tunnels only through http:// proxies. "
                "Through them, connections to https:// platforms are encrypted, too"
            )
        if parts.scheme != "http" or not host or parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(expected)
        return cls(
            host=host,
            port=port or DEFAULT_PORT,
            username=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
        )

    @property
    def url(self) -> str:
        """The proxy's URL, without credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def authorization(self) -> bytes | None:
        """The value of the header ``Proxy-Authorization``. None if the setting has no user name for the proxy."""
        if not self.username:
            return None
        return b"Basic " + base64.b64encode(f"{self.username}:{self.password}".encode())


class Egress(_Strict):
    """A connection to the internet with an IP address of its own."""

    name: str = Field(pattern=NAME_PATTERN)
    """The name that logs, metrics and commands show."""
    proxy: Annotated[Proxy, BeforeValidator(Proxy.parse)] | None = None
    """The proxy of all connections. None: this machine connects directly, as ``DIRECT`` does."""
    platforms: tuple[str, ...] = ()
    """The platforms that use the egress. Empty: all."""
    budgets: dict[str, Budget] = Field(default_factory=dict)
    """Platform -> the keys of its budget that differ for this egress from ``PLATFORM_BUDGETS`` and the defaults."""

    def __str__(self) -> str:
        """The name and the address of the proxy, without credentials."""
        return f"{self.name} ({self.proxy.url})" if self.proxy else self.name

    @property
    def key(self) -> str:
        """The egress's suffix in the keys of shared limits: ``@`` and its name, or "" for the direct connection."""
        return "" if self.name == DIRECT_NAME else f"@{self.name}"

    def serves(self, platform: str) -> bool:
        """Whether a platform uses the egress."""
        return not self.platforms or platform in self.platforms

    def budget(self, platform: str, settings: BaseSettings) -> dict[str, Any]:
        """Return a platform's budget through this egress. Its keys: see ``platforms.budget``."""
        return platforms.overridden(platforms.budget(platform, settings), self.budgets.get(platform, {}))


DIRECT = Egress(name=DIRECT_NAME)
"""The connection that is used without ``EGRESSES``."""
_EGRESSES = TypeAdapter(tuple[Egress, ...], config=ConfigDict(hide_input_in_errors=True, defer_build=True))


def egresses(settings: BaseSettings) -> tuple[Egress, ...]:
    """Return the egresses of the setting. Its value is a list, the list as JSON, or the path of a file with this JSON.

    If the setting is empty, return ``DIRECT`` only.

    Raises:
        ValueError: the setting is wrong. The message contains no credentials.
    """
    value = settings.get(SETTING)
    if not value:
        return (DIRECT,)
    return _parse(value if isinstance(value, str) else orjson.dumps(value).decode())


def use_only(egress: Egress, settings: BaseSettings) -> None:
    """Remove all other egresses from the setting, so that a crawl uses this one or fails."""
    if value := settings.get(SETTING):
        entries = _decoded(value) if isinstance(value, str) else value
        only = [each for each in entries if each["name"] == egress.name]
        settings.set(SETTING, only, priority=ABOVE_COMMAND_LINE)  # Scrapy sets options again when the crawl starts


def check_egresses(settings: BaseSettings) -> None:
    """Check the setting before the first request.

    Raises:
        ValueError: as for ``egresses``; or a platform has no egress; or both ``EGRESSES`` and ``ZYTE_API_KEY`` are set.
    """
    for name in platforms.platforms():
        egresses_of(name, settings)
    if egresses(settings) != (DIRECT,) and settings.get("ZYTE_API_KEY"):
        raise ValueError(f"{SETTING} and ZYTE_API_KEY exclude each other: Zyte API makes the connections itself.")


def egresses_of(platform: str, settings: BaseSettings) -> tuple[Egress, ...]:
    """Return the egresses that a platform uses, at least one.

    Raises:
        ValueError: as for ``egresses``; or no egress serves the platform.
    """
    serving = tuple(egress for egress in egresses(settings) if egress.serves(platform))
    if not serving:
        raise ValueError(
            f"{SETTING}: no egress serves {platform}. Add it to the platforms of an egress, or add "
            f'{{"name": "{DIRECT_NAME}"}} for the connection of this machine.'
        )
    return serving


def without_credentials(value: str) -> str:
    """Return a value for a message. If it may be a URL with credentials, they are replaced.

    They end at the last ``@``, because a password whose reserved characters are not encoded may have any character.

    >>> [without_credentials(each) for each in ("http://me:a/b @c@host:3128", "me:secret@host", "a@b")]
    ['http://...@host:3128', '...@host', 'a@b']
    """
    url, at, host = value.rpartition("@")
    scheme, slashes, _ = url.partition("//")
    if not at or ":" not in url:
        return value
    return f"{scheme}//...@{host}" if slashes else f"...@{host}"


def _wrong(problem: str) -> ValueError:
    """Return the error for an invalid setting. ``problem``: without credentials."""
    return ValueError(f"{SETTING}: {problem}")


@cache
def _parse(text: str) -> tuple[Egress, ...]:
    try:
        found = _EGRESSES.validate_python(_decoded(text))
    except ValidationError as error:
        raise _wrong(f"{_problem(error)}.") from None
    names = [egress.name for egress in found]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise _wrong(f"the name {repeated[0]!r} occurs more than once; names must be unique.")
    for egress in found:
        _check_platforms(egress)
        if (egress.name == DIRECT_NAME) != (egress.proxy is None):
            raise _wrong(f"{egress.name}: each egress needs a proxy, except {DIRECT_NAME!r}, which has none.")
    return found or (DIRECT,)


def _decoded(text: str) -> Any:
    """Decode the JSON in a text, or in the file whose path the text is."""
    try:
        content = text.encode() if text.lstrip().startswith(("[", "{")) else Path(text).read_bytes()
    except OSError as error:
        raise _wrong(f"cannot read the file {without_credentials(text)!r}: {error.strerror}.") from None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:  # its message has the location, not the text
        raise _wrong(f"not valid JSON: {error.msg} (line {error.lineno}).") from None


def _problem(error: ValidationError) -> str:
    first = validation_details(error)[0]
    place = ".".join(without_credentials(str(each)) for each in first["loc"])
    if not place:
        return 'expected a list such as [{"name": "a", "proxy": "http://host:3128"}]'
    if first["type"] == "model_type":
        return f'{place}: expected an object such as {{"name": "a", "proxy": "http://host:3128"}}'
    return f"{place}: {first['msg']}"


def _check_platforms(egress: Egress) -> None:
    known = platforms.platforms()
    if unknown := sorted({*egress.platforms, *egress.budgets} - known.keys()):
        raise _wrong(f"{egress.name}: no platform is called {without_credentials(unknown[0])}; use {', '.join(known)}.")
    if unserved := sorted(name for name in egress.budgets if not egress.serves(name)):
        raise _wrong(f"{egress.name} has a budget for {unserved[0]}, which is not in its platforms.")


def platform_capacity(name: str, budget: Mapping[str, Any]) -> float:
    """Return the targets per hour that the budget of the platform ``name`` for one egress allows.

    ``budget``: see ``platforms.budget``. The estimate assumes ``Platform.downloads`` downloads per
    target, and one of them from each source that has its own budget.
    """
    platform = platforms.platforms()[name]
    whole = _rate(budget, platform.seconds) / platform.downloads
    return HOUR * min([whole, *(_rate(each, platform.seconds) for each in budget["sources"].values())])


def _rate(budget: Mapping[str, Any], seconds: float) -> float:
    """Return the downloads per second that a budget allows. ``seconds``: the duration of one download."""
    delay = budget.get("delay", 0)
    by_delay = 1 / delay if delay else math.inf
    return float(min(by_delay, budget.get("concurrency", 1) / seconds))
