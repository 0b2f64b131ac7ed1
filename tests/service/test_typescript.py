"""The TypeScript example of ``docs/clients.md`` compiles with ``tsc --strict``, against the document of the service."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.crawls import ROOT
from tests.openapi import DOCUMENT
from tests.service.conftest import Service

MODULES = ROOT / ".venv" / "typescript" / "node_modules"
"""``scripts/test`` installs the compiler here."""
BLOCK = re.compile(r"^```ts\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the types that openapi-typescript generates, and with the packages of the example."""
    if not (MODULES / ".bin" / "tsc").exists():
        pytest.skip("the TypeScript compiler is not installed: scripts/test installs it where there is npm")
    made = tmp_path_factory.mktemp("typescript")
    (made / "node_modules").symlink_to(MODULES)
    (made / "openapi.json").write_text(json.dumps(DOCUMENT))
    command = command_of("openapi-typescript").replace("http://127.0.0.1:8000/", "")
    run(made, command)
    return made


def command_of(program: str) -> str:
    """The command of the page that starts with this program."""
    found = re.search(rf"^npx ({program} .*)$", (ROOT / "docs/clients.md").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MODULES / ".bin" / command.split(maxsplit=1)[0], *command.split()[1:]],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_us3_5_the_typescript_example_compiles(folder: Path) -> None:
    """It failed with "'data.data' is possibly 'null'": an accepted asynchronous call has no data."""
    example, job = BLOCK.findall((ROOT / "docs/clients.md").read_text())
    unchecked = re.sub(r"^if \(data\.data === null\).*$", "", example, flags=re.MULTILINE)
    for name, program in {"example": example, "job": job, "unchecked": unchecked}.items():
        (folder / f"{name}.ts").write_text(program)
    done = run(folder, f"{command_of('tsc')} job.ts unchecked.ts --noEmit")
    assert done.returncode != 0
    assert set(re.findall(r"^(\S+)\(\d+,\d+\)", done.stdout, re.MULTILINE)) == {"unchecked.ts"}, done.stdout
    assert "'data.data' is possibly 'null'" in done.stdout, "the compiler checks the types"


def test_the_typescript_client_runs_a_job(folder: Path, service: Service) -> None:
    _, job = BLOCK.findall((ROOT / "docs/clients.md").read_text())
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "job.ts").write_text(
        "declare const process: unknown;\n" + job.replace("http://127.0.0.1:8000", service.url)
    )
    options = command_of("tsc").replace("example.ts", "job.ts")
    assert run(folder, f"{options} --lib es2022,dom").stdout == ""
    done = subprocess.run(["node", "job.js"], check=False, cwd=folder, capture_output=True, text=True, timeout=60)  # noqa: S607  # of the PATH
    assert done.returncode == 0, done.stderr
    line, _, rest = done.stdout.partition("\n")
    assert json.loads(line)["id"] == "q1"
    assert rest.strip() == "1"
