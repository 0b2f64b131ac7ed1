"""A build of the package contains every file of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.copies import copy_of_the_project

BUILD = "import setuptools; setuptools.setup()"


def files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)) for path in found}


def test_a_build_contains_every_file_of_the_package(tmp_path: Path) -> None:
    project = copy_of_the_project(tmp_path / "project")
    packaged = {path for path in files(project) if path.startswith(("crawler/", "social_retail_crawler."))}
    (project / "setup.py").write_text(BUILD)
    built = subprocess.run(
        [sys.executable, "setup.py", "build_py", "--build-lib", str(tmp_path / "built")],
        check=False,
        capture_output=True,
        text=True,
        cwd=project,
    )
    assert built.returncode == 0, built.stderr
    assert sum(path.endswith(".json") for path in packaged) > 20
    assert files(tmp_path / "built") == packaged
