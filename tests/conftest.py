"""What holds for all tests: no traffic beyond this machine, and none of the developer's own settings."""

import os
import sys
from ipaddress import ip_address
from typing import Any

import hypothesis

LOOPBACK_NAMES = {"", "localhost"}

# The same examples in every run: a failure in CI is seen on the next machine too. No deadline: no timing is asserted.
hypothesis.settings.register_profile("project", derandomize=True, deadline=None)
hypothesis.settings.load_profile("project")


def is_loopback(host: object) -> bool:
    """Whether a host of a socket address is this machine. Unix sockets and unresolved names count as they are spelt."""
    if not isinstance(host, str):
        return host is None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK_NAMES


def refuse_other_hosts(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook: a test that reaches for the network fails where it does so. (It sees Python's sockets, not uvloop's.)

    Raises:
        AssertionError: for a connection or a name lookup beyond loopback.
    """
    if event == "socket.connect" and isinstance(args[1], tuple) and not is_loopback(args[1][0]):
        raise AssertionError(f"a test connects to {args[1]}")
    if event == "socket.getaddrinfo" and not is_loopback(args[0]):
        raise AssertionError(f"a test looks up {args[0]}")


sys.addaudithook(refuse_other_hosts)

for name in list(os.environ):
    if name.startswith("CRAWLER_") or name.lower() in {"http_proxy", "https_proxy", "all_proxy"}:
        del os.environ[name]
