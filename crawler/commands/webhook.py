"""``scrapy webhook``: a receiver of webhooks, for developers."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scrapy.exceptions import UsageError
from standardwebhooks import Webhook, WebhookVerificationError

from crawler.configuration.command import CheckedCommand
from crawler.service.keys import check_secret

DEFAULT_PORT = 8790
MAX_BODY_BYTES = 1_000_000
IDLE_SECONDS = 10.0
"""Timeout in seconds of a connection that sends nothing."""


class Command(CheckedCommand):
    """Receive, verify and print the events of webhooks.

    Prints one line of JSON for each event. Signatures are verified with the secret in the environment variable
    CRAWLER_WEBHOOK_SECRET, and other requests are refused (docs/webhooks.md).
    """

    arguments = "listen"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default is 127.0.0.1)")
        parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"port (default is {DEFAULT_PORT})")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args != ["listen"]:
            raise self.wrong_arguments()
        try:
            secret = check_secret(str(self.settings["WEBHOOK_SECRET"] or ""))
        except ValueError as error:
            raise UsageError(f"CRAWLER_WEBHOOK_SECRET: {error}") from None
        try:
            server = ThreadingHTTPServer((opts.host, opts.port), receiver(Webhook(secret)))
        except (OSError, OverflowError) as error:
            raise UsageError(f"Cannot listen on {opts.host}:{opts.port}: {error}") from None
        print(f"listening on http://{opts.host}:{server.server_port}", flush=True)
        with server, suppress(KeyboardInterrupt):
            server.serve_forever()


def receiver(webhook: Webhook) -> type[BaseHTTPRequestHandler]:
    """Return a handler that prints the events with a valid signature, and refuses other requests."""

    class Receiver(BaseHTTPRequestHandler):
        timeout = IDLE_SECONDS

        def do_POST(self) -> None:  # http.server calls this name
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
                self._refuse(f"expected a body of at most {MAX_BODY_BYTES} bytes")
                return
            try:
                event = webhook.verify(self.rfile.read(int(length)), dict(self.headers.items()))
            except (WebhookVerificationError, ValueError) as error:
                self._refuse(str(error))
                return
            print(json.dumps({"id": self.headers["webhook-id"], **event}), flush=True)
            self._respond(HTTPStatus.NO_CONTENT)

        def _refuse(self, reason: str) -> None:
            print(f"refused: {reason}", file=sys.stderr, flush=True)
            self._respond(HTTPStatus.BAD_REQUEST)

        def _respond(self, status: HTTPStatus) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing: the events are printed."""

    return Receiver
