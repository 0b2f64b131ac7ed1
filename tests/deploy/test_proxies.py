"""The endpoint behind the reverse proxies of ``deploy/proxy``: Caddy and nginx of Debian run their files."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.crawls import ROOT
from tests.http_server import free_port
from tests.proxies import certificate_for_localhost
from tests.service.client import CATEGORY, HEADERS
from tests.service.conftest import running

FOLDER = ROOT / "deploy/proxy"
PAGE = "https://app.example.com"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,x-api-key",
    "Origin": PAGE,
}
GOOD = b'{"cat_id": "976759"}'


@dataclass(frozen=True)
class Reply:
    """A response through the proxy."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["status"]["code"])


@dataclass(frozen=True)
class Proxy:
    """A running proxy: its name and its port on this machine."""

    name: str
    port: int

    def connect(self) -> http.client.HTTPSConnection:
        # The certificate is one for the tests: this is about the proxy, not about the trust in a certificate.
        context = ssl._create_unverified_context()  # noqa: S323
        return http.client.HTTPSConnection("localhost", self.port, timeout=300, context=context)

    def send(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = HEADERS) -> Reply:
        connection = self.connect()
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        reply = Reply(response.status, response.headers, response.read())
        connection.close()
        return reply


def program(name: str) -> str:
    """Return the path of an installed program. Debian's nginx is not on the PATH of users."""
    path = shutil.which(name, path=os.pathsep.join((os.environ["PATH"], "/usr/sbin")))
    if path is None:
        pytest.skip(f"needs {name} (Debian: apt-get install {name})")
    return path


@contextmanager
def caddy(folder: Path, upstream: str) -> Iterator[Proxy]:
    """Run Caddy with its file. The file's site and upstream are variables; its ports here are not those of a server."""
    port = free_port()
    text = (FOLDER / "Caddyfile").read_text()
    own = folder / "Caddyfile"
    own.write_text(text.replace("admin off\n", f"admin off\nhttp_port {free_port()}\nhttps_port {port}\n", 1))
    command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(own)]
    environment = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "SITE": "localhost", "UPSTREAM": upstream}
    with started(command, folder, environment):
        yield until_open(Proxy("caddy", port))


@contextmanager
def nginx(folder: Path, upstream: str) -> Iterator[Proxy]:
    """Run nginx with its file, in which only the paths, the port and the upstream are replaced."""
    port, certificate = free_port(), certificate_for_localhost(folder / "localhost.pem")
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = (FOLDER / "nginx.conf").read_text()
    for old, new in {
        "events {": f"daemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{",
        "server_tokens off;": f"server_tokens off;\naccess_log off;\n{temporary}",
        "/etc/ssl/certs/data.example.com.pem": str(certificate),
        "/etc/ssl/private/data.example.com.key": str(certificate),
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "server 127.0.0.1:8000;": f"server {upstream};",
    }.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    own = folder / "nginx.conf"
    own.write_text(text)
    with started([program("nginx"), "-c", str(own), "-p", str(folder)], folder, {}):
        yield until_open(Proxy("nginx", port))


