"""The number of functions of this project that one light call and one crawl target run. No clock is involved.

Counted are calls into code objects of ``crawler/``, and each resumption of a coroutine, without those of
``crawler/platforms`` and ``crawler/reading``, which depend on the page, and without fill rates, which need not be
computed for each call. ``python -m benchmarks calls`` prints both numbers, and fails if one is above its limit;
``--top`` adds the functions.

The programs run as users start them, in a process that counts with ``sys.setprofile``. It remembers its counts when it
gets SIGUSR1, and writes them to a file at SIGUSR2 and when it exits.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import Any

from benchmarks.stack import ROOT, Stack, free_port, stack
from benchmarks.tables import grid

PACKAGE = ROOT / "crawler"
LEFT_OUT = ("platforms/", "reading/", "sandbox/", "monitoring/fields.py")
"""Parts of the package that are not counted."""
UNITS, WARM_UP = 100, 30
"""Number of targets that are counted, and of calls or targets that run before those that are counted."""
CALLS = 31
"""Number of calls that are counted, each for itself. Their median has nothing of timers and other background work."""
SIGNAL_SECONDS = 0.02
"""Seconds in which a process has handled a signal."""
LIMITS = {"light call": 192, "crawl target": 146}
"""The numbers that must not be exceeded."""
QUERY = {"query": "honey"}
PATH = "/v1/scrapers/retail-search-v4"
SHOWN = 400
"""Number of functions in the list of ``--top``."""


def counts(raw: dict[CodeType, int]) -> Counter[str]:
    """Return the calls by function of the project, such as ``service/metrics.py:12 collect``."""
    found: Counter[str] = Counter()
    for code, number in raw.items():
        file = Path(code.co_filename)
        if file.is_relative_to(PACKAGE) and not str(file.relative_to(PACKAGE)).startswith(LEFT_OUT):
            found[f"{file.relative_to(PACKAGE)}:{code.co_firstlineno} {code.co_qualname}"] += number
    return found


def run_counted(arguments: list[str], file: Path) -> None:
    """Run a Scrapy command in this process, and append its counts to the file: those at each SIGUSR1, or at the exit.

    An endpoint counts from the first SIGUSR1 on, so that its start is not slow.
    """
    from scrapy.cmdline import execute  # noqa: PLC0415  # only in the process that is counted

    raw: dict[CodeType, int] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            raw[frame.f_code] = raw.get(frame.f_code, 0) + 1

    remembered: list[dict[CodeType, int]] = []

    def remember(*_: Any) -> None:
        remembered.append(raw.copy())
        sys.setprofile(profile)

    def write(*_: Any) -> None:
        sys.setprofile(None)
        with file.open("a") as lines:
            lines.write("".join(json.dumps(counts(each)) + "\n" for each in remembered or [raw]))
        remembered.clear()

    signal.signal(signal.SIGUSR1, remember)
    signal.signal(signal.SIGUSR2, write)
    atexit.register(write)
    if arguments[0] != "serve":
        sys.setprofile(profile)
    execute(["scrapy", *arguments])


def per_target(file: Path) -> dict[str, float]:
    """Return the calls per function for each target between the two lines of a file.

    A function that ran for less than half of the targets belongs to the background, such as a timer.
    """
    before, after = (Counter(json.loads(line)) for line in file.read_text().splitlines())
    return {name: number / UNITS for name, number in (after - before).items() if number >= UNITS / 2}


def per_call(file: Path) -> dict[str, float]:
    """Return the calls per function for a call: the median over half of the calls between the lines of a file.

    On a busy machine, timers run during most calls. So the half with the fewest functions is used.
    """
    totals = [Counter(json.loads(line)) for line in file.read_text().splitlines()]
    units = sorted((after - before for before, after in pairwise(totals)), key=Counter.total)[: CALLS // 2]
    numbers = {name: median(unit[name] for unit in units) for name in totals[-1]}
    return {name: number for name, number in numbers.items() if number}


def light_call(running: Stack) -> dict[str, float]:
    """Return the calls per function of a warm call of the endpoint for a light page.

    Raises:
        SystemExit: a call failed.
    """
    file, port, headers = running.folder / "call.jsonl", free_port(), running.headers
    command = (sys.executable, "-m", "benchmarks.calls", str(file), "serve", "--port", str(port))
    pid = running.start(*command, port=port, ready="/readyz")
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    for number in range(WARM_UP + CALLS):
        connection.request("POST", PATH, json.dumps(QUERY), headers)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise SystemExit(f"{PATH}: {body.decode()}")
        if number >= WARM_UP - 1:
            os.kill(pid, signal.SIGUSR1)
            time.sleep(SIGNAL_SECONDS)
    os.kill(pid, signal.SIGUSR2)
    while not file.exists() or file.read_text().count("\n") <= CALLS:
        time.sleep(SIGNAL_SECONDS)
    return per_call(file)


def target(running: Stack) -> dict[str, float]:
    """Return the calls per function of a target of a file.

    Raises:
        subprocess.CalledProcessError: a crawl failed.
    """
    file, targets = running.folder / "target.jsonl", running.folder / "targets.jsonl"
    for number in (WARM_UP, WARM_UP + UNITS):
        # Rows that repeat a target are fetched once, so each row has a target of its own.
        targets.write_text("".join(json.dumps({"query": f"honey {each}"}) + "\n" for each in range(number)))
        command = (sys.executable, "-m", "benchmarks.calls", str(file), "crawl", "retail", "-a", f"targets={targets}")
        options = ("-O", str(running.folder / "out.jsonl"), "-s", "LOG_LEVEL=WARNING")
        subprocess.run([*command, *options], check=True, cwd=ROOT, env=running.env)
    return per_target(file)


def report(*, top: bool = False) -> str:
    """Return a Markdown table of the numbers, and with ``top`` the functions that run most often.

    Raises:
        SystemExit: a number is above its limit, or a call or crawl failed.
    """
    with stack(PLATFORM_BUDGETS={"retail": {"concurrency": 16, "delay": 0}}) as running:
        found = {"light call": light_call(running), "crawl target": target(running)}
    totals = {name: sum(each.values()) for name, each in found.items()}
    rows = [(f"{name} (limit {LIMITS[name]})", f"{total:.0f}") for name, total in totals.items()]
    if top:
        for name, each in found.items():
            most = sorted(each.items(), key=lambda item: -item[1])[:SHOWN]
            rows += [(f"{name}: {function}", f"{number:.1f}") for function, number in most]
    table = grid(("unit", "functions of ours"), rows) + "\n"
    if above := [name for name, total in totals.items() if total > LIMITS[name]]:
        raise SystemExit(f"{table}\nAbove the limit: {', '.join(above)}. See the functions with --top.")
    return table


if __name__ == "__main__":
    run_counted(sys.argv[2:], Path(sys.argv[1]))
