"""Several worker processes on one port, and their event loop.

A supervisor accepts connections and passes them to the workers in turn. The kernel would distribute connections
unevenly: ``SO_REUSEPORT`` selects a worker by a hash, and with a shared listening socket the first worker that wakes up
gets the connection. An uneven distribution would matter, because connections are long-lived and stay with their worker.
The supervisor is simple (no reactor, no crawlers), so that it rarely fails. The supervisor also replaces workers that
exit.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import select
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, TypeVarTuple

import structlog
import uvloop
from scrapy.utils.reactor import install_reactor

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike
    from twisted.web.server import Site


logger = structlog.get_logger(__name__)

READY = b"r"
"""A worker sends this byte to the supervisor when it is ready for connections."""
CONNECTION = b"c"
"""The supervisor sends this byte with each connection, because a message with a file descriptor needs a payload."""
RESTART_DELAY = 1.0
"""Seconds to wait before a worker is replaced, so that a worker that always fails to start does not keep the CPU busy.
"""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(eq=False)
class Worker:
    """A worker process, and the supervisor's end of the socket pair that connects the two."""

    number: int
    process: BaseProcess
    channel: socket.socket


class Supervisor:
    """Keeps ``size`` workers running and passes the connections of ``listener`` to them.

    Each worker process calls ``serve`` with its end of the channel. The supervisor calls ``announce`` once, when the
    first worker is ready, and ``on_exit`` with the process id of each worker that has exited.
    """

    def __init__(
        self,
        listener: socket.socket,
        size: int,
        serve: Callable[[socket.socket], None],
        announce: Callable[[], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self.listener = listener
        self.size = size
        self.serve = serve
        self.announce: Callable[[], None] | None = announce
        self.on_exit = on_exit
        self.terminating = False
        # A fork shares the loaded modules. Forking is safe, because this process has no other thread.
        self._processes = multiprocessing.get_context("fork")
        self._selector = selectors.DefaultSelector()
        self._workers: list[Worker] = []
        self._ready: deque[Worker] = deque()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Return when all workers have completed their calls in flight and exited."""
        self.listener.settimeout(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for each in SIGNALS:
            signal.signal(each, self._terminate_all)
        for number in range(self.size):
            self._start(number)
        while self._workers:
            # Signals are handled only here, never while a worker is being started.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            events = self._selector.select()
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            for key, _ in events:
                key.data()

    def _terminate_all(self, _signal: int, _frame: object) -> None:
        if not self.terminating:
            self.terminating = True
            for worker in self._workers:
                worker.process.terminate()

    def _start(self, number: int, delay: float = 0.0) -> None:
        channel, worker_end = socket.socketpair()
        process = self._processes.Process(
            target=self._work, args=(number, worker_end, channel, delay), name=f"worker-{number}"
        )
        process.start()
        worker_end.close()
        channel.settimeout(0)
        worker = Worker(number, process, channel)
        self._workers.append(worker)
        self._selector.register(channel, selectors.EVENT_READ, lambda: self._read(worker))

    def _work(self, number: int, channel: socket.socket, supervisor_end: socket.socket, delay: float) -> None:
        """Run in a new worker process: release the inherited resources of the supervisor, and serve."""
        structlog.contextvars.bind_contextvars(worker=number)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # A terminal sends SIGINT to all processes. The supervisor then terminates the workers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self._selector.close()
        for inherited in (self.listener, supervisor_end, *(worker.channel for worker in self._workers)):
            inherited.close()
        time.sleep(delay)
        self.serve(channel)

    def _read(self, worker: Worker) -> None:
        """Read the channel of a worker that has become ready or has exited."""
        try:
            ready = worker.channel.recv(1)
        except ConnectionError:
            ready = b""
        if not ready:
            self._remove(worker)
            return
        if not self._ready:
            self._selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self._ready.append(worker)
        if self.announce:
            self.announce()
            self.announce = None

    def _remove(self, worker: Worker) -> None:
        self._selector.unregister(worker.channel)
        worker.channel.close()
        worker.process.join()
        assert worker.process.pid is not None
        self.on_exit(worker.process.pid)
        self._workers.remove(worker)
        self._retire(worker)
        if not self.terminating:
            logger.error("worker_exited", worker=worker.number, exitcode=worker.process.exitcode)
            self._start(worker.number, RESTART_DELAY)

    def _retire(self, worker: Worker) -> None:
        """Pass no further connections to a worker."""
        if worker not in self._ready:
            return
        self._ready.remove(worker)
        if not self._ready:
            self._selector.unregister(self.listener)  # connections wait in the kernel's backlog
            if self.terminating:
                self.listener.close()

    def _accept(self) -> None:
        """Accept one connection and pass it to the next worker that can receive it."""
        try:
            connection, _ = self.listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        with connection:
            for worker in tuple(self._ready):
                self._ready.rotate(-1)
                try:
                    socket.send_fds(worker.channel, [CONNECTION], [connection.fileno()])
                except BlockingIOError:  # its channel is full
                    continue
                except OSError:  # it is exiting
                    self._retire(worker)
                    continue
                return


class PassedConnections:
    """The port of a worker: serves the connections that the supervisor passes to it.

    Stops the reactor when the supervisor exits.
    """

    def __init__(self, channel: socket.socket, reactor: Any, site: Site) -> None:
        self._channel = channel
        self._reactor = reactor
        self._site = site
        self._loop = asyncio.get_event_loop()
        channel.settimeout(0)
        site.doStart()
        self._loop.add_reader(channel, self._read)
        with suppress(BrokenPipeError):  # the supervisor has exited: _read() stops the reactor
            channel.send(READY)

    def stopListening(self) -> None:  # noqa: N802  # as in Twisted's ports
        """Let the supervisor pass further connections to other workers. Serve those that it has passed before."""
        self._loop.remove_reader(self._channel)
        self._channel.shutdown(socket.SHUT_RD)
        while self._serve():
            pass

    def _read(self) -> None:
        if not self._serve():
            self._loop.remove_reader(self._channel)
            self._reactor.stop()

    def _serve(self) -> bool:
        """Serve the next connection. Return False if there are no further ones."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
        except ConnectionResetError:  # the supervisor was killed before it read READY
            return False
        for descriptor in descriptors:
            # The reactor duplicates the descriptor. It raises an OSError if the client has reset the connection.
            with socket.socket(fileno=descriptor) as connection, suppress(OSError):
                self._reactor.adoptStreamConnection(connection.fileno(), connection.family, self._site)
        return bool(message)


Ts = TypeVarTuple("Ts")

LOOP = "crawler.service.workers.Loop"
"""The import path of ``Loop``, for Scrapy's setting ``ASYNCIO_EVENT_LOOP``."""


class Loop(uvloop.Loop):
    """uvloop's event loop, except that the reader of a reset connection is called until it is removed.

    When a peer resets a connection, libuv stops watching the socket, and uvloop calls its reader only once more
    (https://github.com/MagicStack/uvloop/issues/552). If data arrived before the reset, this call reads a part of the
    data. Twisted would never read the rest, and would never notice the reset: the connection would stay open for good,
    and the next write would raise ``RuntimeError``. asyncio's own loop calls a reader until it is removed, but with
    that loop the endpoint serves about a fifth fewer calls.

    Writers need no such change: uvloop calls them once after the reset, and their next write raises the error.
    """

    def add_reader(self, fd: FileDescriptorLike, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        """See asyncio's ``add_reader``."""
        super().add_reader(fd, self._read, fd, callback, args)

    def _read(self, fd: FileDescriptorLike, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        poll = select.poll()
        poll.register(fd, 0)  # poll() reports errors even if no event is requested
        found = poll.poll(0)
        if found and found[0][1] & select.POLLERR:  # such as a reset, which a read raises once all data is read
            # uvloop stops watching the descriptor after this call. A newly added reader is called again.
            self.remove_reader(fd)
            self.add_reader(fd, callback, *args)
        callback(*args)


def installed_reactor() -> Any:
    """Install Twisted's asyncio reactor on ``Loop``, and return it, for commands without a crawler process."""
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor", LOOP)
    from twisted.internet import reactor  # noqa: PLC0415  # its import would install the default reactor earlier

    return reactor
