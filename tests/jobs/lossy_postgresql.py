"""A proxy before a PostgreSQL server that loses some of the responses to COMMIT, as a network that fails does."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PORT_FILE = ".s.PGSQL.5432"
"""The name of the socket of a PostgreSQL server in its folder."""
COMMIT = b"COMMIT\0"
LOST = 0.1
"""The part of the responses that is lost."""


@dataclass
class LossyProxy:
    """Forwards connections to a server. Of the responses to COMMIT, some are lost."""

    server: str
    """The path of the server's socket."""
    random: random.Random
    share: float = LOST
    lost: int = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection, until one of its sides is closed or a response is lost."""
        try:
            from_server, to_server = await asyncio.open_unix_connection(self.server)
        except OSError:  # the server is down
            writer.close()
            return
        answers = asyncio.ensure_future(self._forward(from_server, writer))
        try:
            while data := await reader.read(65_536):
                loses = COMMIT in data and self.random.random() < self.share
                if loses:
                    answers.cancel()
                    with suppress(asyncio.CancelledError):
                        await answers
                to_server.write(data)
                if loses:
                    self.lost += bool(await from_server.read(65_536))  # the server has committed
                    break
        except OSError:
            pass  # the server or the client was killed
        finally:
            answers.cancel()
            for each in (to_server, writer):
                each.close()

    @staticmethod
    async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()


@asynccontextmanager
async def lossy(url: str, seed: int, share: float = LOST) -> AsyncIterator[tuple[str, LossyProxy]]:
    """Yield the URL of a database behind a proxy that loses responses to COMMIT, and the proxy."""
    base, _, folder = url.partition("?host=")
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as own:  # the path of a socket must be short
        proxy = LossyProxy(str(Path(folder) / PORT_FILE), random.Random(seed), share)  # noqa: S311  # repeatable
        server = await asyncio.start_unix_server(proxy.accept, Path(own) / PORT_FILE)
        async with server:
            yield f"{base}?host={own}", proxy
