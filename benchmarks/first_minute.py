"""Measures the first minute of a new user: from a clone, and from a wheel in an empty folder.

    python3 benchmarks/first_minute.py [clone | wheel]

Both start without an environment and with an empty cache of pip. ``clone`` runs ``scripts/demo`` in a copy of the
project. ``wheel`` installs the project's wheel, and crawls the sandbox. Prints the time until the first record, in
seconds of wall time and of processor time, the longest time without a line of output, and the size of ``.venv``. Fails
if the demo or the crawl fails, however long they took. Needs only Python and pip.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_RECORD = re.compile(r", in [0-9,]+ ms$")
"""Matches the line of the demo with which the first record begins."""


@dataclass
class Measured:
    """What a command took until its first record, in seconds, and its exit code."""

    code: int = 0
    wall: float | None = None
    processor: float | None = None
    silence: float = 0.0


def copied(files: Sequence[str], folder: Path) -> None:
    """Copy files of the project into a folder."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def project_files() -> list[str]:
    """Return the files of the project: without environments and, in a clone, without what git ignores."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        return [name for name in listed if name and (ROOT / name).is_file()]
    folders = (path for path in ROOT.iterdir() if not path.name.startswith(".venv"))
    return [
        str(path.relative_to(ROOT))
        for top in folders
        for path in (top.rglob("*") if top.is_dir() else [top])
        if path.is_file()
    ]


def processor_seconds(root: int) -> float | None:
    """Return the processor time of a process and its descendants until now; None where there is no /proc."""
    used: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            ticks = sum(map(int, fields[11:15]))  # its own and that of its children that have ended
            used[int(entry.name)] = (int(fields[1]), ticks / os.sysconf("SC_CLK_TCK"))
    if root not in used:
        return None
    tree, total = {root}, used[root][1]
    while added := {pid for pid, (parent, _) in used.items() if parent in tree and pid not in tree}:
        tree |= added
        total += sum(used[pid][1] for pid in added)
    return total


def timed(command: Sequence[str], first_record: re.Pattern[str], **options: object) -> Measured:
    """Run a command, print its output with the seconds since its start, and measure until its first record."""
    measured = Measured()
    started = last = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)  # type: ignore[call-overload]
    for line in process.stdout:
        now = time.monotonic()
        print(f"{now - started:6.1f}  {line}", end="", flush=True)
        measured.silence, last = max(measured.silence, now - last), now
        if measured.wall is None and first_record.search(line.rstrip()):
            measured.wall, measured.processor = now - started, processor_seconds(process.pid)
    measured.code = process.wait()
    return measured


def size_mb(folder: Path) -> float:
    """Return the size of the files in a folder in MB, as ``du -sm`` counts: in blocks of the disk."""
    names = {path for path in folder.rglob("*") if not path.is_symlink()}
    return sum(path.lstat().st_blocks * 512 for path in names) / 2**20


def report(title: str, measured: Measured, environment: Path) -> bool:
    """Print the figures. Return False if there was no record, or the command failed."""
    is_good = measured.code == 0 and measured.wall is not None
    processor = "unknown" if measured.processor is None else f"{measured.processor:.0f} s"
    load = os.getloadavg()[0]
    if measured.wall is not None:
        print(
            f"first minute, {title}: first record after {measured.wall:.0f} s, processor time {processor}, longest "
            f"silence {measured.silence:.1f} s, .venv {size_mb(environment):.0f} MB (load {load:.1f} on "
            f"{os.cpu_count()} cores)"
        )
    if not is_good:
        print(f"first minute, {title}: failed, exit code {measured.code}")
    return is_good


@contextlib.contextmanager
def empty_machine() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield an empty folder, and variables with which pip has an empty cache."""
    with tempfile.TemporaryDirectory(prefix="first-minute-") as name:
        without = {"VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
        variables = {key: value for key, value in os.environ.items() if key not in without}
        yield Path(name), {**variables, "PIP_CACHE_DIR": f"{name}/cache", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def from_clone() -> bool:
    """Run the demo in a copy of the project."""
    with empty_machine() as (folder, variables):
        project = folder / "project"
        copied(project_files(), project)
        measured = timed([str(project / "scripts/demo")], FIRST_RECORD, env=variables)
        return report("scripts/demo", measured, project / ".venv")


def from_wheel() -> bool:
    """Install the project's wheel into an environment in an empty folder, and crawl one target of the sandbox there."""
    with empty_machine() as (folder, variables):
        project, empty = folder / "project", folder / "empty"
        empty.mkdir()
        copied(project_files(), project)
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(project)]
        subprocess.run(build, check=True, env={**variables, "PIP_CACHE_DIR": f"{folder}/build-cache"})
        (wheel,) = folder.glob("*.whl")
        steps = f"""
            set -e
            {sys.executable} -m venv --without-pip .venv  # Debian's Python has no ensurepip
            {sys.executable} -m pip --python .venv/bin/python install --progress-bar off {wheel}
            .venv/bin/scrapy crawl retail -a cat_id=976759 -s SANDBOX=1 -O products.jsonl
            echo "record of $(wc -c <products.jsonl) bytes"
        """
        variables["SCRAPY_SETTINGS_MODULE"] = "crawler.settings"
        measured = timed(["bash", "-c", steps], re.compile("^record of [1-9]"), cwd=empty, env=variables)
        return report("wheel", measured, empty / ".venv")


WAYS = {"clone": from_clone, "wheel": from_wheel}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("way", nargs="?", choices=WAYS, help="default: both")
    way = parser.parse_args().way
    results = [measure() for name, measure in WAYS.items() if way in {None, name}]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
