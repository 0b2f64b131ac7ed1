"""The browser's processes, for tests that count, weigh and kill them."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from crawler.browser.chromium import HOW_TO_GET_ONE, executable
from crawler.errors import ServiceError

KILOBYTE = 1024


@cache
def own_chromium() -> str:
    """Where playwright would have downloaded its own."""

    async def ask() -> str:
        async with async_playwright() as playwright:
            return playwright.chromium.executable_path

    return asyncio.run(ask())


def require_chromium() -> None:
    """Fails, with how to get one, where there is no Chromium: what is not tested is not known to work."""
    try:
        executable({}, own_chromium())
    except ServiceError:
        pytest.fail(HOW_TO_GET_ONE)


def descendants(root: int) -> dict[int, str]:
    """The processes below a process, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int(_field(entry, "PPid"))
        except (OSError, ValueError, StopIteration):
            continue  # it has just ended
    found: dict[int, str] = {}
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        for child in [pid for pid, above in parents.items() if above == parent]:
            waiting.append(child)
            try:
                found[child] = (Path("/proc") / str(child) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def chromium_tree(root: int) -> list[int]:
    """The processes of the browser below a process, the browser itself first."""
    tree = [(pid, line) for pid, line in descendants(root).items() if "chrom" in line.split(" ")[0] and alive(pid)]
    return [pid for pid, _ in sorted(tree, key=lambda each: "--type=" in each[1])]


def alive(pid: int) -> bool:
    """Whether a process runs: one that has ended stays in the list until its parent asks for it."""
    try:
        return _field(Path("/proc") / str(pid), "State")[0] != "Z"
    except OSError:
        return False


def memory(pids: list[int]) -> int:
    """Bytes that processes take together: what they share counts once (proportional set size)."""
    total = 0
    for pid in pids:
        try:
            lines = (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * KILOBYTE


def _field(process: Path, name: str) -> str:
    lines = (process / "status").read_text().splitlines()
    return next(line.split(":", 1)[1] for line in lines if line.startswith(f"{name}:")).strip()
