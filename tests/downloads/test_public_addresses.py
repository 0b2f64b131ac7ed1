"""The private addresses that ``WEBHOOK_PRIVATE`` allows. ``tests/browser/test_proxy.py`` tests public ones."""

from __future__ import annotations

import pytest

from crawler.downloads.public_addresses import is_private


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        *((each, True) for each in ("127.0.0.1", "::1", "10.1.2.3", "172.17.0.1", "192.168.0.1", "fd00::1")),
        *((each, True) for each in ("::ffff:10.0.0.1", "fc00::1%eth0")),
        *((each, False) for each in ("169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "168.63.129.16")),
        *((each, False) for each in ("0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1", "1.1.1.1")),
    ],
)
def test_private_addresses(address: str, expected: bool) -> None:  # noqa: FBT001  # a case
    assert is_private(address) is expected
