"""Copies of the project, whose code a test may change."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.crawls import ROOT

CACHES = shutil.ignore_patterns("*.pyc.*", "captures")
"""Compiled modules are copied, too, because they take seconds of processor time; but not those that are being written.
"""
FILES = ("LICENSE", "README.md", "pyproject.toml", "requirements.txt", "scrapy.cfg", "social_retail_crawler.py")
"""The files beside the packages from which a distribution is built."""


def copy_of_the_project(folder: Path) -> Path:
    for package in ("benchmarks", "crawler", "docs", "scripts", "tests"):
        shutil.copytree(ROOT / package, folder / package, ignore=CACHES)
    for file in FILES:
        shutil.copy(ROOT / file, folder)
    return folder


class ProjectCopy:
    """Runs commands in a copy of the project. The folder of the tests is a link to this project's folder."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        self.env = {**os.environ, **env, "PYTHONPATH": str(folder)}
        shutil.copytree(ROOT / "crawler", folder / "crawler", ignore=CACHES)
        shutil.copy(ROOT / "scrapy.cfg", folder)
        (folder / "tests").symlink_to(ROOT / "tests")

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command of Scrapy. ``code``: the expected exit code."""
        command = [sys.executable, "-m", "scrapy", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.env, check=False)
        assert run.returncode == code, f"{arguments}\n{run.stdout}\n{run.stderr}"
        return run

    def apply(self, shown: str) -> int:
        """Put the declarations that ``scrapy extract --suggest`` has printed into the files. Return their number."""
        found = re.findall(r"^(crawler/\S+\.py):(\d+): (.+)$", shown, re.MULTILINE)
        for name, number, line in sorted(found, key=lambda each: -int(each[1])):
            file = self.folder / name
            lines = file.read_text().splitlines()
            declarations = (each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.AnnAssign))
            end = next(each.end_lineno for each in declarations if each.lineno == int(number))
            lines[int(number) - 1 : end] = [f"    {line}"]
            file.write_text("\n".join(lines) + "\n")
        return len(found)
