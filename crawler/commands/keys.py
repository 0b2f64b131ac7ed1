"""``scrapy keys``: manages the API keys of the endpoint's clients."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError
from scrapy.exceptions import UsageError

from crawler.commands.serve import keys_file
from crawler.configuration.command import CheckedCommand, at_least_one, wrong_use
from crawler.configuration.setting_types import rate
from crawler.errors import StoreUnavailable
from crawler.jobs import store_location
from crawler.platforms.model import first_problem
from crawler.service.keys import Holder, KeyStore, Webhook, export, monthly_quota, new_secret, quota_text

if TYPE_CHECKING:
    from crawler.jobs.store import Store


class Command(CheckedCommand):
    """Create, list, revoke and export the endpoint's API keys, set quotas and webhooks, and print usage.

    create: prints a new key, which cannot be printed again. list: prints all keys with their ids, clients and limits.
    revoke: revokes the key with this id. export: prints the hashes of the valid keys, and the webhooks, as a value for
    the setting API_KEYS. quota: limits the billable calls of a client in a month, with all of its keys together; none
    removes the limit, and without a value the limit is printed. usage: prints the calls of the last 31 days, of one or
    all clients. webhook: sends an event to a URL when a job of a client is done (docs/webhooks.md). For a client
    without a secret, it prints a new one, which signs the events and cannot be printed again; none deletes URL and
    secret, and without a value the URL is printed.
    """

    arguments = (
        "create <client> | list | revoke <id> | export | quota <client> [<n>/month | none] | usage [<client>]"
        " | webhook <client> [<url> | none]"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        limits = parser.add_argument_group("limits of the key to create")
        limits.add_argument(
            "--rate", type=per_period, help="calls per period, such as 60/minute (default is the setting KEY_RATE)"
        )
        limits.add_argument(
            "--concurrency", type=at_least_one, help="calls in flight (default is the setting KEY_CONCURRENCY)"
        )
        limits.add_argument(
            "--quota",
            type=monthly,
            help="billable calls per month of the client, with all of its keys, such as 100000/month"
            " (default is the client's current quota, if any)",
        )
        parser.add_argument("--secret", help="secret of the webhook (default is the current secret, or a new one)")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        store = KeyStore(keys_file(self.settings))
        try:
            match args:
                case ["create", client]:
                    self._create(store, client, opts)
                case ["list"]:
                    self._list(store)
                case ["revoke", key_id]:
                    if not store.revoke(key_id):
                        self.fail(f"No valid key has the id {key_id}. 'scrapy keys list' prints all ids.")
                case ["export"]:
                    print(export(store.all()))
                case ["quota", client, *quota] if len(quota) <= 1:
                    self._quota(store, client, *quota)
                case ["usage", *client] if len(client) <= 1:
                    self._print_usage(client)
                case ["webhook", client, *url] if len(url) <= 1:
                    self._webhook(store, client, opts.secret, *url)
                case _:
                    raise self.wrong_arguments()
        except (StoreUnavailable, sqlite3.Error) as error:
            place = store.path if isinstance(error, sqlite3.Error) else "The store"
            self.fail(f"{place} cannot be read: {error.__cause__ or error}.")

    def _store(self) -> Store:
        """Return the store of jobs, which also contains usage."""
        from crawler.jobs.store import Store  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

        return Store(store_location(self.settings))

    @staticmethod
    def _create(store: KeyStore, client: str, opts: argparse.Namespace) -> None:
        with wrong_use(ValueError):
            print(store.create(client, opts.rate, opts.concurrency, opts.quota))
        print("Save this key now: only its hash is stored.", file=sys.stderr)

    @staticmethod
    def _list(store: KeyStore) -> None:
        for key in store.all():
            state = "revoked" if key.revoked else "valid"
            day = f"{datetime.fromtimestamp(key.created, UTC):%Y-%m-%d}"
            own = key.holder
            limits = [own.rate or "", f"{own.concurrency} in flight" if own.concurrency else ""]
            limits.append(f"quota {quota_text(own.quota)}" if own.quota else "")
            print("  ".join([own.key_id, f"{state:7}", day, printable(own.client), *filter(None, limits)]))

    def _quota(self, store: KeyStore, client: str, text: str | None = None) -> None:
        """Set or remove (``none``) the quota of a client. Without a text, print the quota and its use in this month."""
        from crawler.service import usage  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

        if text is not None:
            try:
                new = None if text == "none" else monthly_quota(text)
            except ValueError as error:
                raise UsageError(f"{error}. To remove the quota, use none instead of a number.") from None
            if not store.set_quota(client, new):
                self._fail_without_key(client)
            return
        found = self._holder(store, client)
        if found is None:
            return
        if found.quota is None:
            print("none")
        else:
            work = partial(usage.quota_report, client=client, quota=found.quota)
            state = self._store().transact_sync(work, write=False)
            print(f"{quota_text(found.quota)}  used {state['used']}  resets at {state['resets_at']}")

    def _webhook(self, store: KeyStore, client: str, secret: str | None, url: str | None = None) -> None:
        """Set or delete (``none``) the webhook of a client. Without a URL, print the current URL."""
        found = self._holder(store, client)
        if found is None:
            return
        current = found.webhook
        if url is None:
            print(current.url if current else "none")
        elif url == "none":
            store.set_webhook(client, None)
        else:
            known = secret or (current.secret if current else None)
            try:
                new = Webhook(url=url, secret=known or new_secret())
            except ValidationError as error:
                raise UsageError(first_problem(error)) from None
            store.set_webhook(client, new)
            if known is None:
                print(new.secret)
                print("Save this secret now: it verifies the events, and is not printed again.", file=sys.stderr)

    def _holder(self, store: KeyStore, client: str) -> Holder | None:
        """Return a client with one of its valid keys. Without a valid key, the command fails."""
        found = next((key.holder for key in store.all() if key.revoked is None and key.holder.client == client), None)
        if found is None:
            self._fail_without_key(client)
        return found

    def _fail_without_key(self, client: str) -> None:
        self.fail(f"No valid key belongs to the client {client!r}. 'scrapy keys list' prints all clients.")

    def _print_usage(self, clients: list[str]) -> None:
        """Print one line per client, day and scraper, the newest day first."""
        from crawler.service import usage  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

        store = self._store()
        print(f"{'client':20}  {'day':10}  {'scraper':30}  {'calls':>8}  {'billable':>8}  {'partial':>8}  outcomes")
        for client in clients or store.transact_sync(usage.clients, write=False):
            for entry in store.transact_sync(partial(usage.report, client=client), write=False)["usage"]:
                outcomes = " ".join(f"{code}={calls}" for code, calls in entry["outcomes"].items())
                name = printable(client)
                print(
                    f"{name:20}  {entry['day']}  {entry['scraper']:30}  {entry['calls']:8}  {entry['billable']:8}"
                    f"  {entry['partial']:8}  {outcomes}"
                )


def printable(client: str) -> str:
    """Return a client's name with control characters escaped. Earlier versions accepted such names."""
    return client if client.isprintable() else ascii(client)


def per_period(text: str) -> str:
    """Parse the value of ``--rate``."""
    try:
        return rate(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, not {text!r}") from None


def monthly(text: str) -> int:
    """Parse the value of ``--quota``, such as ``100000/month``. Return the number of calls."""
    try:
        return monthly_quota(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
