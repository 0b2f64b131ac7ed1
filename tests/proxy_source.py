"""A plugin of proxy.py that connects from the address in ``PROXY_SOURCE``. The sandbox logs this address."""

from __future__ import annotations

import os
import socket

from proxy.core.connection import server
from proxy.http.proxy import HttpProxyBasePlugin


def _connect(address: tuple[str, int], *_arguments: object, **_options: object) -> socket.socket:
    return socket.create_connection(address, timeout=10, source_address=(os.environ["PROXY_SOURCE"], 0))


class FromOwnAddress(HttpProxyBasePlugin):  # type: ignore[misc]  # proxy.py has no types here
    """Makes proxy.py import this module. (proxy.py does not call the hook ``resolve_dns`` for numeric destinations.)"""


server.new_socket_connection = _connect
