"""Reads all targets of a source."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetSource
from crawler.targets.target import InvalidTarget, Target


def all_of(source: TargetSource) -> list[Target | InvalidTarget]:
    """Open a source and read it to its end."""

    async def take() -> list[Target | InvalidTarget]:
        await source.open()
        return [each async for each in source]

    return asyncio.run(take())


def targets_of(path: Path, parser: TargetParser) -> list[Target | InvalidTarget]:
    """Read a file."""
    return all_of(FileSource(parser, str(path)))
