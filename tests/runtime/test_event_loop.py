"""When a peer resets a connection, all received data and the disconnection itself are still reported."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from crawler.service.workers import Loop

RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""The option ``SO_LINGER`` that makes ``close()`` reset the connection."""


def connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    server.settimeout(0)
    return client, server


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    client.close()


async def received(server: socket.socket, *, by_object: bool = False) -> list[int | str]:
    """Read a socket in pieces. Return the sizes of the pieces and how the connection ended."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    pieces: list[int | str] = []
    reader = server if by_object else server.fileno()

    def read() -> None:
        try:
            pieces.append(len(server.recv(1_000)) or "closed")
        except ConnectionResetError:
            pieces.append("reset")
        if isinstance(pieces[-1], str):
            loop.remove_reader(reader)
            done.set()

    loop.add_reader(reader, read)
    await asyncio.wait_for(done.wait(), 300)
    return pieces


@pytest.fixture
def runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=Loop)


@pytest.mark.parametrize("by_object", [False, True])
@pytest.mark.parametrize("sent", [0, 1, 3_500])
def test_all_data_before_a_reset_is_read(runner: asyncio.Runner, sent: int, *, by_object: bool) -> None:
    client, server = connected()
    client.sendall(bytes(sent))
    reset(client)
    expected = [1_000] * (sent // 1_000) + [sent % 1_000] * bool(sent % 1_000)
    with runner, server:
        assert runner.run(received(server, by_object=by_object)) == [*expected, "reset"]


def test_the_writer_of_a_reset_connection_is_called(runner: asyncio.Runner) -> None:
    client, server = connected()

    async def scenario() -> None:
        loop, failed = asyncio.get_running_loop(), asyncio.Event()

        def write() -> None:
            try:
                server.send(b"x")
            except ConnectionError:
                loop.remove_writer(server)
                loop.remove_reader(server)
                failed.set()

        loop.add_writer(server, write)
        loop.add_reader(server, server.recv, 1_000)
        client.sendall(bytes(2_500))
        reset(client)
        await asyncio.wait_for(failed.wait(), 300)

    with runner, server:
        runner.run(scenario())


def test_a_connection_that_is_closed_ends(runner: asyncio.Runner) -> None:
    client, server = connected()
    client.sendall(bytes(1_500))
    client.close()
    with runner, server:
        assert runner.run(received(server)) == [1_000, 500, "closed"]
