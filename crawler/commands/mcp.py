"""``scrapy mcp``: offers the scrapers of an endpoint to language models, as tools of the Model Context Protocol."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import signal
import sys
from importlib.util import find_spec
from urllib.parse import urlsplit

from scrapy.exceptions import UsageError

from crawler.commands.serve import listen, url_of
from crawler.configuration.command import CheckedCommand
from crawler.configuration.setting_types import host_and_port
from crawler.logs import structure_everything

API_KEY = re.compile("[!-~]+")
"""Matches valid values of the header ``X-API-Key``. The HTTP client's errors, which language models can read, would
quote other values."""


class Command(CheckedCommand):
    """Offer the scrapers of an endpoint as tools to language models (MCP).

    Serves over standard input and output, until the input ends. Only JSON-RPC messages are written to standard output.
    The log is written to standard error. With --http, serves at /mcp of an address instead, until SIGTERM; each caller
    sends its own API key.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--url",
            type=endpoint_url,
            required=True,
            help="URL of a running endpoint. Without --http, its API key is read from the environment variable"
            " CRAWLER_MCP_API_KEY",
        )
        parser.add_argument("--http", type=address, metavar="HOST:PORT", help="address to serve at, instead of stdio")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        key = str(self.settings["MCP_API_KEY"] or "")
        if find_spec("mcp") is None:
            raise UsageError("scrapy mcp needs the MCP SDK: install the extra 'mcp'")
        if not opts.http and not key:
            raise UsageError("Set the environment variable CRAWLER_MCP_API_KEY to an API key of the endpoint")
        if not opts.http and not API_KEY.fullmatch(key):
            raise UsageError(
                "CRAWLER_MCP_API_KEY is not an API key: it has spaces, line breaks or non-ASCII characters"
            )
        structure_everything(self.settings)
        for noisy in ("httpx2", "mcp", "uvicorn"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        from crawler.service import mcp  # noqa: PLC0415  # needs the extra

        if not opts.http:
            # After SIGINT, a thread that waits for standard input would keep the process running until the next line.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            asyncio.run(mcp.serve_stdio(opts.url, key))
            return
        try:
            listener = listen(*opts.http)
        except OSError as error:
            self.fail(error)
            return
        for number in (signal.SIGINT, signal.SIGTERM):  # the library raises the signal again after it has ended
            signal.signal(number, lambda *_: sys.exit(0))
        print(f"listening on {url_of(listener)}/mcp", flush=True)
        asyncio.run(mcp.serve_http(opts.url, listener))


def address(text: str) -> tuple[str, int]:
    """Parse the address to serve at."""
    try:
        return host_and_port(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def endpoint_url(text: str) -> str:
    """Parse the URL of an endpoint. Error messages quote the URL, so it must not contain a password."""
    parts = urlsplit(text)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError("expected a URL without user name, password, query and fragment")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise argparse.ArgumentTypeError(f"expected a URL such as http://127.0.0.1:8000, not {text!r}")
    return text.rstrip("/")
