"""The locked dependencies are complete, satisfy the declared ones, and name no index."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.crawls import ROOT
from tests.deploy.image import DOCKERFILE

pytestmark = pytest.mark.meta

RUN, IMAGE = ROOT / "requirements.lock", ROOT / "requirements-image.lock"
IMAGE_EXTRAS = ("postgresql", "s3", "cloud")
ENVIRONMENTS = {
    f"{version} on {platform}": {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "sys_platform": platform,
        "platform_system": system,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "os_name": "posix",
    }
    for version in ("3.11", "3.12", "3.13", "3.14")
    for platform, system in (("linux", "Linux"), ("darwin", "Darwin"))
}
PIN = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>[^\\]+?))?"
    r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
)


class Pin(NamedTuple):
    """A locked version of a package."""

    name: str
    version: str
    marker: Marker | None


def pins(lock: Path) -> list[Pin]:
    """Return the entries of a lock.

    Raises:
        AssertionError: the lock contains anything else, such as the URL of an index or a version without a hash.
    """
    text = lock.read_text()
    assert PIN.sub("", text) == ""
    return [
        Pin(each["name"], each["version"], Marker(each["marker"]) if each["marker"] else None)
        for each in PIN.finditer(text)
    ]


def locked(lock: Path, environment: dict[str, str]) -> dict[str, str]:
    """Name -> version of the packages that pip installs in an environment."""
    applying = [pin for pin in pins(lock) if pin.marker is None or pin.marker.evaluate(environment)]
    found = {pin.name: pin.version for pin in applying}
    assert len(found) == len(applying), "a package has two versions"
    return found


def lines() -> list[str]:
    """The lines of requirements.txt that declare a package."""
    found = [re.sub(r"\s*#.*", "", line) for line in (ROOT / "requirements.txt").read_text().splitlines()]
    return [line for line in found if line]


def declared(lock: Path) -> Iterator[Requirement]:
    """Yield what the project declares for a lock."""
    yield from map(Requirement, lines())
    if lock == IMAGE:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        yield from map(Requirement, project["build-system"]["requires"])
        for extra in IMAGE_EXTRAS:
            yield from map(Requirement, project["project"]["optional-dependencies"][extra])


def missing(needed: Iterator[Requirement], found: dict[str, str], environment: dict[str, str]) -> list[str]:
    """Return the requirements of an environment that the locked versions do not satisfy."""
    return [
        str(each)
        for each in needed
        if (each.marker is None or each.marker.evaluate({**environment, "extra": ""}))
        and not each.specifier.contains(found.get(canonicalize_name(each.name), "0"), prereleases=True)
    ]


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("lock", [RUN, IMAGE], ids=lambda path: path.stem)
def test_the_lock_satisfies_what_the_project_declares(lock: Path, name: str) -> None:
    environment = ENVIRONMENTS[name]
    assert missing(declared(lock), locked(lock, environment), environment) == []


@pytest.mark.parametrize("lock", [RUN, IMAGE], ids=lambda path: path.stem)
def test_the_lock_contains_what_its_packages_need(lock: Path) -> None:
    """Checked for the packages that are installed in the locked version."""
    environment = {key: str(value) for key, value in default_environment().items()}
    found = locked(lock, environment)
    checked = 0
    for name, version in found.items():
        try:
            installed = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if installed.version == version:
            needed = (Requirement(each) for each in installed.requires or ())
            assert missing(needed, found, environment) == [], name
            checked += 1
    assert checked


def test_the_locks_agree() -> None:
    """The demo runs what the image runs."""
    for environment in ENVIRONMENTS.values():
        assert locked(RUN, environment).items() <= locked(IMAGE, environment).items()


def test_the_image_and_the_demo_install_the_locks_with_their_hashes() -> None:
    options = "--require-hashes --no-deps"
    assert f'{options} --requirement "$LOCK"' in DOCKERFILE.read_text()
    assert f"ARG LOCK={IMAGE.name}\n" in DOCKERFILE.read_text()
    assert f"{options} -r {RUN.name}" in (ROOT / "scripts/common.sh").read_text()
    assert " ".join(f"--extra {extra}" for extra in IMAGE_EXTRAS) in (ROOT / "scripts/lock").read_text()


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-image.lock", "deploy/Dockerfile", "SECURITY.md"])
def test_no_index_is_named(name: str) -> None:
    assert not re.search(r"index-url|find-links|trusted-host|\bpypi\b", (ROOT / name).read_text(), re.IGNORECASE)
