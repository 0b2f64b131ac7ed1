"""A plugin of proxy.py: connections come from the address in ``PROXY_SOURCE``, which the sandbox logs."""

from __future__ import annotations

import os
import socket

from proxy.core.connection import server
from proxy.http.proxy import HttpProxyBasePlugin


def _connect(address: tuple[str, int], *_arguments: object, **_options: object) -> socket.socket:
    return socket.create_connection(address, timeout=10, source_address=(os.environ["PROXY_SOURCE"], 0))


class FromOwnAddress(HttpProxyBasePlugin):  # type: ignore[misc]  # proxy.py has no types here
    """Loads this module. The hook ``resolve_dns`` would do, but is not used for destinations that are addresses."""


server.new_socket_connection = _connect
