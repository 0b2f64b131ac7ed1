"""A plugin of proxy.py, whose connections then start at the address in the environment variable ``PROXY_SOURCE``.

The sandbox logs this address, so tests can tell the proxies of requests apart.
"""

from __future__ import annotations

import os
import socket

from proxy.core.connection import server
from proxy.http.proxy import HttpProxyBasePlugin


def _connect(address: tuple[str, int], *_arguments: object, **_options: object) -> socket.socket:
    return socket.create_connection(address, timeout=10, source_address=(os.environ["PROXY_SOURCE"], 0))


class FromOwnAddress(HttpProxyBasePlugin):  # type: ignore[misc]  # proxy.py has no types here
    """An empty plugin: proxy.py imports this module because of it, and the module replaces proxy.py's function.

    The hook ``resolve_dns`` could choose the address, but proxy.py does not call it for numeric destinations.
    """


server.new_socket_connection = _connect
