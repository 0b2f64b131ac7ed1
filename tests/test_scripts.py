"""The scripts on a machine with only Python: what they install, what they print, and their help."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crawls import ROOT

pytestmark = pytest.mark.meta

TOOLS = ("cat", "dirname", "env", "mkdir", "mktemp", "rm", "sed", "sleep", "tail", "tee")
BASH = "/bin/bash"
PYTHON = f"""#!{BASH}
case "$*" in
    "-m pip --version") [[ -n ${{HAS_PIP-}} ]] ;;
    "-m venv "*) echo "$*" >>calls; mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip "*) echo "$*" >>calls; sleep ${{PIP_SECONDS-0}} ;;
    *"import sys, pip;"*) exec {sys.executable} -c 'import sys; print(sys.version_info[:2])' ;;
    "-u scripts/demo.py"*) echo "$*" >>calls ;;
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
SCRIPTS = [
    *sorted(path.name for path in (ROOT / "scripts").iterdir() if path.is_file() and path.stat().st_mode & 0o111),
    "common.sh",
]
PYTEST = "-m pytest -n auto --dist loadfile --no-loadscope-reorder"
PIP = "-m pip install --disable-pip-version-check --no-compile --progress-bar off"
NPM = f"#!{BASH}\necho npm ${{*: -1}} >>calls\n"
POSTGRESQL = [] if list(Path("/usr/lib/postgresql").glob("*/bin/postgres")) else ["postgresql"]


