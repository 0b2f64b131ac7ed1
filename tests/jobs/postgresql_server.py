"""A PostgreSQL server for a single test, which can be killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg

from tests.conftest import program


class PostgreSqlServer:
    """A server whose data and socket are in a folder. It runs as an unprivileged user if the tests run as root."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.url = f"postgresql://tests@/postgres?host={folder}"
        self.environment = os.environ | (environment or {})
        self.as_user: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            shutil.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self.as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        make = [str(program("initdb")), "-D", str(folder / "data"), "-U", "tests", "-A", "trust", "-E", "UTF8"]
        make += ["--no-locale", "--no-sync", "--wal-segsize=1"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **self.as_user)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server if it is not running, and wait until it accepts connections."""
        options = ["listen_addresses=", "fsync=off", "max_wal_size=8MB", "min_wal_size=2MB"]
        deadline = time.monotonic() + 60
        while True:
            if self.process is None or self.process.poll() is not None:
                (self.folder / "data/postmaster.pid").unlink(missing_ok=True)
                command = [str(program("postgres")), "-D", str(self.folder / "data"), "-k", str(self.folder)]
                command += [part for option in options for part in ("-c", option)]
                self.process = subprocess.Popen(
                    command, stderr=subprocess.DEVNULL, cwd=self.folder, env=self.environment, **self.as_user
                )
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL does not answer"
                time.sleep(0.1)
            else:
                return

    def kill(self) -> None:
        """End the server and its connections at once, without a checkpoint, as a crash does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def close(self) -> None:
        """End the server."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
