"""Hooks and fixtures of all tests: no connections to other machines, no settings of the developer, PostgreSQL."""

import asyncio
import atexit
import csv
import gc
import inspect
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa

from tests import forks

# Undo ``gc.freeze()`` (below) when the process exits: otherwise, libraries would report objects that cannot be freed.
# Not earlier, because pytest collects garbage five times at the end.
atexit.register(gc.unfreeze)

csv.field_size_limit(10_000_000)  # a cell may have a page of a listing

LOOPBACK_NAMES = {"", "localhost"}
QUICK = {"contracts", "fixtures", "platforms", "reading"}
"""Folders with tests that, with few exceptions, start no processes."""

HANGING_SECONDS = 600
"""Time limit of a coroutine test. Without it, a hanging test would block the run, and nothing would show its name."""

# The same examples in every run, so that failures in CI can be reproduced. No deadline: timing is not asserted.
hypothesis.settings.register_profile("fast", derandomize=True, deadline=None, max_examples=20)
hypothesis.settings.register_profile("soak", hypothesis.settings.get_profile("fast"), max_examples=200)


def pytest_configure(config: pytest.Config) -> None:
    """Try more examples if the soak tests are run, too. Start one server of forks for all workers."""
    hypothesis.settings.load_profile("fast" if "not soak" in config.option.markexpr else "soak")
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        os.environ[forks.ADDRESS] = forks.start()


def is_loopback(host: object) -> bool:
    """Whether the host of a socket address is this machine. Names are not resolved."""
    if not isinstance(host, str):
        return host is None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK_NAMES


def forbid_other_hosts(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook that makes a test fail if it uses the network. (It covers Python's sockets, but not uvloop's.)

    Raises:
        AssertionError: for a connection or a name lookup beyond loopback.
    """
    if event == "socket.connect" and isinstance(args[1], tuple) and not is_loopback(args[1][0]):
        raise AssertionError(f"a test must not connect to {args[1]}")
    if event == "socket.getaddrinfo" and not is_loopback(args[0]):
        raise AssertionError(f"a test must not look up {args[0]}")


sys.addaudithook(forbid_other_hosts)

# If a shell runs the tests in the background (``scripts/test &``), they ignore SIGINT, and so would the commands that
# they start: a test that interrupts a command would wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# All times that leave the project are in UTC. On a machine whose clock shows UTC, local time would look the same.
os.environ["TZ"] = "Asia/Kathmandu"
time.tzset()

for name in list(os.environ):
    proxies = {"http_proxy", "https_proxy", "all_proxy"}
    if name.startswith("CRAWLER_") or name.lower() in proxies or name == "SCRAPY_SETTINGS_MODULE":
        del os.environ[name]


@pytest.hookimpl(trylast=True)  # after the fixtures
def pytest_runtest_teardown() -> None:
    """Remove the environment variable that ``get_project_settings()`` sets. Commands in later tests would inherit it.

    It overrides the settings module in the ``scrapy.cfg`` of their folder.
    """
    os.environ.pop("SCRAPY_SETTINGS_MODULE", None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a new event loop, with a time limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters

    async def run() -> None:
        async with asyncio.timeout(HANGING_SECONDS):
            await pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})

    asyncio.run(run())
    return True


@pytest.hookimpl(optionalhook=True)  # pytest may run without the plugin
def pytest_xdist_auto_num_workers() -> int:
    """With ``-n auto``, use two workers more than there are processors, because tests wait a third of the time."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests in the folders ``QUICK`` last: they are short, so all workers finish at about the same time."""
    items.sort(key=lambda item: not QUICK.isdisjoint(item.path.parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Disable garbage collection while pytest collects tests. Later collections skip the objects that exist then."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the commands in the documentation that were only parsed, not run."""
    passed = terminalreporter.stats.get("passed", [])
    if parsed := [text for each in passed for name, text in getattr(each, "user_properties", ()) if name == "parsed"]:
        terminalreporter.section("commands of the documentation that were parsed, not run")
        terminalreporter.write_line("\n".join(parsed))


def program(name: str) -> str | None:
    """The path of a PostgreSQL program: on the PATH, or in Debian's folder of the newest version."""
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(packaged[-1]) if packaged else None)


DATABASES = itertools.count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL server on a socket file. It runs as an unprivileged user if the tests run as root."""
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("needs PostgreSQL (Debian and Ubuntu: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # the path of a socket must be short
    as_user = {}
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data = folder / "data"
    make = [initdb, "-D", str(data), "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
    subprocess.run(make, check=True, capture_output=True, cwd=folder, **as_user)  # type: ignore[call-overload]
    server = subprocess.Popen(  # type: ignore[call-overload]
        [postgres, "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stderr=subprocess.DEVNULL,
        cwd=folder,
        **as_user,
    )
    try:
        url = f"postgresql://tests@/postgres?host={folder}"
        engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        for _ in range(1_200):
            try:
                engine.connect().close()
                break
            except sa.exc.OperationalError:
                time.sleep(0.05)
        engine.dispose()
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # SIGTERM waits until all clients disconnect
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let decisions wait for the store: after two seconds without it, a process uses its own share of the limits."""
    monkeypatch.setattr("crawler.jobs.shared_facts.ANSWER_SECONDS", 300.0)
    monkeypatch.setattr("crawler.jobs.store.BUSY_SECONDS", 300.0)


@pytest.fixture
def sqlite_store(tmp_path: Path) -> str:
    """The path of a store that does not exist yet."""
    return str(tmp_path / "jobs.sqlite3")


EMPTY: dict[str, list[str]] = {}
"""URL of a server -> names of its databases that no test uses. To empty one is 100 times faster than to make one."""


@contextmanager
def empty_database(postgresql: str) -> Iterator[str]:
    """Return the URL of an empty database on a server. At the end, end its sessions and empty it."""
    unused = EMPTY.setdefault(postgresql, [])
    server = postgresql.replace("postgresql:", "postgresql+psycopg:")
    if not unused:
        unused.append(f"jobs_{next(DATABASES)}")
        engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {unused[0]}")
        engine.dispose()
    name = unused.pop()
    yield postgresql.replace("/postgres?", f"/{name}?")
    engine = sa.create_engine(server.replace("/postgres?", f"/{name}?"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        for (schema,) in connection.exec_driver_sql(
            "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%%' AND nspname <> 'information_schema'"
        ).all():
            connection.exec_driver_sql(f'DROP SCHEMA "{schema}" CASCADE')
        connection.exec_driver_sql("CREATE SCHEMA public")
        connection.exec_driver_sql(f"ALTER DATABASE {name} RESET ALL")
    engine.dispose()
    unused.append(name)


@pytest.fixture
def postgresql_store(postgresql: str) -> Iterator[str]:
    """The URL of an empty database."""
    with empty_database(postgresql) as url:
        yield url


@pytest.fixture(params=["sqlite_store", "postgresql_store"])
def location(request: pytest.FixtureRequest) -> str:
    """The location of an empty store. A test that uses it runs twice: with SQLite and with PostgreSQL."""
    found: str = request.getfixturevalue(request.param)
    return found
