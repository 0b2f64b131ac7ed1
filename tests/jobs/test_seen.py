"""The entries that runs with ``since=last`` have seen, in the store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from scrapy.settings import Settings
from structlog.testing import capture_logs

from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from crawler.jobs.seen import MAX_IDS_PER_LISTING, SeenByCrawls, SeenByJobs, add_entries, entries_seen
from crawler.jobs.store import Store
from crawler.registry import scrapers
from crawler.targets.parser import check_params
from crawler.targets.target import Outcome, Record, Target


async def test_only_the_newest_ids_are_kept(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store.sqlite3"))

    async def add(listing: bytes, *ids: str) -> None:
        await store.transact(lambda session: add_entries(session, listing, ids))

    await add(b"a", *map(str, range(MAX_IDS_PER_LISTING)))
    await add(b"a", "new", "newer")
    await add(b"b", "0")
    kept = {"new", "newer", *(str(number) for number in range(MAX_IDS_PER_LISTING - 2))}
    assert await entries_seen(store, b"a") == kept
    assert await entries_seen(store, b"b") == {"0"}
    await store.close()


async def test_clients_and_the_sandbox_share_no_seen_entries(tmp_path: Path) -> None:
    """What one client has collected is new for another one. Commands have no owner."""
    scraper = scrapers()["microblog-profile"]
    target = Target("t", scraper, check_params(scraper, scraper.example))
    location = str(tmp_path / "store.sqlite3")
    jobs, store = Jobs(location), Store(location)

    async def key(owner: str, *, sandbox: bool) -> bytes | None:
        job = await jobs.begin(f"of {owner} {sandbox}", owner, options=JobOptions(sandbox=sandbox))
        return SeenByJobs(store, job, lambda _: target.key).key_of(target)

    of_jobs = [await key(owner, sandbox=sandbox) for owner in ("", "acme", "other") for sandbox in (False, True)]
    assert len({*of_jobs}) == 6
    assert of_jobs[:2] == [SeenByCrawls(store, sandbox=sandbox).key_of(target) for sandbox in (False, True)]


async def test_if_its_store_fails_a_crawl_reads_all_pages(tmp_path: Path) -> None:
    scraper = scrapers()["microblog-profile"]
    target = Target("t", scraper, check_params(scraper, scraper.example))
    data = {"data": {"main": [{"post_id": "2", "upload_timestamp": 1}]}}
    with capture_logs() as logs:
        path = tmp_path / "store.sqlite3"
        since = SeenByCrawls.of(Settings({"STORE": str(path)}))
        path.unlink()
        path.mkdir()
        await since.load(target)
        assert since.has_new_below(target, data)
        assert since.has_new_below(target, {"data": {"main": []}}), "a page may be empty although others follow"
        since.completed(Outcome(target, Record(data, target, datetime.now(UTC)), None, 0))
        await since.close()
    assert [each["event"] for each in logs if each["event"].startswith("seen")] == ["seen_not_read", "seen_not_stored"]
