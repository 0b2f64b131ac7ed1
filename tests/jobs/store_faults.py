"""Errors at the operations of a store: at a statement, at a commit, or instead of the response to a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import psycopg
import pytest

from crawler.jobs.store import Session, Store


class KilledError(BaseException):
    """Ends a worker like ``kill -9``: it stores and releases nothing afterwards."""


class Faults:
    """Raises an error at the n-th operation of a store: a statement, a commit, or the response to a commit.

    The operation's transaction is rolled back, unless only the response to its commit is lost.
    """

    def __init__(self, at: int, error: Callable[[], BaseException]) -> None:
        self.at = at
        self.error = error
        self.operations = 0
        self.killed = False

    def operate(self) -> None:
        if self.killed:
            raise KilledError
        self.operations += 1
        if self.operations == self.at:
            error = self.error()
            self.killed = isinstance(error, KilledError)
            raise error

    def run(self, original: Any) -> Any:
        def _run(store: Store, work: Callable[[Session], Any], *, write: bool) -> Any:
            def counted(session: Session) -> Any:
                def execute(statement: Any, values: Any) -> Any:
                    self.operate()
                    return session.execute(statement, values)

                counting = copy(session)
                counting.execute = execute  # type: ignore[method-assign]
                found = work(counting)
                self.operate()  # the commit fails
                return found

            found = original(store, counted, write=write)
            self.operate()  # the answer to the commit is lost
            return found

        return _run


@contextmanager
def faults(at: int, error: Callable[[], BaseException]) -> Iterator[Faults]:
    found = Faults(at, error)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "_run", found.run(Store._run))
        yield found


def unavailable(location: str) -> BaseException:
    """The error of a driver for a database that has become unavailable."""
    if "://" not in location:
        return sqlite3.OperationalError("disk I/O error")
    return psycopg.OperationalError("server closed the connection")
