"""SQLite files that several processes share: their options, and what a transaction locks and keeps."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from crawler.storage.files import SqliteFile, transaction

SCHEMA = ("CREATE TABLE IF NOT EXISTS t (n INTEGER)", "CREATE INDEX IF NOT EXISTS i ON t (n)")


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize(
    ("many_writes", "journal", "synchronous", "auto_vacuum"), [(True, "wal", 1, 2), (False, "delete", 2, 0)]
)
def test_the_options_of_a_file(
    tmp_path: Path, *, many_writes: bool, journal: str, synchronous: int, auto_vacuum: int
) -> None:
    file = SqliteFile(tmp_path / "store", SCHEMA, many_writes=many_writes)
    for _ in ("new", "opened again"):
        with closing(file.connect()) as connection:
            found = [
                pragma(connection, name) for name in ("journal_mode", "synchronous", "auto_vacuum", "busy_timeout")
            ]
            assert found == [journal, synchronous, auto_vacuum, 30_000]
            assert [each for (each,) in connection.execute("SELECT name FROM sqlite_master ORDER BY 1")] == ["i", "t"]
    with closing(SqliteFile(tmp_path / "other", (), busy_timeout=0.2).connect()) as connection:
        assert pragma(connection, "busy_timeout") == 200


def test_processes_may_open_a_new_file_at_the_same_time(tmp_path: Path) -> None:
    """SQLite does not wait for a lock while another connection changes the journal's mode, which is so at first."""
    ready = threading.Barrier(6)

    def opened(number: int) -> object:
        ready.wait(timeout=60)
        with closing(SqliteFile(tmp_path / str(number // 6), SCHEMA, many_writes=True).connect()) as connection:
            return pragma(connection, "journal_mode")

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(opened, range(600))) == ["wal"] * 600


def test_a_transaction_is_committed_or_rolled_back(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "store", SCHEMA)
    with file.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    with suppress(ValueError), file.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (2)")
        raise ValueError
    with closing(file.connect()) as connection:
        assert connection.execute("SELECT n FROM t").fetchall() == [(1,)]
        connection.execute("INSERT INTO t VALUES (3)")  # without a transaction, each statement is committed
    with closing(file.connect()) as connection:
        assert connection.execute("SELECT n FROM t").fetchall() == [(1,), (3,)]


@pytest.mark.parametrize("options", [{}, {"write": False}])
def test_only_a_transaction_that_writes_locks_the_file_at_its_start(tmp_path: Path, options: dict[str, bool]) -> None:
    file = SqliteFile(tmp_path / "store", SCHEMA, busy_timeout=0)
    with closing(file.connect()) as one, closing(file.connect()) as other, transaction(one, **options):
        if not options:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        else:
            other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT * FROM t").fetchall() == []


def test_a_connection_may_be_used_in_another_thread(tmp_path: Path) -> None:
    with closing(SqliteFile(tmp_path / "store", SCHEMA).connect()) as connection:
        thread = threading.Thread(target=connection.execute, args=("INSERT INTO t VALUES (1)",))
        thread.start()
        thread.join()
        assert connection.execute("SELECT n FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize("kind", ["a folder", "in a file", "no database"])
def test_a_file_that_cannot_be_used_is_an_error_of_sqlite(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "store"
    if kind == "a folder":
        path.mkdir()
    else:
        path.write_text("not a database\n" * 99)
    file = SqliteFile(path / "below" if kind == "in a file" else path, SCHEMA)
    with pytest.raises(sqlite3.Error):
        file.connect()
