"""``scrapy serve``: runs the HTTP endpoint."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import os
import socket
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError
from scrapy.utils.conf import closest_scrapy_cfg
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.log import configure_logging
from twisted.internet.defer import maybeDeferred

from crawler.components import load_components
from crawler.configuration.command import CheckedCommand, at_least_one
from crawler.configuration.setting_types import host_and_port
from crawler.jobs import prepare, store_location
from crawler.logs import structure_everything
from crawler.platforms import platforms
from crawler.registry import spiders
from crawler.runtime import tune_garbage_collector
from crawler.service.keys import KeyRing, Keys, KeyStore, configured_keys
from crawler.service.workers import installed_reactor
from crawler.storage.files import data_file

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawler.service.responses import StaticContent


CONSOLE = "crawler.service.console"

BACKLOG = 4_096
"""Maximum number of connections that wait in the kernel until the process accepts them."""

STARTUP_SECONDS = 1.0
"""Seconds after the start at which the garbage collector is tuned, because all modules and schemas are loaded then."""


def keys_file(settings: Settings) -> Path:
    """Return the path of the file with the API keys."""
    return Path(settings["KEYS_FILE"] or data_file("keys.sqlite", instead="the setting KEYS_FILE"))


def client_keys(settings: Settings) -> Keys:
    """Return the API keys in the setting ``API_KEYS``, or those in the file of keys, which may be missing.

    Raises:
        UsageError: the setting is not valid.
    """
    try:
        if configured := settings.getdict("API_KEYS"):
            return configured_keys(configured)
    except (TypeError, ValueError) as error:
        raise UsageError(f"API_KEYS: expected the output of 'scrapy keys export'; {error}.") from None
    return KeyRing(KeyStore(keys_file(settings)))


def sandbox_keys(settings: Settings) -> Keys:
    """Return the key of the sandbox, and the API keys of clients. Outside of a project's folder, these need a setting.

    Raises:
        UsageError: the setting ``API_KEYS`` is not valid.
    """
    may_have_keys = settings["API_KEYS"] or settings["KEYS_FILE"] or closest_scrapy_cfg()
    keys = client_keys(settings) if may_have_keys else Keys({})
    keys.accepts_sandbox = True
    return keys


def valid_keys(settings: Settings) -> Keys:
    """Return the API keys, of which one is valid.

    Raises:
        UsageError: no key is valid, or the keys cannot be read.
    """
    keys = client_keys(settings)
    if isinstance(keys, KeyRing):
        try:
            known = keys.store.all()
        except sqlite3.Error as error:
            raise UsageError(f"Cannot read the API keys in {keys.store.path}: {error}.") from error
        if all(key.revoked is not None for key in known):
            raise UsageError("No API key is valid. Create one with: scrapy keys create CLIENT (or try --sandbox).")
    return keys


@dataclass(frozen=True)
class Listeners:
    """The listening sockets of the public port and, if there is one, of the internal port."""

    public: socket.socket
    internal: socket.socket | None

    def close(self) -> None:
        """Leave the ports to the reactor, which has descriptors of its own."""
        self.public.close()
        if self.internal:
            self.internal.close()


class Command(CheckedCommand):
    """Serve the scrapers over HTTP.

    Serves until SIGTERM, and then completes the calls in flight. Exit codes: 1 if it cannot listen on a port, 2 if no
    API key is valid, --sandbox is used with a public host, or a setting is invalid.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=port, default=8000, help="port, 0 for any free port (default 8000)")
        parser.add_argument(
            "--workers", type=at_least_one, default=1, metavar="N", help="number of worker processes (default 1)"
        )
        parser.add_argument(
            "--sandbox", action="store_true", help="serve the simulated platforms, also to the API key 'sandbox'"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        check_components(self.settings)
        keys = sandbox_keys(self.settings) if opts.sandbox else valid_keys(self.settings)
        address = self.settings["SERVICE_INTERNAL_ADDRESS"]
        internal = host_and_port(address) if address else None
        hosts = [opts.host, internal[0]] if internal else [opts.host]
        if opts.sandbox and (public := [host for host in hosts if not _is_loopback(host)]):
            raise UsageError(f"--sandbox serves loopback addresses only, not {public[0]}. Use --host 127.0.0.1.")
        location = sandbox_store(self.settings) if self._is_sandbox(opts) else store_location(self.settings)
        prepare(location)
        try:
            listener = listen(opts.host, opts.port)
            internal_listener = listen(*internal) if internal else None
        except OSError as error:
            self.fail(error)
            return
        self._configure(opts, location)
        self._serve(Listeners(listener, internal_listener), keys, opts)

    def _is_sandbox(self, opts: argparse.Namespace) -> bool:
        """Whether the platforms are simulated, by ``--sandbox`` or by the setting ``SANDBOX``.

        Only ``--sandbox`` also accepts the API key ``sandbox``.
        """
        return bool(opts.sandbox) or self.settings.getbool("SANDBOX")

    def _configure(self, opts: argparse.Namespace, location: str) -> None:
        self.settings.set("PROCESSES", self.settings.getint("PROCESSES") * opts.workers, priority="cmdline")
        if opts.workers > 1 or "://" in location:  # other hosts may use the same database
            self.settings.set("SHARED_LIMITS", value=True, priority="cmdline")
        self.settings.set("LOG_INSTALL_ROOT_HANDLER", value=False, priority="cmdline")
        configure_logging(self.settings)
        structure_everything(self.settings)
        # Scrapy and scrapy-poet log every download and component, but the service logs one line per call.
        for noisy in ("scrapy", "scrapy_poet"):
            logging.getLogger(noisy).setLevel(logging.WARNING)

    def _serve(self, listeners: Listeners, keys: Keys, opts: argparse.Namespace) -> None:
        def announce() -> None:
            print(f"listening on {url_of(listeners.public)}", flush=True)
            if listeners.internal:
                print(f"listening on {url_of(listeners.internal)} (internal)", flush=True)

        if opts.workers == 1:
            self._work(keys, opts, listeners, announce=announce)
            return
        with TemporaryDirectory(prefix="crawler-metrics-") as folder:
            # The workers share their metrics in this folder. Set the variable before prometheus_client is imported.
            os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", folder)
            from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415

            from crawler.service.workers import Supervisor  # noqa: PLC0415  # most commands do not need the service

            load_before_fork(self.settings)
            work = partial(self._work, keys, opts, listeners)
            Supervisor(listeners.public, opts.workers, work, announce, mark_process_dead).run()

    def _work(
        self,
        keys: Keys,
        opts: argparse.Namespace,
        listeners: Listeners,
        channel: socket.socket | None = None,
        announce: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve in this process: accept connections, or receive the connections of the public port from the supervisor.

        All workers accept the few connections of the internal port.
        """
        reactor = installed_reactor()
        from crawler.service.endpoint import Endpoint  # noqa: PLC0415  # needs the reactor
        from crawler.service.workers import PassedConnections  # noqa: PLC0415  # needs the reactor
        from crawler.storage.files import own_temporary_files  # noqa: PLC0415  # not on Windows

        if self._is_sandbox(opts):
            use_sandbox(self.settings)
        pages = console_pages(self.settings, opts)
        endpoint = Endpoint(self.settings, keys, pages)

        ports: list[Any] = []

        def started() -> None:
            endpoint.open()
            if channel:
                ports.append(PassedConnections(channel, reactor, endpoint.site))
            else:
                public = listeners.public
                ports.append(reactor.adoptStreamPort(public.fileno(), public.family, endpoint.site))
            if listeners.internal:
                reactor.adoptStreamPort(listeners.internal.fileno(), listeners.internal.family, endpoint.internal_site)
            announce()
            listeners.close()
            reactor.callLater(STARTUP_SECONDS, tune_garbage_collector)

        async def stop_listening() -> None:
            for each in ports:
                await maybe_deferred_to_future(maybeDeferred(each.stopListening))

        reactor.callWhenRunning(started)
        reactor.addSystemEventTrigger("before", "shutdown", lambda: deferred_from_coro(endpoint.drain(stop_listening)))
        with own_temporary_files():
            reactor.run()


def load_before_fork(settings: Settings) -> None:
    """Import the modules of the workers in the supervisor, so that the workers share the modules' memory.

    Memory is shared until a worker writes to it. A garbage collection writes to every object that is not frozen, so
    the objects are frozen. The components of all spiders are imported, too: a library that each worker imports by
    itself is in memory several times. The imported modules must not import the reactor or start a thread, which do not
    survive a fork.
    """
    from crawler.service.endpoint import prepare_documents  # noqa: PLC0415  # most commands do not need the service

    for spider in spiders().values():
        of_spider = settings.copy()
        spider.update_settings(of_spider)
        load_components(of_spider)
    prepare_documents((settings["SERVICE_URL"] or "").rstrip("/"))
    tune_garbage_collector()


def port(text: str) -> int:
    """Parse the number of a port."""
    number = int(text)
    if not 0 <= number < 2**16:
        raise argparse.ArgumentTypeError(f"{number} is not a port: expected 0 to 65535")
    return number


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Raises:
        OSError: the address is in use or not of this machine. The message names it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(f"Cannot listen on {host}:{port}: {error.strerror or error}.") from error


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, number = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{number}"


def console_pages(settings: Settings, opts: argparse.Namespace) -> Mapping[str, StaticContent]:
    """Return the pages of the console, by path; none if the setting ``CONSOLE`` is off.

    The console is optional: without its package, the service has no console.
    """
    is_on = settings["CONSOLE"]
    if is_on == "auto":
        is_on = _is_loopback(opts.host) and not settings["SERVICE_URL"]
    if not is_on or find_spec(CONSOLE) is None:
        return {}
    pages: Mapping[str, StaticContent] = import_module(CONSOLE).pages(sandbox=opts.sandbox)
    return pages


def check_components(settings: Settings) -> None:
    """Check the settings of all spiders. If the endpoint's crawlers checked them, an error would only be logged.

    Raises:
        UsageError: the settings disable an essential component, or ``ADDONS`` lacks the add-on.
    """
    for spider in spiders().values():
        spider.update_settings(settings.copy())


def sandbox_store(settings: Settings) -> str:
    """Return the store of the simulated platforms: the setting ``STORE``, or a separate store."""
    if settings["STORE"]:
        return store_location(settings)
    return str(data_file("sandbox/store.sqlite3", instead="the setting STORE"))


def use_sandbox(settings: Settings) -> None:
    """Start the simulated platforms, and change the settings to use them.

    The changed settings are the origins, the egresses and the key of Zyte API (none, so that all requests stay on this
    machine), the store, the budgets (without delays, unless ``PLATFORM_BUDGETS`` has others), and the pause between
    scrolls (none).
    """
    from crawler.sandbox.server import Sandbox  # noqa: PLC0415  # only with --sandbox, and it needs the reactor

    origins = Sandbox(renames=settings.getdict("SANDBOX_RENAMES")).start() | settings.getdict("PLATFORM_ORIGINS")
    if missing := platforms().keys() - origins.keys():
        raise UsageError(f"--sandbox simulates no {min(missing)}: add a local server for it to PLATFORM_ORIGINS.")
    settings.set("PLATFORM_ORIGINS", origins, priority="cmdline")
    settings.set("EGRESSES", [], priority="cmdline")
    settings.set("ZYTE_API_KEY", None, priority="cmdline")
    settings.set("STORE", sandbox_store(settings), priority="cmdline")
    budgets = {name: {"concurrency": 16, "delay": 0.0, "sources": {}} for name in platforms()}
    settings.set("PLATFORM_BUDGETS", budgets | settings.getdict("PLATFORM_BUDGETS"), priority="cmdline")
    settings.set("BROWSER_SCROLL_PAUSE", 0, priority="cmdline")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
