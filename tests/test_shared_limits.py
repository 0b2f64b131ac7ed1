"""Processes that share a platform's budget through a store never exceed it together."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests import forks
from tests.crawls import ROOT, command, lines
from tests.downloads.processes import PATIENT
from tests.shop import open_shop
from tests.tiers import FAST_ON_SQLITE


@dataclass
class Visits:
    """Counts the requests to a shop, and those that it serves at once."""

    seconds: float = 0.05
    """Seconds that the shop takes to serve a page."""
    number: int = 0
    most: int = 0
    _open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def alter(self, body: bytes) -> bytes:
        with self._lock:
            self.number += 1
            self._open += 1
            self.most = max(self.most, self._open)
        time.sleep(self.seconds)
        with self._lock:
            self._open -= 1
        return body


@FAST_ON_SQLITE
def test_three_crawls_have_at_most_two_requests_at_once(tmp_path: Path, location: str) -> None:
    """Each crawl has a record of each target."""
    file, outputs = tmp_path / "targets.jsonl", [tmp_path / f"{number}.jsonl" for number in range(3)]
    file.write_text("".join(json.dumps({"query": "mustard", "min_price": each}) + "\n" for each in range(12)))
    with open_shop() as shop:
        visits = Visits()
        shop.alter = visits.alter
        given = shop.settings() | {"SHARED_LIMITS": 1, "FAILURES_FEED": "", "STORE": location}
        given["PLATFORM_BUDGETS"] = json.dumps({"retail": {"concurrency": 2, "delay": 0}})
        running = [
            forks.Popen(command("retail", {"targets": file}, given, "-O", str(each)), cwd=ROOT, before=PATIENT)
            for each in outputs
        ]
        assert [each.wait(300) for each in running] == [0, 0, 0]
    assert [len(lines(each)) for each in outputs] == [12, 12, 12]
    assert (visits.number, visits.most) == (36, 2)
