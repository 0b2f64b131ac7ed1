"""``scrapy egress check`` shows suspended egresses with sources and reasons. ``test_egresses.py`` tests the rest."""

from __future__ import annotations

import asyncio
import io
import time

import pytest
from scrapy.settings import Settings

from crawler.commands import egress
from crawler.commands.egress import Row, Suspension, check_all, print_tables, sums
from crawler.downloads.breaker import BreakerKey
from crawler.downloads.tunnel import Check

BREAKERS = {
    "retail:search@a": (60, "challenge"),
    "retail:listing@a": (0, ""),
    "retail:search@b": (60, "challenge"),
    "retail:listing@b": (30, "rate_limited"),
    "retail:search@c": (0, "challenge"),
    "retail:(connection)@c": (90, "egress_failed"),
    "photoapp:page@a": (0, ""),
    "photoapp:(platform)": (45, "login_wall"),
}
"""Key of a circuit breaker in the store -> seconds until the end of its cooldown (0: it has ended), and the reason."""


def rows(monkeypatch: pytest.MonkeyPatch, *platforms: str) -> dict[tuple[str, str], Row]:
    def shared_breakers(*_: object) -> dict[BreakerKey, Suspension]:
        keys = {BreakerKey.parse(key): rest for key, rest in BREAKERS.items()}
        return {key: Suspension(key.source, time.time() + left, reason) for key, (left, reason) in keys.items()}

    async def check(*_: object, **__: object) -> Check:
        return Check("", 0.01, "TLSv1.3")

    monkeypatch.setattr(egress, "_shared_breakers", shared_breakers)
    monkeypatch.setattr(egress, "check", check)
    settings = Settings({"EGRESSES": [{"name": name, "proxy": "http://127.0.0.1:9"} for name in "abc"]})
    return {(row.platform, row.egress): row for row in asyncio.run(check_all([*platforms], settings))}


def test_an_egress_rests_only_if_all_sources_rest_that_were_requested_through_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = rows(monkeypatch, "retail", "photoapp")
    now = time.time()
    resting = {key: round((row.resting_until - now) / 15) * 15 for key, row in found.items() if row.resting_until}
    assert resting == {
        ("retail", "b"): 30,
        ("retail", "c"): 90,
        **{("photoapp", name): 45 for name in "abc"},
    }
    assert sums([*found.values()]) == {"retail": 1_800, "photoapp": 0}


def test_the_table_shows_which_sources_rest_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows(monkeypatch, "retail", "photoapp")
    rests = {key: [(rest.source, rest.reason) for rest in row.rests] for key, row in found.items()}
    assert rests["retail", "a"] == [("search", "challenge")]
    assert rests["retail", "b"] == [("listing", "rate_limited"), ("search", "challenge")]
    assert rests["retail", "c"] == [("(connection)", "egress_failed")]
    assert rests["photoapp", "b"] == [("(platform)", "login_wall")]
    written = io.StringIO()
    print_tables([*found.values()], written, width=200)
    for text in ("search: ", " UTC (challenge)", " UTC (egress_failed)", "all egresses: "):
        assert text in written.getvalue()
