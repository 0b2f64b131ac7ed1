"""A fake DNS resolver that can fail, which the services under test find through ``PYTHONPATH``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

FAILS = "NAMES_FAIL"
"""The environment variable with the path of a file. While the file exists, no name can be resolved."""


@implementer(IHostnameResolver)
class Names:
    """A Scrapy extension that resolves every name to 127.0.0.1, or fails."""

    @classmethod
    def from_crawler(cls, _crawler: Crawler) -> Names:
        names = cls()
        cast("Any", reactor).installNameResolver(names)
        return names

    def resolveHostName(  # noqa: N802  # Twisted's
        self,
        resolutionReceiver: Any,  # noqa: N803  # as above
        hostName: str,  # noqa: N803  # as above
        portNumber: int = 0,  # noqa: N803  # as above
        addressTypes: object = None,  # noqa: N803  # as above
        transportSemantics: str = "TCP",  # noqa: N803  # as above
    ) -> Any:
        resolutionReceiver.resolutionBegan(self)
        if not Path(os.environ[FAILS]).exists():
            resolutionReceiver.addressResolved(IPv4Address("TCP", "127.0.0.1", portNumber))
        resolutionReceiver.resolutionComplete()
        return self
