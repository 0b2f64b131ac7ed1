"""The webhook routes, ``scrapy keys webhook``, ``scrapy webhook listen``, and kill -9 of the endpoint. Issue 47."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from crawler.service.webhooks import outbox
from tests import forks
from tests.crawls import ROOT
from tests.service import metrics_of
from tests.service.client import HEADERS, Reply, call
from tests.service.conftest import Service, running

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SCRAPY = [sys.executable, "-m", "scrapy"]
QUICK = "from crawler.service.webhooks import outbox; outbox.CLAIM_SECONDS = 1.0; outbox.DELAYS = (0.1,) * 40"
MUTE = "from crawler.service.webhooks.dispatcher import Dispatcher; Dispatcher.open = lambda self: None"
TARGETS = b"scraper,query\nretail-search-v4,mustard\nretail-search-v4,\n"


def webhook(url: str, method: str, body: Any = None, path: str = "") -> Reply:
    return call(url, f"/v1/webhook{path}", body, method=method)


def finish_job(url: str) -> str:
    """Run a job with one record and one invalid line to its end. Return its id."""
    body = call(url, "/v1/jobs", TARGETS, headers=HEADERS | {"Content-Type": "text/csv"}).body
    job_id: str = body["job"]["job_id"]
    deadline = time.monotonic() + 60
    while call(url, f"/v1/jobs/{job_id}", method="GET").body["state"] != "done":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return job_id


@dataclass
class Received:
    """The events (id, body, headers) that a webhook receiver got, and whether the receiver responds."""

    port: int = 0
    events: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)

    def wait(self, n: int) -> list[tuple[str, bytes, dict[str, str]]]:
        """Wait until at least ``n`` events have arrived, and return all events."""
        deadline = time.monotonic() + 60
        while len(self.events) < n:
            assert time.monotonic() < deadline, self.events
            time.sleep(0.02)
        return self.events


@contextmanager
def receiver() -> Iterator[Received]:
    received = Received()
    received.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.events.append((self.headers["webhook-id"], body, dict(self.headers.items())))
            received.answers.wait(60)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        received.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "log", "WEBHOOK_PRIVATE=1", before=QUICK) as started:
        yield started


def test_a_job_a_test_event_and_their_deliveries(private: Service) -> None:
    url = private.url
    with receiver() as received:
        hook = f"http://127.0.0.1:{received.port}/hook"
        made = webhook(url, "PUT", {"url": hook})
        secret = made.body["secret"]
        assert (made.status, made.body["url"], made.body["client_id"]) == (200, hook, "sandbox")
        job_id = finish_job(url)
        tested = webhook(url, "POST", path="/test")
        assert (tested.status, tested.body["type"]) == (202, "webhook.test")
        events = [Webhook(secret).verify(body, headers) for _, body, headers in received.wait(2)]
    by_type = {each["type"]: each["data"] for each in events}
    assert (by_type["job.done"]["job_id"], by_type["webhook.test"]) == (job_id, {})
    assert {name: by_type["job.done"]["targets"][name] for name in ("total", "done", "failed")} == {
        "total": 2,
        "done": 1,
        "failed": 1,
    }
    deadline = time.monotonic() + 30
    while True:
        listed = webhook(url, "GET", path="/deliveries").body
        if {each["state"] for each in listed["deliveries"]} == {"delivered"}:
            break
        assert time.monotonic() < deadline, listed
        time.sleep(0.05)
    assert {each["id"] for each in listed["deliveries"]} == {each for each, _, _ in received.events}
    first = webhook(url, "GET", path="/deliveries?limit=1").body
    assert first["next_before"] == first["deliveries"][0]["id"]
    second = webhook(url, "GET", path=f"/deliveries?limit=1&before={first['next_before']}").body
    assert first["deliveries"] + second["deliveries"] == listed["deliveries"]
    assert second["next_before"] is None
    assert metrics_of.value(url, "crawler_webhooks_total", result="delivered") == 2
    assert metrics_of.value(url, "crawler_webhooks_total", result="failed") == 0


def test_a_secret_is_in_no_later_response_and_in_no_log(private: Service) -> None:
    url, chosen = private.url, outbox.new_secret()
    first = webhook(url, "PUT", {"url": "https://example.com/a", "secret": chosen})
    kept = webhook(url, "PUT", {"url": "https://example.com/b"})
    replies = [first, kept, webhook(url, "GET"), webhook(url, "GET", path="/deliveries")]
    assert (kept.body["url"], first.body["secret"], kept.body["secret"]) == ("https://example.com/b", None, None)
    wrong = webhook(url, "PUT", {"url": "https://example.com/a", "secret": chosen[:-3]})
    assert wrong.code == "INVALID_REQUEST"
    replies.append(wrong)
    assert webhook(url, "DELETE").status == 204
    assert webhook(url, "GET").body == {"client_id": "sandbox", "url": None, "changed_at": None}
    new = webhook(url, "PUT", {"url": "https://example.com/c"}).body["secret"]
    text = repr(replies) + private.logged()
    assert not [each for each in (chosen[6:], chosen[6:-3], new[6:]) if each in text]
    webhook(url, "DELETE")


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "message"),
    [
        ("PUT", "", {}, "INVALID_REQUEST", "url: expected text"),
        ("PUT", "", {"url": 5}, "INVALID_REQUEST", "url: expected text"),
        ("PUT", "", {"url": "ftp://example.com"}, "INVALID_REQUEST", "url: expected an https URL"),
        ("PUT", "", {"url": "https://169.254.169.254/"}, "INVALID_REQUEST", "url: expected a public address"),
        ("PUT", "", {"url": "https://example.com", "secret": None}, "INVALID_REQUEST", "secret: expected text"),
        (
            "PUT",
            "",
            {"url": "https://example.com", "secret": "whsec_YQ=="},
            "INVALID_REQUEST",
            "secret: expected whsec_",
        ),
        ("PUT", "", {"url": "https://example.com", "events": []}, "INVALID_REQUEST", "events: expected"),
        ("PUT", "", b"[", "INVALID_JSON", "not valid JSON"),
        ("PUT", "?a=1", {"url": "https://example.com"}, "INVALID_REQUEST", "a: this route has none"),
        ("POST", "", {}, "METHOD_NOT_ALLOWED", "GET, HEAD, PUT, DELETE"),
        ("GET", "/test", None, "METHOD_NOT_ALLOWED", "POST"),
        ("POST", "/test", None, "INVALID_REQUEST", "webhook: this client has none"),
        ("GET", "/deliveries?before=x", None, "INVALID_REQUEST", "before: expected the next_before"),
        ("GET", "/other", None, "SCRAPER_NOT_FOUND", "/v1/webhook/deliveries"),
    ],
)
def test_wrong_requests(  # noqa: PLR0913, PLR0917  # a case
    private: Service, method: str, path: str, body: Any, code: str, message: str
) -> None:
    reply = webhook(private.url, method, body, path)
    assert reply.code == code
    assert message in reply.body["error"]["message"]
    assert webhook(private.url, "GET").body["url"] is None


def test_without_the_setting_only_https_to_public_addresses(service: Service) -> None:
    for url in ("http://example.com/", "https://127.0.0.1/", "http://127.0.0.1:8000/"):
        assert webhook(service.url, "PUT", {"url": url}).code == "INVALID_REQUEST"
    assert webhook(service.url, "PUT", {"url": "https://localhost/"}).status == 200
    webhook(service.url, "POST", path="/test")
    deadline = time.monotonic() + 30
    while not (attempts := webhook(service.url, "GET", path="/deliveries").body["deliveries"][0]["attempts"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert attempts[0]["error"] == "the host has no allowed address"


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_after_kill_9_an_event_is_sent_again_with_the_same_id(tmp_path: Path, workers: int) -> None:
    """The service is killed once before it sends the event of a job, and once while the receiver responds."""
    settings = "WEBHOOK_PRIVATE=1"
    with receiver() as received:
        with running(tmp_path / "log", settings, before=MUTE, workers=workers) as first:
            secret = webhook(first.url, "PUT", {"url": f"http://127.0.0.1:{received.port}/"}).body["secret"]
            finish_job(first.url)
            kill_all(first)
        received.answers.clear()
        with running(tmp_path / "log", settings, before=QUICK, workers=workers) as second:
            received.wait(1)
            kill_all(second)
        received.answers.set()
        with running(tmp_path / "log", settings, before=QUICK, workers=workers) as third:
            received.wait(2)
            deadline = time.monotonic() + 30
            while (last := webhook(third.url, "GET", path="/deliveries").body["deliveries"][0])["state"] != "delivered":
                assert time.monotonic() < deadline, last
                time.sleep(0.05)
    assert {each for each, _, _ in received.events} == {last["id"]}
    assert {Webhook(secret).verify(body, headers)["type"] for _, body, headers in received.events} == {"job.done"}


def kill_all(service: Service) -> None:
    """Kill ``scrapy serve`` and its worker processes at the same moment."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    for pid in (service.pid, *map(int, children)):
        os.kill(pid, signal.SIGKILL)


