"""Turns of clients, and the uploads and temporary files that they concern."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from crawler.service.keys import KeyStore
from crawler.service.limits import Turns
from crawler.storage.files import PREFIX
from tests.service.client import call
from tests.service.conftest import running

LINKS = "".join(f"https://www.walmart.com/browse/food/{n}\n" for n in range(1_000_000, 1_006_000)).encode()


async def until_waiting() -> None:
    """Let all tasks run until they wait."""
    for _ in range(5):
        await asyncio.sleep(0)


class Pieces:
    """Pieces of work, one for each letter, a client; "a" and "A" are of the same one. Each ends when it is told to."""

    def __init__(self, turns: Turns, clients: str) -> None:
        self.begun = ""
        """The clients of the pieces that have got a place, in this order."""
        self._turns = turns
        self._ends: list[asyncio.Event] = []
        self.tasks = [asyncio.ensure_future(self._work(each)) for each in clients]

    async def _work(self, client: str) -> None:
        async with self._turns.turn(client.lower()):
            self.begun += client
            self._ends.append(asyncio.Event())
            await self._ends[-1].wait()

    async def end(self, number: int) -> None:
        """End the first pieces that have a place, one after the other."""
        for _ in range(number):
            self._ends.pop(0).set()
            await until_waiting()


@pytest.mark.parametrize(
    ("places", "of_client", "clients", "at_once", "order"),
    [
        (1, 1, "aaab", "a", "aaba"),
        (1, 1, "aaabbc", "a", "aabcab"),
        (2, 1, "aaab", "ab", "abaa"),
        (2, 2, "aaabc", "aa", "aaabc"),
        (3, 2, "aaaab", "aab", "aabaa"),
        (2, 1, "aaa", "a", "aaa"),
        (1, 1, "baA", "b", "baA"),
    ],
)
async def test_clients_get_places_in_turn(places: int, of_client: int, clients: str, at_once: str, order: str) -> None:
    pieces = Pieces(Turns(places, of_client), clients)
    await until_waiting()
    assert pieces.begun == at_once
    await pieces.end(len(clients))
    assert pieces.begun == order
    await asyncio.gather(*pieces.tasks)


@pytest.mark.parametrize(("cancelled", "begun"), [(0, "ab"), (1, "ac"), (2, "ab")])
async def test_a_cancelled_piece_takes_no_place(cancelled: int, begun: str) -> None:
    pieces = Pieces(turns := Turns(1, 1), "abc")
    await until_waiting()
    pieces.tasks[cancelled].cancel()
    await until_waiting()
    await pieces.end(1 if cancelled else 0)
    assert pieces.begun == begun
    for each in pieces.tasks:
        each.cancel()
    await until_waiting()
    async with asyncio.timeout(300), turns.turn("d"):
        pass


async def test_a_piece_that_is_cancelled_when_it_gets_its_place_gives_it_to_another() -> None:
    pieces = Pieces(Turns(1, 1), "abc")
    await until_waiting()
    pieces._ends[0].set()
    await asyncio.sleep(0)  # the first piece has ended, and the second one has not begun
    pieces.tasks[1].cancel()
    await until_waiting()
    assert pieces.begun == "ac"
    await pieces.end(2)


async def test_the_pieces_of_an_iterator_take_turns() -> None:
    turns = Turns(1, of_client=1)
    order: list[str] = []

    async def pieces() -> AsyncIterator[int]:
        for n in range(4):
            yield n

    async def work(client: str) -> None:
        async for n in turns.each(client, pieces(), 2):
            order.append(f"{client}{n}")
            await asyncio.sleep(0)

    await asyncio.gather(work("a"), work("b"))
    assert order == ["a0", "a1", "b0", "b1", "a2", "a3", "b2", "b3"]
    async with asyncio.timeout(300), turns.turn("c"):
        pass


def folders(path: Path) -> list[Path]:
    """The folders of processes in a folder of temporary files."""
    return list(path.glob(f"{PREFIX}*"))


def uploads(path: Path) -> list[Path]:
    """The copies of uploads that are being read."""
    return list(path.glob(f"{PREFIX}*/upload-*/upload.txt"))


def becomes(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files of the processes of a test."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    return path


def test_a_small_upload_does_not_wait_for_the_large_ones_of_another_client(tmp_path: Path, temporary: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite3")
    large, small = store.create("large"), store.create("small")

    def send(key: str, links: bytes) -> int:
        return call(service.url, "/v1/jobs", links, headers={"X-API-Key": key, "Content-Type": "text/plain"}).status

    settings = (f"KEYS_FILE={store.path}", "SANDBOX=1")
    with running(tmp_path / "log", *settings, sandbox=False) as service, ThreadPoolExecutor() as pool:
        pending = [pool.submit(send, large, LINKS + str(n).encode()) for n in range(3)]
        becomes(lambda: len(uploads(temporary)) == len(pending))
        assert send(small, LINKS.splitlines()[0]) == 202
        assert not any(each.done() for each in pending)
        service.process.kill()
        wait(pending)


def test_a_killed_endpoint_leaves_no_upload_to_the_next_one(tmp_path: Path, temporary: Path) -> None:
    with running(tmp_path / "log") as service, ThreadPoolExecutor() as pool:
        sent = pool.submit(
            call, service.url, "/v1/jobs", LINKS, headers={"X-API-Key": "sandbox", "Content-Type": "text/plain"}
        )
        becomes(lambda: bool(uploads(temporary)))
        os.kill(service.pid, signal.SIGKILL)
        wait([sent])
    (left,) = folders(temporary)
    assert uploads(temporary)
    with running(tmp_path / "log"):
        assert left not in folders(temporary)
        assert not uploads(temporary)
