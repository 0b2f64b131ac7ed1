"""When a process imports this module, its connections and name lookups beyond loopback are refused and recorded.

The environment variable ``LOOPBACK_LOG`` names the file to which the refused hosts are written.
"""

from __future__ import annotations

import os
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
CONNECTIONS = {"socket.connect", "socket.sendto"}


def _is_loopback(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in LOOKUPS:
        host = arguments[0]
    elif event in CONNECTIONS and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not _is_loopback(host):
        with Path(os.environ["LOOPBACK_LOG"]).open("a") as log:
            log.write(f"{event} {host!r}\n")
        raise OSError(f"{host!r} is not on loopback")


sys.addaudithook(_watch)