def installed(*packages: str) -> list[str]:
    return [f"apt-get install --yes --no-install-recommends {package}" for package in packages]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A copy of the scripts, with a PATH that contains only basic system tools and stubs of Python, npm and cp.

    The stub of Python has no ``ensurepip``, and pip only if the environment variable ``HAS_PIP`` is set. The stub
    records the commands that would install packages or run tests, and runs all others with the real Python.
    """
    (tmp_path / "scripts").mkdir()
    for name in SCRIPTS:
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    (tmp_path / "docs").mkdir()
    for name in ("pyproject.toml", "requirements.txt", "requirements.lock", "docs/clients.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for name in TOOLS:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    for name, text in {
        "python3.11": PYTHON,
        "npm": NPM,
        "cp": f"#!{BASH}\ncat <$1 >$2; {shutil.which('chmod')} +x $2\n",
    }.items():
        program(tmp_path, name, text)
    return tmp_path


def program(machine: Path, name: str, text: str) -> None:
    """Add a program to the PATH."""
    (machine / "bin" / name).write_text(text)
    (machine / "bin" / name).chmod(0o755)


def run(
    machine: Path, *arguments: str, script: str = "test", within: tuple[str, ...] = (), **variables: str
) -> tuple[int, list[str], list[str]]:
    """Run a script. Return its exit code, the lines that it printed, and the programs that it called.

    ``within``: a command that runs the script.
    """
    done = subprocess.run(
        [*within, BASH, machine / "scripts" / script, *arguments],
        env={"PATH": str(machine / "bin"), "MISSING": ""} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    calls = machine / "calls"
    return done.returncode, done.stdout.splitlines(), calls.read_text().splitlines() if calls.exists() else []


def test_all_programs_are_installed_before_the_tests(machine: Path) -> None:
    program(machine, "apt-get", APT)
    code, lines, calls = run(machine, "-k", "retail")
    setup = [*installed("python3.11-venv"), "-m venv --clear .venv", f"{PIP} -e .[dev]"]
    programs = [*installed("chromium-headless-shell", "faketime", *POSTGRESQL), "npm typescript@5.9.3"]
    assert calls == [
        "apt-get update",
        *setup,
        *programs,
        f"{PYTEST} -k retail",
    ]
    assert (code, lines[-1]) == (1, "1 failed")


def test_us3_a_the_demo_installs_only_what_running_needs(machine: Path) -> None:
    program(machine, "apt-get", APT)
    code, lines, calls = run(machine, "--stay", script="demo", HAS_PIP="1")
    pip = PIP.replace("install ", "--python .venv/bin/python install pip ")
    assert calls == ["-m venv --clear --without-pip .venv", f"{pip} -r requirements.txt", "-u scripts/demo.py --stay"]
    assert (code, lines) == (
        0,
        ["Creating .venv with python3.11 ...", "Installing the dependencies (once; half a minute) ..."],
    )


def test_the_demo_installs_the_locked_versions(machine: Path) -> None:
    run(machine, script="demo", HAS_PIP="1")
    _, _, calls = run(machine, "--locked", "--stay", script="demo", HAS_PIP="1")
    pip = PIP.replace("install ", "--python .venv/bin/python install pip ")
    assert calls[1:] == [
        f"{pip} -r requirements.txt",
        "-u scripts/demo.py",
        f"{PIP} --require-hashes --no-deps -r requirements.lock",
        "-u scripts/demo.py --stay",
    ]
    _, _, calls = run(machine, "--locked", script="demo", HAS_PIP="1")
    assert calls[5:] == ["-u scripts/demo.py"]


def test_us3_a_a_second_start_installs_nothing(machine: Path) -> None:
    program(machine, "apt-get", APT)
    run(machine, script="demo", HAS_PIP="1")
    (machine / "calls").unlink()
    _, lines, calls = run(machine, script="demo", HAS_PIP="1")
    assert calls == ["-u scripts/demo.py"]
    assert lines == []
    _, _, calls = run(machine, HAS_PIP="1")
    assert f"{PIP} -e .[dev]" in calls, "the tests need more than the demo"
    (machine / "calls").unlink()
    _, _, calls = run(machine, script="demo", HAS_PIP="1")
    assert calls == ["-u scripts/demo.py"], "what the tests need includes what running needs"


def test_a_failed_installation_prints_the_end_of_its_output(machine: Path) -> None:
    program(machine, "apt-get", APT)
    code, lines, _ = run(machine, script="demo", HAS_PIP="1", PIP_SECONDS="no-number")
    assert code == 1
    assert "invalid time interval" in "".join(lines)
    assert any(line.startswith("error: the setup failed; its output is in ") for line in lines)


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script != "common.sh"])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_does_nothing_else(machine: Path, script: str, option: str) -> None:
    code, lines, calls = run(machine, option, script=script)
    assert (code, calls) == (0, [])
    assert any(f"scripts/{script}" in line for line in lines), lines
    assert not (machine / ".venv").exists()


def test_the_last_line_names_what_could_not_be_installed(machine: Path) -> None:
    program(machine, "apt-get", APT)
    code, lines, _ = run(machine, MISSING="faketime")
    assert (code, lines[-1][:43]) == (1, "Skipped: the tests that need faketime, beca")


def test_machines_without_apt_download_the_browser_only(machine: Path) -> None:
    program(machine, "playwright", PLAYWRIGHT)
    _, lines, calls = run(machine)
    assert "playwright install chromium" in calls
    names = " ".join(["faketime", *(["postgres"] if POSTGRESQL else [])])
    assert lines[-1].startswith(f"Skipped: the tests that need {names}, because they are not installed")


def test_a_moved_folder_gets_a_new_environment(machine: Path, tmp_path: Path) -> None:
    """The programs in .venv/bin contain the path of the folder in which .venv was created."""
    run(machine, script="demo", HAS_PIP="1")
    (machine / "calls").unlink()
    moved = tmp_path / "moved to"
    moved.mkdir()
    for name in ("scripts", "docs", "bin", ".venv", "pyproject.toml", "requirements.txt"):
        (machine / name).rename(moved / name)
    code, lines, calls = run(moved, script="demo", HAS_PIP="1")
    assert (code, lines[0]) == (0, "Creating .venv with python3.11 ...")
    assert calls[0] == "-m venv --clear --without-pip .venv"
    (moved / "calls").unlink()
    assert run(moved, script="demo", HAS_PIP="1")[2] == ["-u scripts/demo.py"]


def test_the_environment_of_another_folder_behind_a_link_is_kept(machine: Path) -> None:
    run(machine, script="demo", HAS_PIP="1")
    other = machine / "other"
    other.mkdir()
    for name in ("scripts", "docs", "bin", "pyproject.toml", "requirements.txt"):
        shutil.copytree(machine / name, other / name) if (machine / name).is_dir() else shutil.copy(
            machine / name, other
        )
    (other / ".venv").symlink_to(machine / ".venv")
    assert run(other, script="demo", HAS_PIP="1")[0] == 0
    assert [(each / ".venv/.folder").read_text() for each in (machine, other)] == [f"{machine}\n", f"{other}\n"]


UNSHARE = shutil.which("unshare") or ""
USER = (UNSHARE, "--user")
"""Runs a command as a user who is not root."""
REMOUNT = f'{shutil.which("mount")} --bind -o ro . . && cd "$PWD" && exec "$@"'
READ_ONLY = (UNSHARE, "--map-root-user", "--mount", BASH, "-c", REMOUNT, "-")
"""Runs a command with the current folder read-only."""


def permitted(command: tuple[str, ...]) -> bool:
    try:
        return subprocess.run([*command, BASH, "-c", ":"], check=False, capture_output=True).returncode == 0
    except OSError:  # there is no such program
        return False


@pytest.mark.skipif(not permitted(USER), reason="this system does not permit user namespaces")
@pytest.mark.parametrize("has_sudo", [True, False])
def test_packages_are_installed_only_with_the_rights_for_it(machine: Path, *, has_sudo: bool) -> None:
    program(machine, "apt-get", APT)
    program(machine, "playwright", PLAYWRIGHT)
    if has_sudo:
        program(machine, "sudo", f'#!{BASH}\necho sudo >>calls; exec "$@"\n')
    _, lines, calls = run(machine, within=USER)
    assert ("sudo" in calls) == has_sudo
    assert any(call.startswith("apt-get") for call in calls) == has_sudo
    assert ("playwright install chromium" in calls) != has_sudo
    assert lines[-1].startswith("1 failed" if has_sudo else "Skipped: the tests that need faketime")


@pytest.mark.skipif(not permitted(READ_ONLY), reason="this system does not permit mounts in a namespace")
def test_a_read_only_folder_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(machine)
    code, lines, calls = run(machine, script="demo", within=READ_ONLY)
    assert (code, calls) == (1, [])
    assert lines == [f"error: the folder {machine} is read-only: .venv cannot be created in it"]


LACKING = {
    "arrays by name": r"\b(declare|local|typeset) -[a-zA-Z]*[An]|\bmapfile\b|\breadarray\b",
    "changes of case": r"\$\{\w+(\[[^]]*\])?[,^]",
    "operators": r"&>>|\|&|;;&|;&(?!&)",
    "commands": r"\bcoproc\b|\bwait -n\b|\[\[ -v |printf '%\(|\bshopt -s (globstar|lastpipe)\b",
    "values": r"\$\{\w+@|\$\{!\w+\[|\$(EPOCHSECONDS|EPOCHREALTIME|SRANDOM|BASHPID)\b",
}
"""What the bash 3.2 of macOS lacks."""


@pytest.mark.parametrize("name", [*SCRIPTS, "../.ci/run"])
def test_scripts_use_only_what_bash_3_has(name: str) -> None:
    text = (ROOT / "scripts" / name).read_text()
    assert {what: re.findall(pattern, text) for what, pattern in LACKING.items() if re.search(pattern, text)} == {}
    for array in re.findall(r"^\s*(?:local )?(\w+)=\(\)", text, re.MULTILINE):
        bare = re.findall(rf'(?<!\+)"\$\{{{array}\[[@*]\]\}}"', text)
        assert bare == [], f"with an empty array, bash 3 ends here: {bare}"
