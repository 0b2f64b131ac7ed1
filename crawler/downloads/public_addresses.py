"""Checks of addresses, for connections to hosts that web pages in the browser choose.

An address is checked after name resolution, and the connection is made to the checked address. So a host name cannot
resolve to another address after the check.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""The IPv6 network of NAT64 gateways. The last 32 bits of an address are the IPv4 address to which they connect."""
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""The network of global IPv6 addresses. Other addresses are local, reserved or multicast."""
NOT_PUBLIC = (
    ipaddress.ip_network("168.63.129.16/32"),  # the metadata service of a cloud
    ipaddress.ip_network("192.0.0.0/24"),  # also metadata; ``is_global`` is wrong for it before Python 3.11.10
    ipaddress.ip_network("2001::/32"),  # Teredo, and
    ipaddress.ip_network("2002::/16"),  # 6to4: both contain an IPv4 address
)


class AddressRefusedError(Exception):
    """Raised when none of a host's addresses is allowed."""


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, and not to this machine."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return is_public(str(ip.ipv4_mapped))
        if ip in NAT64:
            return is_public(str(ipaddress.IPv4Address(ip.packed[-4:])))
        if ip not in GLOBAL_UNICAST:
            return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or any(ip in network for network in NOT_PUBLIC):
        return False
    return not _is_own(ip)


def _is_own(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to this machine: the system would send packets to it from the same address.

    No packet is sent.
    """
    with socket.socket(socket.AF_INET if ip.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(ip), 9))
        except OSError:  # no route to it
            return False
        return bool(probe.getsockname()[0] == str(ip))


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, the preferred address first.

    Raises:
        OSError: the name cannot be resolved.
        UnicodeError: the name is not a valid host name.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def connect_checked(
    host: str, port: int, allows: Callable[[str], bool], connect: Callable[[str, int], Awaitable[T]], seconds: float
) -> T:
    """Connect to the first allowed address of a host that accepts the connection.

    ``allows``: whether an address may be connected to. ``connect`` gets an address and the port. ``seconds``: the
    timeout for each address.

    Raises:
        AddressRefusedError: none of the host's addresses is allowed.
        OSError: the name cannot be resolved (``socket.gaierror``), or no allowed address accepts the connection.
        UnicodeError: the name is not a valid host name.
    """
    addresses = await resolve(host, port)
    allowed = [address for address in addresses if allows(address)]
    if not allowed:
        raise AddressRefusedError(f"not a public address: {', '.join(addresses)}")
    failure = OSError("no address")
    for address in allowed:
        try:
            async with asyncio.timeout(seconds):
                return await connect(address, port)
        except OSError as error:
            failure = error if str(error) else TimeoutError(f"no connection within {seconds:g} s")
    raise failure