@contextmanager
def started(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=os.environ | environment, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()  # nginx stops its workers
            try:
                process.wait(timeout=300)
            except subprocess.TimeoutExpired:  # Caddy waits for open connections, without a limit
                process.kill()
                process.wait()


def until_open(proxy: Proxy) -> Proxy:
    for _ in range(600):
        try:
            proxy.send("GET", "/healthz")
        except OSError:
            time.sleep(0.1)
        else:
            return proxy
    raise AssertionError(f"{proxy.name} does not respond")


PROXIES = {"caddy": caddy, "nginx": nginx}


@pytest.fixture(scope="module", params=PROXIES)
def proxy(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    program(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    folder.chmod(0o755)  # nginx works as another user
    settings = ("SERVICE_URL=https://localhost", "SERVICE_MAX_JOB_BYTES=1000000")
    with running(folder / "service.log", *settings) as service:
        with PROXIES[request.param](folder, urlsplit(service.url).netloc) as opened:
            yield opened
        assert "Traceback" not in service.logged()


def test_a_call_passes_with_its_envelope_and_compression(proxy: Proxy) -> None:
    reply = proxy.send("POST", CATEGORY, GOOD, HEADERS | {"Accept-Encoding": "gzip"})
    assert reply.status == 200
    assert reply.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in ", ".join(reply.headers.get_all("Vary") or [])
    assert proxy.send("POST", CATEGORY, b"{").code == "INVALID_JSON"
    assert proxy.send("GET", "/nothing").code == "SCRAPER_NOT_FOUND"


def test_calls_on_one_connection_pass_again_and_again(proxy: Proxy) -> None:
    connection = proxy.connect()
    for _ in range(5):
        connection.request("POST", CATEGORY, GOOD, HEADERS)
        assert json.loads(connection.getresponse().read())["success"] is True
    connection.close()


def test_an_upload_is_larger_than_a_call(proxy: Proxy) -> None:
    targets = b"https://x.com/nasa\n" * 5_000
    headers = {"X-API-Key": "sandbox", "Content-Type": "text/plain"}
    reply = proxy.send("POST", "/v1/jobs?dry_run=true", targets, headers)
    assert reply.status == 200, reply.body[:300]
    assert proxy.send("POST", "/v1/jobs", bytes(1_000_001), headers).code == "PAYLOAD_TOO_LARGE"


def test_an_upload_with_a_wrong_key_is_refused_before_its_body(proxy: Proxy) -> None:
    if proxy.name == "caddy":
        pytest.skip("Caddy 2.6 may hold back the response until the client sends more, as docs/endpoint.md says")
    connection = proxy.connect()
    connection.putrequest("POST", "/v1/jobs")
    for name, value in {"X-API-Key": "wrong", "Content-Type": "text/plain", "Content-Length": "900000"}.items():
        connection.putheader(name, value)
    connection.endheaders(b"x")  # the rest of the body is not sent
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]["code"]) == (401, "INVALID_API_KEY")
    connection.close()


def test_the_page_of_a_named_origin_may_call(proxy: Proxy) -> None:
    preflight = proxy.send("OPTIONS", CATEGORY, headers=PREFLIGHT)
    assert (preflight.status, preflight.headers["Access-Control-Allow-Origin"]) == (204, PAGE)
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    allowed = {each.lower() for each in preflight.headers["Access-Control-Allow-Headers"].split(", ")}
    assert {"authorization", "content-type", "idempotency-key", "prefer", "x-api-key"} == allowed
    assert proxy.send("OPTIONS", "/v1/jobs", headers=PREFLIGHT).status == 204
    for key, code in (("sandbox", "OK"), ("wrong", "INVALID_API_KEY")):
        reply = proxy.send("POST", CATEGORY, GOOD, HEADERS | {"X-API-Key": key, "Origin": PAGE})
        assert reply.code == code
        assert reply.headers.get_all("Access-Control-Allow-Origin") == [PAGE]
        assert reply.headers["Access-Control-Expose-Headers"] == "*"
        assert "Origin" in ", ".join(reply.headers.get_all("Vary") or [])


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", f"{PAGE}.evil.example.com", f"{PAGE}:8443"])
def test_the_pages_of_other_origins_may_not_call(proxy: Proxy, origin: str) -> None:
    preflight = proxy.send("OPTIONS", CATEGORY, headers=PREFLIGHT | {"Origin": origin})
    assert (preflight.status, preflight.headers["Access-Control-Allow-Origin"]) == (405, None)
    reply = proxy.send("POST", CATEGORY, GOOD, HEADERS | {"Origin": origin})
    assert reply.headers["Access-Control-Allow-Origin"] is None
    assert reply.headers["Access-Control-Expose-Headers"] is None
    assert "Origin" in ", ".join(reply.headers.get_all("Vary") or [])


def test_nginx_limits_the_connections_of_one_address(proxy: Proxy) -> None:
    if proxy.name != "nginx":
        pytest.skip("Caddy without modules has no limits per address, as its file says")
    with ThreadPoolExecutor(130) as pool:
        waits = HEADERS | {"Prefer": "wait=15"}
        made = [
            pool.submit(proxy.send, "POST", "/v1/scrapers/retail-search-v4", b'{"query": "hang"}', waits)
            for _ in range(130)
        ]
        statuses = [each.result().status for each in made]
    assert 429 in statuses
    assert statuses.count(429) <= 30
