"""Several processes behind one port: the first one accepts connections and deals them out in turn.

The kernel would deal unevenly: with ``SO_REUSEPORT`` by a hash, on a socket that all listen on to whoever wakes first,
and a client's connection stays with the process that has it. The first process runs no reactor and no crawler, so that
there is little that could break it; a worker that ends, however, is replaced.
"""

from __future__ import annotations

import multiprocessing
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorSocket
    from twisted.web.server import Site

logger = structlog.get_logger(__name__)

READY = b"r"
"""What a worker says when it takes connections."""
CONNECTION = b"c"
"""What comes with each connection: the message that carries it must not be empty."""

RESTART_PAUSE = 1.0
"""Seconds between a worker's end and the start of the one in its place, so that one that cannot start costs little."""

Serve = Callable[[socket.socket], None]
"""What a worker runs until it is told to end, with its channel to the first process."""


@dataclass(eq=False)
class Worker:
    """A process that serves, and this end of its channel."""

    number: int
    process: BaseProcess
    channel: socket.socket
    told: bool = False
    """Whether it has been told to end."""


class Supervisor:
    """Keeps ``size`` workers, and hands them the connections of one listening socket.

    ``announce`` is called once, when the first of them is ready; ``buried`` with the id of each that has ended.
    """

    def __init__(
        self,
        listener: socket.socket,
        size: int,
        serve: Serve,
        announce: Callable[[], None],
        buried: Callable[[int], None],
    ) -> None:
        self.listener = listener
        self.size = size
        self.serve = serve
        self.announce = announce
        self.buried = buried
        self.stopping = False
        self._announced = False
        self._processes = multiprocessing.get_context("fork")  # shares what is loaded; no thread runs here
        self._selector = selectors.DefaultSelector()
        self._ready: deque[Worker] = deque()
        self._workers: list[Worker] = []
        self._due: list[tuple[float, int]] = []
        """When a worker is to be started again, and its number."""

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT, then until the last worker has answered its calls in flight."""
        self.listener.settimeout(0)
        woken, wake = socket.socketpair()
        woken.settimeout(0)
        wake.settimeout(0)
        signal.set_wakeup_fd(wake.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._selector.register(woken, selectors.EVENT_READ, lambda: woken.recv(4096))
        self._due = [(0.0, number) for number in range(self.size)]
        while self._workers or not self.stopping:
            if self.stopping:
                self._tell()
            else:
                self._start_those_due()
            due = min((when for when, _ in self._due), default=None)
            for key, _ in self._selector.select(None if due is None else max(0.0, due - time.monotonic())):
                key.data()

    def _stop(self, _number: int, _frame: object) -> None:
        self.stopping = True

    def _tell(self) -> None:
        """Tells the workers to end; also one that was just being started."""
        self._due.clear()
        for worker in self._workers:
            if not worker.told:
                worker.told = True
                worker.process.terminate()

    def _start(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        process = self._processes.Process(target=self._work, args=(number, theirs, ours), name=f"worker-{number}")
        process.start()
        theirs.close()
        ours.settimeout(0)
        worker = Worker(number, process, ours)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._heard(worker))

    def _work(self, number: int, channel: socket.socket, others_end: socket.socket) -> None:
        """A worker's life, in its own process."""
        structlog.contextvars.bind_contextvars(worker=number)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the first process passes it on
        self._selector.close()
        for worker in self._workers:
            worker.channel.close()
        others_end.close()
        self.listener.close()
        self.serve(channel)

    def _start_those_due(self) -> None:
        now = time.monotonic()
        for due, number in [each for each in self._due if each[0] <= now]:
            self._due.remove((due, number))
            self._start(number)

    def _heard(self, worker: Worker) -> None:
        """A worker is ready, or has ended."""
        try:
            said = worker.channel.recv(16)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if said:
            if not self._ready:
                self._selector.register(self.listener, selectors.EVENT_READ, self._accept)
            self._ready.append(worker)
            if not self._announced:
                self._announced = True
                self.announce()
            return
        self._bury(worker)

    def _bury(self, worker: Worker) -> None:
        self._selector.unregister(worker.channel)
        worker.channel.close()
        worker.process.join()
        assert worker.process.pid is not None
        self.buried(worker.process.pid)
        self._workers.remove(worker)
        if worker in self._ready:
            self._ready.remove(worker)
            if not self._ready:  # what comes in now waits in the kernel's line
                self._selector.unregister(self.listener)
        if not self.stopping:
            logger.error("worker_died", worker=worker.number, exitcode=worker.process.exitcode)
            self._due.append((time.monotonic() + RESTART_PAUSE, worker.number))

    def _accept(self) -> None:
        """Takes what came in since, and deals it out."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except (BlockingIOError, ConnectionError):
                return
            with connection:
                self._deal(connection)

    def _deal(self, connection: socket.socket) -> None:
        for _ in range(len(self._ready)):
            worker = self._ready[0]
            self._ready.rotate(-1)
            try:
                socket.send_fds(worker.channel, [CONNECTION], [connection.fileno()])
            except OSError:  # it is dying, or has more than it can take: the next one
                continue
            return


class Dealt:
    """A worker's side: makes the connections that it is dealt its own."""

    def __init__(self, channel: socket.socket, reactor: IReactorSocket, site: Site) -> None:
        self.channel = channel
        self.reactor: Any = reactor
        self.site = site
        channel.settimeout(0)

    def open(self) -> None:
        """Says that this worker is ready, and takes connections from now on."""
        self.site.doStart()
        self.reactor.addReader(self)
        self.channel.send(READY)

    def fileno(self) -> int:
        """For the reactor."""
        return self.channel.fileno()

    def logPrefix(self) -> str:
        """For the reactor."""
        return "dealt"

    def connectionLost(self, reason: object) -> None:
        """For the reactor."""

    def doRead(self) -> None:
        """Takes what has been dealt since. The first process' end is this one's, too."""
        try:
            said, handles, _, _ = socket.recv_fds(self.channel, 1, 1)
        except BlockingIOError:
            return
        if not said:
            self.reactor.removeReader(self)
            self.reactor.stop()
            return
        for handle in handles:
            with socket.socket(fileno=handle) as connection:  # the reactor keeps a copy of its own
                self.reactor.adoptStreamConnection(connection.fileno(), connection.family, self.site)
