"""What holds for all tests: no traffic beyond this machine, and none of the developer's own settings."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import hypothesis
import pytest
import redis

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


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis of our own."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs redis-server on PATH (Debian: apt-get install redis-server)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = str(tmp_path_factory.mktemp("redis"))
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    with subprocess.Popen([program, *options], stdout=subprocess.DEVNULL) as server:
        client = redis.Redis(port=port)
        deadline = time.monotonic() + 10
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "redis-server does not start"
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}"
        server.terminate()


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """The URL of an empty Redis."""
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
    return redis_server
