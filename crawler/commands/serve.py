"""``scrapy serve``: the on-demand endpoint."""

from __future__ import annotations

import argparse
import gc
import ipaddress
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scrapy.commands import ScrapyCommand
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import configure_logging
from scrapy.utils.project import data_path
from scrapy.utils.reactor import install_reactor
from twisted.internet.error import CannotListenError

from crawler.platforms import PUBLIC_ORIGINS

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawler.service.keys import Keys

REFUSED, BUSY = 2, 1

SETTLED = 1.0
"""Seconds after the start at which what stays for good has been loaded."""


def keys_file(settings: Settings) -> Path:
    """Where the API keys are."""
    return Path(settings["KEYS_FILE"] or data_path("keys.sqlite", createdir=True))


class Command(ScrapyCommand):
    """Serves until SIGTERM, then answers the calls in flight and ends. Exit 2 without keys, 1 on a busy port."""

    requires_project = True
    requires_crawler_process = False

    def short_desc(self) -> str:
        return "Serve the scrapers over HTTP"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port, 0 for any that is free (default 8000)")
        parser.add_argument(
            "--sandbox", action="store_true", help="serve the simulated platforms, with the key 'sandbox'"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from crawler.service.keys import KeyStore, SandboxKeys  # noqa: PLC0415  # only this command needs the service

        assert self.settings is not None
        keys: Keys
        if opts.sandbox:
            if not _is_loopback(opts.host):
                return self._refuse(f"--sandbox serves loopback addresses only, and {opts.host} is none.")
            keys = SandboxKeys()
        else:
            store = KeyStore(keys_file(self.settings))
            if store.empty:
                return self._refuse(
                    "There are no API keys. Create one with: scrapy keys create CLIENT (or try --sandbox)."
                )
            keys = store
        configure_logging(self.settings)
        # One line a download, and one a crawler's part: the calls have their own line.
        for noisy in ("scrapy", "scrapy_poet"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        return self._serve(opts, keys)

    def _serve(self, opts: argparse.Namespace, keys: Keys) -> None:
        install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor", "uvloop.Loop")
        from twisted.internet import reactor as _reactor  # noqa: PLC0415  # importing it installs the default one

        from crawler.service.open_crawlers import OpenCrawlers  # noqa: PLC0415  # likewise
        from crawler.service.resources import make_site  # noqa: PLC0415  # likewise

        reactor = cast("Any", _reactor)
        assert self.settings is not None
        if opts.sandbox:
            _use_sandbox(self.settings)
        crawlers = OpenCrawlers(self.settings)
        try:
            port = reactor.listenTCP(opts.port, make_site(crawlers, keys), interface=opts.host)
        except CannotListenError as error:
            return self._refuse(f"Cannot listen on {opts.host}:{opts.port}: {error.socketError}.", BUSY)
        host = f"[{opts.host}]" if ":" in opts.host else opts.host

        def started() -> None:
            crawlers.open()
            print(f"listening on http://{host}:{port.getHost().port}", flush=True)
            reactor.callLater(SETTLED, spare_collector)

        reactor.callWhenRunning(started)
        reactor.addSystemEventTrigger("before", "shutdown", lambda: deferred_from_coro(crawlers.drain()))
        reactor.run()
        return None

    def _refuse(self, why: str, code: int = REFUSED) -> None:
        print(why, file=sys.stderr)
        self.exitcode = code


def spare_collector() -> None:
    """Takes what the process keeps for good out of the garbage collector's rounds, and makes them rarer.

    A call makes thousands of objects, nearly all freed by their reference counts; looking at all modules and schemas
    again and again for the rest was a fifth of a call's processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def _use_sandbox(settings: Settings) -> None:
    from crawler.sandbox.server import Sandbox  # noqa: PLC0415  # only with --sandbox, and it needs the reactor

    settings.set("PLATFORM_ORIGINS", Sandbox().start(), priority="cmdline")
    free = {name: {"concurrency": 16, "delay": 0.0} for name in PUBLIC_ORIGINS}
    settings.set("PLATFORM_BUDGETS", free, priority="cmdline")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
