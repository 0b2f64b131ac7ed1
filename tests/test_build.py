"""A build of the package contains every file of it, and an editable install is visible to type checkers."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.copies import copy_of_the_project

pytestmark = pytest.mark.meta

BUILD = "import setuptools; setuptools.setup()"
BUILD_EDITABLE = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"


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


def test_an_editable_install_is_a_path(tmp_path: Path) -> None:
    """Type checkers follow the paths in ``.pth`` files, but no import hooks."""
    project = copy_of_the_project(tmp_path / "project")
    subprocess.run([sys.executable, "-c", BUILD_EDITABLE, tmp_path], check=True, capture_output=True, cwd=project)
    (wheel,) = tmp_path.glob("*.whl")
    contents = zipfile.ZipFile(wheel)
    modules = [name for name in contents.namelist() if not name.partition("/")[0].endswith(".dist-info")]
    (path,) = modules
    assert Path(contents.read(path).decode().strip()) == project.resolve()
