"""The steps of the Dockerfile, and the containers of the manifests, run in a bare folder."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.crawls import ROOT, lines
from tests.deploy.image import Container, Image
from tests.service.client import CATEGORY, call
from tests.test_doc_examples import free_ports

pytestmark = pytest.mark.soak

KUBERNETES = ROOT / "deploy/kubernetes"
NO_LOCK = "/dev/null"
"""The tests' environment has the dependencies in other versions than ``requirements-image.lock``."""
NO_PLATFORM = '{"retail": "http://127.0.0.1:1"}'


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    folder = tmp_path_factory.mktemp("docker")
    return Image(folder, {"BROWSER": "1", "LOCK": NO_LOCK}, offline=True)


def container(manifest: str, secrets: dict[str, str], **values: str) -> Container:
    """The container of a Kubernetes manifest.

    ``secrets``: the values of secrets, by "secret/key". ``values``: environment variables to add or replace for this
    machine.
    """
    template = next(yaml.safe_load_all((KUBERNETES / manifest).read_text()))["spec"]["template"]
    (spec,) = template["spec"]["containers"]
    environment = {}
    for entry in spec["env"]:
        match entry:
            case {"value": value}:
                environment[entry["name"]] = value
            case {"valueFrom": {"secretKeyRef": {"name": name, "key": key}}}:
                environment[entry["name"]] = secrets[f"{name}/{key}"]
            case {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}:
                environment[entry["name"]] = "pod-1"
    for name, value in environment.items():
        environment[name] = value.replace("$(POD)", environment.get("POD", ""))
    return Container(spec["args"], environment | values, spec.get("command", ()))


@contextmanager
def serving(image: Image, given: Container) -> Iterator[str]:
    """Run an endpoint on a free port of loopback. Yields its URL."""
    port = str(free_ports(1))
    places = {"0.0.0.0": "127.0.0.1", image.port: port}
    process = image.start(replace(given, args=[places.get(each, each) for each in given.args]))
    try:
        assert process.stdout is not None
        if not process.stdout.readline().startswith("listening on "):
            raise AssertionError(image.finish(process).stderr)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        image.finish(process)


def new_key(image: Image) -> tuple[str, str]:
    """Return a client's API key, and the content of the secret with its hash, both created outside the image."""
    file = {"CRAWLER_KEYS_FILE": "/data/elsewhere/keys.sqlite"}
    key = image.run("keys", "create", "my-client", **file).stdout.strip()
    return key, image.run("keys", "export", **file).stdout.strip()


def test_the_default_command_lists_the_spiders(image: Image) -> None:
    done = image.run(*image.commands["crawler"])
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["microblog", "photoapp"]), done.stderr
    found = image.execute(["python", "-c", "import crawler; print(crawler.__file__)"])
    assert str(ROOT) not in found.stdout


def test_the_image_with_a_browser_scrapes_pages_that_need_it(image: Image) -> None:
    assert "apt-get install --yes --no-install-recommends chromium-headless-shell" in image.recorded
    done = image.run("crawl", "shortvideo", "-a", "keywords=whales", "-s", "SANDBOX=1", "-O", "/data/photos.jsonl")
    assert done.returncode == 0, done.stderr
    assert len(lines(image.root / "data/photos.jsonl")) == 1


def test_the_healthcheck_follows_the_endpoint(image: Image) -> None:
    def healthy(port: str) -> bool:
        return image.execute([part.replace(image.port, port) for part in image.healthcheck]).returncode == 0

    _, keys = new_key(image)
    given = Container(image.commands["endpoint"], {"CRAWLER_API_KEYS": keys})
    with serving(image, given) as url:
        port = url.rpartition(":")[2]
        assert healthy(port)
    assert not healthy(port)


def test_the_manifest_serves_with_keys_from_a_secret(image: Image, postgresql: str) -> None:
    key, keys = new_key(image)
    secrets = {"api-keys/keys": keys, "database/url": postgresql}
    given = container("endpoint.yaml", secrets, CRAWLER_PLATFORM_ORIGINS=NO_PLATFORM)
    headers = {"Content-Type": "application/json"}
    with serving(image, given) as url:
        answers = [
            call(url, CATEGORY, {"cat_id": "976759"}, headers=headers | more).code
            for more in ({}, {"X-API-Key": f"{key}x"}, {"X-API-Key": key})
        ]
    assert answers == ["MISSING_API_KEY", "INVALID_API_KEY", "UPSTREAM_ERROR"]
    assert not (image.root / "data/keys.sqlite").exists()


def test_the_manifest_of_workers_takes_targets_of_jobs(image: Image, postgresql: str, tmp_path: Path) -> None:
    (tmp_path / "targets.jsonl").write_text('{"cat_id": "976759"}\n{"cat_id": "1_2_3"}\n')
    secrets = {"database/url": postgresql}
    given = container("workers.yaml", secrets, CRAWLER_SANDBOX="1")
    pushed = image.run("jobs", "push", "monday", str(tmp_path / "targets.jsonl"), **given.environment)
    assert pushed.returncode == 0, pushed.stderr
    worker = image.start(given)
    try:
        deadline = time.monotonic() + 300
        while (shown := job(image, given))["state"] != "done":
            assert time.monotonic() < deadline, shown
    finally:
        worker.send_signal(signal.SIGTERM)
        image.finish(worker)
    assert (shown["targets"]["done"], shown["tallies"]["code"]) == (1, {"OK": 1, "TARGET_NOT_FOUND": 1})


def job(image: Image, given: Container) -> dict[str, Any]:
    """The job as ``scrapy jobs show`` prints it."""
    found: dict[str, Any] = json.loads(image.run("jobs", "show", "monday", "--json", **given.environment).stdout)
    return found
