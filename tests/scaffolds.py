"""Copies of the project for tests of commands that write new files into it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from crawler.commands.scaffold import Files, format_modules
from tests.crawls import ROOT

CACHES = shutil.ignore_patterns("__pycache__", "captures")


def copy_of_the_project(folder: Path) -> Path:
    for package in ("benchmarks", "crawler", "docs", "scripts", "tests"):
        shutil.copytree(ROOT / package, folder / package, ignore=CACHES)
    for file in (
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "requirements.txt",
        "scrapy.cfg",
        "social_retail_crawler.py",
    ):
        shutil.copy(ROOT / file, folder)
    return folder


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module in the copy of the project."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=project,
        env={**environment, "PYTHONPATH": os.pathsep.join((str(project), os.environ.get("PYTHONPATH", "")))},
    )


def content(project: Path) -> dict[str, bytes]:
    """Return path -> content of each file of the copy, without ``__pycache__``."""
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in project.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def failed(tested: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in tested.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]


def check_format(folder: Path, files: Files) -> None:
    """Write generated files into a folder as ``newscraper`` and ``newplatform`` do, and check their formatting."""
    shared = ("pyproject.toml", "tests/__init__.py", "tests/crawls.py", "tests/make_fixtures.py")
    packages = {
        f"{Path(path).parent}/__init__.py": '"""A package."""\n' for path in files if path.startswith("crawler/")
    }
    for path, text in (packages | files | {path: (ROOT / path).read_text() for path in shared}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    format_modules(folder, files)
    for path in files:
        lines = (folder / path).read_text().splitlines()
        long = [
            line for line in lines if len(line) > 120 and not line.startswith("|")
        ]  # rows of tables are not wrapped
        assert long == [] or path.endswith((".html", ".json")), path
    for command in (["check"], ["format", "--check"]):
        checked = run(folder, "ruff", *command, "--no-cache", ".")
        assert checked.returncode == 0, checked.stdout
