"""``scrapy mcp``: offers the scrapers of an endpoint to language models, as tools of the Model Context Protocol."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import signal
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.exceptions import UsageError
from scrapy.utils.defer import deferred_from_coro

from crawler.commands.exit_codes import RUN_FAILED
from crawler.commands.serve import check_components, use_sandbox
from crawler.configuration.command import CheckedCommand
from crawler.logs import structure_everything
from crawler.runtime.event_loop import installed_reactor

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from crawler.mcp.endpoint import EndpointClient


API_KEY = re.compile("[!-~]+")
"""Matches valid values of the header ``X-API-Key``. The HTTP client's errors, which language models can read, would
quote other values."""


class Command(CheckedCommand):
    """Offer the scrapers as tools to language models (MCP).

    Serves over standard input and output, until the input ends. Only JSON-RPC messages are written to standard output.
    The log is written to standard error.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        choice = parser.add_mutually_exclusive_group(required=True)
        choice.add_argument(
            "--url",
            type=endpoint_url,
            help="URL of a running endpoint; its API key is read from the environment variable CRAWLER_MCP_API_KEY",
        )
        choice.add_argument("--sandbox", action="store_true", help="start an endpoint with the simulated platforms")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if find_spec("mcp") is None:
            raise UsageError("scrapy mcp needs the MCP SDK: install the extra 'mcp'")
        if opts.url and not self.settings["MCP_API_KEY"]:
            raise UsageError("Set the environment variable CRAWLER_MCP_API_KEY to an API key of the endpoint")
        if opts.url and not API_KEY.fullmatch(str(self.settings["MCP_API_KEY"])):
            raise UsageError(
                "CRAWLER_MCP_API_KEY is not an API key: it has spaces, line breaks or non-ASCII characters"
            )
        if opts.sandbox:
            check_components(self.settings)
        structure_everything(self.settings)
        for noisy in ("httpx2", "mcp", "scrapy", "scrapy_poet"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        # After SIGINT, a thread that waits for standard input would keep the process running until the next line.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if opts.sandbox:
            self._serve_sandbox()
        else:
            from crawler.mcp.endpoint import EndpointClient  # noqa: PLC0415  # needs the extra

            asyncio.run(_serve(EndpointClient(opts.url, str(self.settings["MCP_API_KEY"]))))

    def _serve_sandbox(self) -> None:
        """Serve the tools and their endpoint in one process, so that the endpoint cannot outlive the tools."""
        reactor = installed_reactor()
        from crawler.mcp.endpoint import EndpointClient  # noqa: PLC0415  # needs the extra
        from crawler.service.clients.keys import sandbox_keys  # noqa: PLC0415  # only with --sandbox
        from crawler.service.endpoint import Endpoint  # noqa: PLC0415  # only with --sandbox, after the reactor

        use_sandbox(self.settings)
        endpoint = Endpoint(self.settings, sandbox_keys())
        port = reactor.listenTCP(0, endpoint.site, interface="127.0.0.1").getHost().port

        async def work() -> None:
            try:
                endpoint.open()
                await _serve(EndpointClient(f"http://127.0.0.1:{port}", "sandbox", trust_env=False))
            finally:
                await endpoint.drain()

        def failed(failure: Failure) -> None:
            logging.getLogger(__name__).error("mcp_failed", exc_info=failure.value)
            self.exitcode = RUN_FAILED

        def start() -> None:
            deferred_from_coro(work()).addErrback(failed).addBoth(lambda _: reactor.stop())

        reactor.callWhenRunning(start)
        reactor.run(installSignalHandlers=False)


async def _serve(client: EndpointClient) -> None:
    from crawler.mcp.server import serve  # noqa: PLC0415  # needs the extra

    await serve(client)


def endpoint_url(text: str) -> str:
    """Parse the URL of an endpoint. Error messages quote the URL, so it must not contain a password."""
    parts = urlsplit(text)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError("expected a URL without user name, password, query and fragment")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise argparse.ArgumentTypeError(f"expected a URL such as http://127.0.0.1:8000, not {text!r}")
    return text.rstrip("/")
