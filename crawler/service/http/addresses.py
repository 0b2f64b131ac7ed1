"""Limits per client address: open connections, and failed keys (calls without a valid API key).

A client is an IPv4 address, or a /64 network of IPv6 addresses, which one host usually owns. Behind a proxy that
``SERVICE_TRUSTED_PROXIES`` names, the client is taken from ``X-Forwarded-For``. A proxy that the setting does not name
is recognised by this header if the proxy's own address is not public. The clients behind such a proxy cannot be
distinguished, so the limits do not apply to them.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

import structlog

from crawler.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy.settings import BaseSettings

logger = structlog.get_logger(__name__)

PERIOD_SECONDS = 60.0
"""The period in which failed keys are counted."""
MAX_ADDRESSES = 10_000
"""Maximum number of clients whose failed keys are counted. The counts of the oldest are dropped."""
CACHED_CLIENTS = 1_000
"""Number of addresses whose clients are cached. Each call needs the client of its address."""
MAX_UNNAMED_PROXIES = 1_000
"""Maximum number of recognised proxies that are not in ``SERVICE_TRUSTED_PROXIES``."""


@dataclass
class _FailedKeys:
    """The number of a client's calls without a valid API key in a period, and the time of the first of them."""

    since: float
    number: int = 0


class Addresses:
    """Counts the open connections and the failed keys of each client. 0 disables a limit."""

    def __init__(
        self,
        max_connections: int = 0,
        max_failed_keys: int = 0,
        trusted_proxies: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``trusted_proxies``: addresses or networks. Raises ``ValueError`` for any other text."""
        self.max_connections = max_connections
        self.max_failed_keys = max_failed_keys
        self.trusted = [ip_network(each.strip()) for each in trusted_proxies]
        self._clock = clock
        self._connections: Counter[str] = Counter()
        self._failed_keys: OrderedDict[str, _FailedKeys] = OrderedDict()
        self._unnamed_proxies: set[str] = set()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Addresses:
        return cls(
            settings.getint("SERVICE_ADDRESS_CONNECTIONS"),
            settings.getint("SERVICE_ADDRESS_FAILED_KEYS"),
            settings.getlist("SERVICE_TRUSTED_PROXIES"),
        )

    # Connections

    def may_connect(self, peer: str) -> bool:
        """Whether this peer may open another connection."""
        unlimited = not self.max_connections or peer in self._unnamed_proxies or self._is_trusted(peer)
        return unlimited or self._connections[client_of(peer)] < self.max_connections

    def connected(self, peer: str) -> None:
        """Count an open connection."""
        self._connections[client_of(peer)] += 1

    def disconnected(self, peer: str) -> None:
        """Count a connection as closed."""
        client = client_of(peer)
        self._connections[client] -= 1
        if not self._connections[client]:
            del self._connections[client]

    def find_client(self, peer: str, forwarded_for: str | None) -> str | None:
        """Return the client that sent a request. None: a proxy hides the client.

        A proxy hides its clients if it is not trusted, or if its header is missing or invalid.

        ``forwarded_for``: the value of ``X-Forwarded-For``. Each proxy appends the address of its own peer, so that the
        last address that is not a trusted proxy's is the client's. The addresses before it may be forged.
        """
        if not (self.trusted and self._is_trusted(peer)):
            if forwarded_for is not None and not ip_address(peer).is_global:
                if len(self._unnamed_proxies) < MAX_UNNAMED_PROXIES:
                    self._unnamed_proxies.add(peer)
                return None
            return client_of(peer)
        for hop in reversed((forwarded_for or "").split(",")):
            try:
                if not self._is_trusted(hop.strip()):
                    return client_of(hop.strip())
            except ValueError:
                return None
        return None

    def _is_trusted(self, peer: str) -> bool:
        address = _plain(peer)
        return any(address in network for network in self.trusted)

    # Failed keys

    def count_failed_key(self, client: str | None) -> None:
        """Count a client's call without a valid API key. ``client``: None if it is not known; nothing is counted then.

        Raises:
            RateLimited: this client has sent more than ``max_failed_keys`` such calls within a minute.
        """
        if client is None or not self.max_failed_keys:
            return
        now = self._clock()
        failed = self._failed_keys.get(client)
        if failed is None or now >= failed.since + PERIOD_SECONDS:
            failed = self._failed_keys[client] = _FailedKeys(now)
            self._failed_keys.move_to_end(client)
            if len(self._failed_keys) > MAX_ADDRESSES:
                self._failed_keys.popitem(last=False)
        failed.number += 1
        if failed.number <= self.max_failed_keys:
            return
        if failed.number == self.max_failed_keys + 1:
            logger.warning("failed_keys_limited", client=client, failed=failed.number, seconds=PERIOD_SECONDS)
        raise RateLimited(
            f"Too many calls without a valid API key: at most {self.max_failed_keys} a minute from one address.",
            retry_after=max(1, math.ceil(failed.since + PERIOD_SECONDS - now)),
        )


@lru_cache(CACHED_CLIENTS)
def client_of(address: str) -> str:
    """Return an address's client: the IPv4 address itself, or the /64 network of an IPv6 address.

    Raises:
        ValueError: the text is not an IP address.

    >>> client_of("192.0.2.1"), client_of("2001:db8::1:2"), client_of("::ffff:192.0.2.1")
    ('192.0.2.1', '2001:db8::/64', '192.0.2.1')
    """
    plain = _plain(address)
    return str(ip_network((plain, 64), strict=False) if isinstance(plain, IPv6Address) else plain)


def _plain(address: str) -> IPv4Address | IPv6Address:
    """Parse an address. An IPv4 address in IPv6 notation becomes an IPv4 address."""
    parsed = ip_address(address)
    return (isinstance(parsed, IPv6Address) and parsed.ipv4_mapped) or parsed
