"""The state of the limits on requests and calls, in *facts*: next starts, taken slots, open breakers, refusals, rates.

A *decision* is a function that reads and changes one fact. It also gets the current time, and the number of processes
that divide the limit. The same decisions are used for the facts of one process and for facts that processes share in
the store of jobs (``crawler/jobs/shared_facts.py``). All times in facts are those of ``Facts.now()``. A decision
returns no time, only a delay.
"""

from __future__ import annotations

import math
import os
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from crawler.storage.files import create_file

MAX_FACTS = 100_000
"""Maximum number of facts of each kind in memory, such as refused targets. Beyond it, the oldest fact is dropped."""


def process_name() -> str:
    """Return a name that is unique to this process, also among earlier processes of a restarted pod."""
    return f"{socket.gethostname()}-{os.getpid()}-{time.time():.0f}-{secrets.token_hex(4)}"


class Fact(msgspec.Struct, omit_defaults=True):
    """The state of one limit."""

    kind: ClassVar[str]

    def ends(self) -> float:
        """Return the time from which the fact has no effect and can be deleted."""
        raise NotImplementedError

    def leave_others(self, owner: str) -> None:
        """Remove what other processes have recorded, because the store is unavailable. ``owner``: this process."""


F = TypeVar("F", bound=Fact)
T = TypeVar("T")

Decision = Callable[[F, float, int], T]
"""Reads and changes a fact. It may be called again with another copy of the fact.

Arguments: the fact, the current time, and the number of processes that divide the limit among them.
"""
Withdraw = Callable[[], bool]
"""Withdraws a decision. Returns False if it is too late, because the decision is made or being made."""


def _made() -> bool:
    return False


class Facts:
    """The facts of this process alone. Each of ``processes`` such processes has an equal share of the limits."""

    shared = False
    """Whether other processes share the facts."""

    def __init__(self, processes: int = 1, folder: Path | None = None) -> None:
        """``folder``: where times of ``keep`` are kept. None: nowhere."""
        self.processes = processes
        """Number of processes that currently divide the limits among them."""
        self.owner = process_name()
        """The name of this process as an owner of slots."""
        self._facts: defaultdict[type[Fact], dict[str, Any]] = defaultdict(dict)
        self._folder = folder

    def now(self) -> float:
        """Return the current time in seconds, by the clock that all facts use."""
        return time.monotonic()

    def known(self, kind: type[F], name: str) -> F:
        """Return this process's copy of a fact, which is created if the process has none.

        Later decisions change this object, and later calls return it, unless it is dropped (``MAX_FACTS``).
        """
        facts = self._facts[kind]
        if name not in facts:
            if len(facts) >= MAX_FACTS:
                del facts[next(iter(facts))]
            facts[name] = kind()
        found: F = facts[name]
        return found

    def find(self, kind: type[F], name: str) -> F | None:
        """Return this process's copy of a fact, or None if it has none."""
        return self._facts[kind].get(name)

    async def look_up(self, kind: type[F], name: str) -> F | None:
        """Return a fact that any process has recorded, or None."""
        return self.find(kind, name)

    async def refresh(self, kind: type[Fact], name: str) -> bool:  # overridden where facts are shared
        """Update this process's copies of all facts of this kind whose names have the same part before the first colon.

        Return whether any process has used the fact with this name.
        """
        return True

    def keep(self, name: str, at: float) -> None:
        """Keep a time for later processes, as the time of modification of a file. Facts in the store need no file."""
        if self._folder is not None:
            path, seconds = self._path(name), time.time() + at - self.now()
            with suppress(OSError):
                create_file(path)
                os.utime(path, (seconds, seconds))

    def kept(self, name: str) -> float:
        """Return the time that this or an earlier process kept last, ``-inf`` if there is none."""
        with suppress(OSError):
            if self._folder is not None:
                return self.now() + self._path(name).stat().st_mtime - time.time()
        return -math.inf

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / name.replace(":", ".")

    async def change(self, kind: type[F], name: str, decision: Decision[F, T]) -> T:
        """Make a decision about a fact. Return the decision's result."""
        fact = self._facts[kind].get(name) or self.known(kind, name)
        return decision(fact, self.now(), self.processes)

    def change_soon(self, kind: type[F], name: str, decision: Decision[F, Any]) -> Withdraw:
        """Make a decision about a fact without waiting for the result.

        Return the function that withdraws the decision.
        """
        fact = self._facts[kind].get(name) or self.known(kind, name)
        decision(fact, self.now(), self.processes)
        return _made

    async def close(self) -> None:
        """Make the decisions that ``change_soon()`` has not made yet. Then disconnect from the store, if any."""