# Commands


def keys(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run ``scrapy keys``. Return its exit code, stdout and stderr."""
    options = ["-s", f"KEYS_FILE={folder / 'keys.sqlite'}", "-s", f"STORE={folder / 'store.sqlite3'}"]
    done = forks.run([*SCRAPY, "keys", *arguments, *options], cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_scrapy_keys_webhook(tmp_path: Path) -> None:
    keys(tmp_path, "create", "acme")
    _, secret, note = keys(tmp_path, "webhook", "acme", "https://example.com/a")
    assert outbox.check_secret(secret.strip())
    assert "Save this secret now" in note
    assert keys(tmp_path, "webhook", "acme", "https://example.com/b") == (0, "", "")
    assert keys(tmp_path, "webhook", "acme")[:2] == (0, "https://example.com/b\n")
    assert keys(tmp_path, "webhook", "acme", "none") == (0, "", "")
    assert keys(tmp_path, "webhook", "acme")[:2] == (0, "none\n")
    for arguments, exit_code, message in (
        (("other", "https://example.com/"), 1, "No valid key belongs to the client 'other'"),
        (("acme", "http://example.com/"), 2, "expected https, not http"),
        (("acme", "https://example.com/", "more"), 2, "Usage: scrapy keys create"),
    ):
        returned, _, errors = keys(tmp_path, "webhook", *arguments)
        assert (returned, message in errors) == (exit_code, True), errors


def test_scrapy_webhook_listen(private: Service) -> None:
    secret = outbox.new_secret()
    environment = os.environ | {"CRAWLER_WEBHOOK_SECRET": secret}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with forks.Popen([*SCRAPY, "webhook", "listen", "--port", "0"], cwd=ROOT, env=environment, **pipes) as listener:
        assert listener.stdout is not None
        assert listener.stderr is not None
        hook = listener.stdout.readline().removeprefix("listening on ").strip()
        webhook(private.url, "PUT", {"url": hook, "secret": secret})
        sent = webhook(private.url, "POST", path="/test").body["id"]
        event = json.loads(listener.stdout.readline())
        assert (event["id"], event["type"], event["data"]) == (sent, "webhook.test", {})
        headers = {"webhook-id": "1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
        assert call(hook, "/", b"{}", headers=headers).status == 400
        assert listener.stderr.readline() == "refused: No matching signature found\n"
        assert call(hook, "/", b"{}", headers=headers | {"webhook-signature": "x"}).status == 400
        assert call(hook, "/", b"{}").status == 400
        listener.send_signal(signal.SIGINT)
        assert listener.wait() == 0
    webhook(private.url, "DELETE")


@pytest.mark.parametrize(
    ("arguments", "secret", "message"),
    [
        (["listen"], "", "CRAWLER_WEBHOOK_SECRET: expected whsec_"),
        (["listen"], "whsec_short", "CRAWLER_WEBHOOK_SECRET: expected whsec_"),
        (["liste"], SECRET, "Usage: scrapy webhook listen"),
        (["listen", "--port", "99999"], SECRET, "Cannot listen on 127.0.0.1:99999"),
    ],
)
def test_wrong_use_of_scrapy_webhook(arguments: list[str], secret: str, message: str) -> None:
    environment = os.environ | {"CRAWLER_WEBHOOK_SECRET": secret}
    done = forks.run([*SCRAPY, "webhook", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
