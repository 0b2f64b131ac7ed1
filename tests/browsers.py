"""Helpers for tests that count, measure and kill the browser's processes."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from crawler.browser.chromium import INSTALL_HINT, executable
from crawler.errors import ServiceError

KILOBYTE = 1024


@cache
def own_chromium() -> str:
    """The path to which playwright downloads its own Chromium."""

    async def path() -> str:
        async with async_playwright() as playwright:
            return playwright.chromium.executable_path

    return asyncio.run(path())


def require_chromium() -> str:
    """Return the path of Chromium. If it is not installed, fail with a hint: skipping the test would hide failures."""
    try:
        return executable({}, own_chromium())
    except ServiceError:
        pytest.fail(INSTALL_HINT)


def descendants(root: int) -> dict[int, str]:
    """The descendants of a process: process id -> command line."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int(_field(entry, "PPid"))
        except (OSError, ValueError, StopIteration):
            continue  # the process has just exited
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
    """The ids of the Chromium processes that a process has started, the browser's main process first."""
    tree = [(pid, line) for pid, line in descendants(root).items() if "chrom" in line.split(" ")[0] and alive(pid)]
    return [pid for pid, _ in sorted(tree, key=lambda each: "--type=" in each[1])]


def alive(pid: int) -> bool:
    """Whether a process runs. A process that has exited stays listed (as a zombie) until its parent waits for it."""
    try:
        return _field(Path("/proc") / str(pid), "State")[0] != "Z"
    except OSError:
        return False


def memory(pids: list[int]) -> int:
    """Memory of processes in bytes; shared memory counts once (proportional set size)."""
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
