"""``scrapy keys``: the API keys of the endpoint's clients."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawler.commands.serve import keys_file
from crawler.service.keys import KeyStore


class Command(ScrapyCommand):
    """``create CLIENT`` prints a key, once; ``list`` and ``revoke ID`` know keys by their id."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "create <client> | list | revoke <id>"

    def short_desc(self) -> str:
        return "Create, list and revoke the endpoint's API keys"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        store = KeyStore(keys_file(self.settings))
        match args:
            case ["create", client] if client.strip():
                print(store.create(client))
                print("Keep it: only its hash is stored.", file=sys.stderr)
            case ["list"]:
                for key in store.all():
                    state = "revoked" if key.revoked else "valid"
                    print(f"{key.id}  {state:7}  {datetime.fromtimestamp(key.created, UTC):%Y-%m-%d}  {key.client}")
            case ["revoke", key_id]:
                if not store.revoke(key_id):
                    print(f"There is no valid key with the id {key_id}.", file=sys.stderr)
                    self.exitcode = 1
            case _:
                raise UsageError(f"Use: scrapy keys {self.syntax()}")
