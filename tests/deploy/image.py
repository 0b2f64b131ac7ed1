"""Runs the steps of a Dockerfile in a bare folder, without Docker.

The image's ``/srv`` and ``/data`` are ordinary folders here, and its Python is a virtual environment. Steps that would
change the machine (apt-get, useradd) are only recorded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.crawls import ROOT

IMAGE_FOLDERS = re.compile(r"(?<![\w.])/(?=(?:srv|data|var)\b)")
RECORDED = ("apt-get", "useradd")
DOCKERFILE = ROOT / "deploy/Dockerfile"


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile and their arguments, without comments, on one line each."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", "")
    found = [line.partition(" ") for line in text.splitlines() if line.strip()]
    return [(name, argument.strip()) for name, _, argument in found]


def context() -> set[str]:
    """The paths that .dockerignore includes in the build context, after excluding everything."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


@dataclass(frozen=True)
class Container:
    """A container as a Kubernetes manifest describes it."""

    args: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    """Replaces the image's entrypoint, if it is not empty."""


class Image:
    """The image of a Dockerfile, as a folder."""

    def __init__(self, folder: Path, build_args: Mapping[str, str], *, offline: bool) -> None:
        """``offline``: pip uses the packages of this environment instead of an index."""
        self.root = folder / "image"
        self.root.mkdir()
        self.workdir = self.root
        self.entrypoint: list[str] = []
        self.commands: dict[str, list[str]] = {}
        """The CMD of each stage."""
        self.healthcheck: list[str] = []
        self._stage = ""
        self._build_args = dict(build_args)
        self._recorded = folder / "recorded"
        self._environment = {"HOME": str(folder), "PATH": self._path(folder, offline=offline)}
        if offline:
            self._environment |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # pip: "0" means no isolation
        else:
            self._environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        for name, argument in instructions(DOCKERFILE.read_text()):
            getattr(self, f"_{name.lower()}")(self._placed(argument))

    @property
    def recorded(self) -> list[str]:
        """The commands of the build that were not executed, because they would change the machine."""
        return self._recorded.read_text().splitlines()

    def start(self, container: Container) -> subprocess.Popen[str]:
        """Start a container."""
        return subprocess.Popen(
            [self._placed(part) for part in (*(container.command or self.entrypoint), *container.args)],
            cwd=self.workdir,
            env=self._environment | {name: self._placed(value) for name, value in container.environment.items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a container with the image's entrypoint, and wait for its end."""
        return self.finish(self.start(Container(args, environment)))

    def finish(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """Wait for a container's end."""
        stdout, stderr = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in addition to the entrypoint, like ``docker exec``."""
        return subprocess.run(
            command, cwd=self.workdir, env=self._environment, capture_output=True, text=True, check=False, timeout=300
        )

    def _path(self, folder: Path, *, offline: bool) -> str:
        """Create the image's Python, and stubs of the commands that are only recorded."""
        subprocess.run([sys.executable, "-m", "venv", folder / "python"], check=True, timeout=300)
        if offline:
            remove = [
                str(folder / "python/bin/pip"),
                "uninstall",
                "--yes",
                "setuptools",
            ]  # the shared environment's is newer
            subprocess.run(remove, check=True, capture_output=True, timeout=300)
            (packages,) = folder.glob("python/lib/*/site-packages")
            (packages / "shared.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
            self._script(folder / "python/bin/scrapy", 'exec python -m scrapy "$@"')
        (folder / "bin").mkdir()
        for name in RECORDED:
            self._script(folder / "bin" / name, f'echo "{name} $*" >>{folder / "recorded"}')
        return os.pathsep.join((str(folder / "python/bin"), str(folder / "bin"), os.defpath))

    @staticmethod
    def _script(path: Path, command: str) -> None:
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)

    def _placed(self, text: str) -> str:
        """Return the text with the image's absolute paths (/srv, /data, /var) moved below the image's folder."""
        return IMAGE_FOLDERS.sub(f"{self.root}/", text)

    # The instructions

    def _from(self, argument: str) -> None:
        self._stage = argument.rpartition(" ")[2]

    def _arg(self, argument: str) -> None:
        name, _, default = argument.partition("=")
        self._environment[name] = self._build_args.get(name, default)

    def _env(self, argument: str) -> None:
        self._environment |= dict(part.split("=", 1) for part in argument.split())

    def _workdir(self, argument: str) -> None:
        self.workdir = Path(argument)
        self.workdir.mkdir(parents=True, exist_ok=True)

    def _copy(self, argument: str) -> None:
        *sources, target = argument.split()
        for source in sources:
            assert source in context(), f".dockerignore excludes {source}"
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, self.workdir / target, ignore=ignored, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / source, self.workdir / target)

    def _run(self, argument: str) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", argument],
            cwd=self.workdir,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=1_800,
        )
        assert done.returncode == 0, f"{argument}\n{done.stdout[-2_000:]}\n{done.stderr[-4_000:]}"

    def _user(self, argument: str) -> None:
        assert argument.isdecimal(), "Kubernetes checks runAsNonRoot by the number"

    def _expose(self, argument: str) -> None:
        self.port = argument

    def _entrypoint(self, argument: str) -> None:
        self.entrypoint = json.loads(argument)

    def _cmd(self, argument: str) -> None:
        self.commands[self._stage] = json.loads(argument)

    def _healthcheck(self, argument: str) -> None:
        self.healthcheck = json.loads(argument.partition("CMD ")[2])
