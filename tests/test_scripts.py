"""``scripts/test`` on a bare machine: what it installs, and what it says about the rest."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crawls import ROOT

TOOLS = ("cat", "dirname", "env", "mkdir", "mktemp", "rm", "tail")
BASH = "/bin/bash"
MEMORY = Path("/dev/shm")  # noqa: S108  # the folder that the script uses
PYTHON = f"""#!{BASH}
case "$*" in
    "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip "*) echo "$*" >>calls ;;
    "-m pytest "*) echo "$*" >>calls; echo "${{TMPDIR-}}" >folder; echo "1 failed"; exit 1 ;;
    "-c import ensurepip"*) exit 1 ;;
    *) exec {sys.executable} "$@" ;;
esac
"""
APT = f"""#!{BASH}
echo "apt-get $*" >>calls
[[ -z $MISSING || $* != *$MISSING ]]
"""
PLAYWRIGHT = f"#!{BASH}\necho playwright $* >>calls\n"
POSTGRESQL = [] if list(Path("/usr/lib/postgresql").glob("*/bin/postgres")) else ["postgresql"]


def installed(*packages: str) -> list[str]:
    return [f"apt-get install --yes --no-install-recommends {package}" for package in packages]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A copy of the scripts, with a PATH that has only a Python without venv, and the tools of any system."""
    (tmp_path / "scripts").mkdir()
    for name in ("common.sh", "test"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    for name in TOOLS:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    for name, text in {"python3.11": PYTHON, "cp": f"#!{BASH}\ncat <$1 >$2; {shutil.which('chmod')} +x $2\n"}.items():
        program(tmp_path, name, text)
    return tmp_path


def program(machine: Path, name: str, text: str) -> None:
    """Write a program to the PATH."""
    (machine / "bin" / name).write_text(text)
    (machine / "bin" / name).chmod(0o755)


def run(machine: Path, *arguments: str, **variables: str) -> tuple[int, list[str], list[str]]:
    """Run ``scripts/test``. Return its exit code, its lines on stdout, and the programs that it called."""
    done = subprocess.run(
        [BASH, machine / "scripts/test", *arguments],
        env={"PATH": str(machine / "bin"), "MISSING": ""} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    calls = (machine / "calls").read_text().splitlines()
    return done.returncode, done.stdout.splitlines(), calls


def test_all_programs_are_installed_before_the_tests(machine: Path) -> None:
    program(machine, "apt-get", APT)
    code, lines, calls = run(machine, "-k", "retail")
    pip = "-m pip install --disable-pip-version-check -e .[dev]"
    expected = [*installed("python3.11-venv"), pip, *installed("chromium-headless-shell", "redis-server", *POSTGRESQL)]
    assert calls == ["apt-get update", *expected, "-m pytest -n auto --dist loadfile -k retail"]
    assert (code, lines) == (1, ["1 failed"])


def test_the_long_tests_need_more_programs(machine: Path) -> None:
    program(machine, "apt-get", APT)
    _, _, calls = run(machine, "--soak")
    assert calls[-3:] == [*installed("docker-compose", "prometheus"), "-m pytest -n auto --dist loadfile -m "]


def test_the_last_line_names_what_could_not_be_installed(machine: Path) -> None:
    program(machine, "apt-get", APT)
    code, lines, _ = run(machine, MISSING="redis-server")
    assert (code, lines[-1][:43]) == (1, "Skipped: the tests that need redis-server, ")


def test_chromium_is_installed_where_there_is_no_headless_shell(machine: Path) -> None:
    """As on Ubuntu."""
    program(machine, "apt-get", APT)
    _, _, calls = run(machine, MISSING="chromium-headless-shell")
    assert installed("chromium")[0] in calls


def test_machines_without_apt_download_the_browser_only(machine: Path) -> None:
    program(machine, "playwright", PLAYWRIGHT)
    _, lines, calls = run(machine)
    assert "playwright install chromium" in calls
    names = " ".join(["redis-server", *(["postgres"] if POSTGRESQL else [])])
    assert lines[-1].startswith(f"Skipped: the tests that need {names}, because they are not installed")


@pytest.mark.skipif(not MEMORY.is_dir(), reason="only Linux has this folder")
@pytest.mark.parametrize(
    ("mount", "is_used"),
    [
        ("5000000000 rw,relatime", True),
        ("64000000 rw,relatime", False),
        ("5000000000 rw,nosuid,nodev,noexec", False),
        ("", False),
    ],
)
def test_files_are_in_memory_where_it_has_room_and_may_have_programs(
    machine: Path, mount: str, *, is_used: bool
) -> None:
    program(machine, "apt-get", APT)
    program(machine, "findmnt", f"#!{BASH}\necho {mount}\n")
    run(machine)
    folder = (machine / "folder").read_text().strip()
    assert folder.startswith(f"{MEMORY}/tests.") == is_used
    assert not folder or not Path(folder).exists(), "it is removed in the end"
