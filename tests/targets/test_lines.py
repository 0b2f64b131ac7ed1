"""The lines of records and failures are the same in feeds, exports and downloads, and are described once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from crawler.errors import TargetNotFound
from crawler.jobs import outcomes
from crawler.jobs.outcomes import InputId, Line
from crawler.outputs.feed_files import failure_line
from crawler.registry import find_scraper
from crawler.service.jobs.models import FailureLine, RecordLine
from crawler.targets.parser import TargetParser
from crawler.targets.target import InvalidTarget, Outcome, SavedTarget, Target

PHOTOS = find_scraper("shortvideo-photo-search-v4")
TIMELINE = find_scraper("microblog-profile")
CATEGORY = find_scraper("retail-category-v4")
VIDEOS = find_scraper("videosite-profile-v3")
REDUCED = "count=30 was used instead of 99: it is the limit."


def parsed(given: dict[str, Any], *, text: bool = False) -> Target:
    target = TargetParser((PHOTOS, TIMELINE, CATEGORY, VIDEOS)).parse({"id": "a", **given}, text=text, batch=True)
    assert isinstance(target, Target), target
    return target


@pytest.mark.parametrize(
    ("given", "text", "note"),
    [
        ({"keywords": "whales", "count": 99}, False, REDUCED),
        ({"keywords": "whales", "count": "99"}, True, REDUCED),
        ({"url": "https://www.tiktok.com/search/photo?q=whales", "count": 99}, False, REDUCED),
        ({"keywords": "whales", "count": 30}, False, ""),
        ({"scraper": VIDEOS.name, "username": "@harborlights", "include_about": "1"}, True, ""),
        ({"cat_id": "976759", "page": 2}, False, ""),
    ],
)
def test_the_note_of_a_target_is_kept_with_it(given: dict[str, Any], text: bool, note: str) -> None:  # noqa: FBT001
    target = parsed(given, text=text)
    saved = SavedTarget.model_validate(target.dump())
    loaded = TargetParser((target.scraper,)).load(saved)
    assert isinstance(loaded, Target)
    assert (target.note, loaded.note, loaded.followup().note) == (note, note, note)
    assert loaded.key == target.key


def test_the_next_page_of_a_target_has_the_users_own_columns() -> None:
    target = replace(parsed({"cat_id": "976759"}), columns={"sku": "007"})
    assert target.followup(page=2).followup(page=3).as_dict()["columns"] == {"sku": "007"}


def test_a_target_of_an_earlier_version_has_no_note() -> None:
    saved = {key: value for key, value in parsed({"cat_id": "1"}).dump().items() if key != "note"}
    assert SavedTarget.model_validate(saved).note == ""


def stored(target: Target | InvalidTarget, work: Any, state: str, outcome: dict[str, Any], data: Any = None) -> Line:
    """The outcome of a target as a job has it."""
    place = (InputId(0, target.id, {}, target.line, getattr(target, "note", "")),)
    return Line(b"", 0, work, state, None, outcome, 1, data, place)


def test_the_record_of_a_job_has_the_line_of_a_batch() -> None:
    target = parsed({"keywords": "whales", "count": 99})
    fetched_at = datetime(2026, 11, 1, tzinfo=UTC)
    record = PHOTOS.item({"data": []}, target, fetched_at)
    line = stored(target, target.dump(), "done", {"fetched_at": fetched_at.isoformat(), "warnings": []}, {"data": []})
    written = dict(record.as_line())
    assert outcomes.record_line(line) == written
    assert list(outcomes.record_line(line)) == list(written)
    assert written["note"] == REDUCED
    assert set(written) == RecordLine.model_fields.keys() - {"root", "columns"}
    RecordLine.model_validate(written)


def test_the_failure_of_a_job_has_the_line_of_a_feed() -> None:
    target = parsed({"cat_id": "1"})
    invalid = TargetParser((CATEGORY,)).parse({"id": "b", "cat_idd": "1"}, line=7)
    assert isinstance(invalid, InvalidTarget)
    error = TargetNotFound("gone")
    for each, work in ((target, target.dump()), (invalid, {**invalid.as_dict(), "line": 7})):
        written = failure_line(Outcome(each, None, error, 0))
        line = stored(each, work, "failed", {"error": error.as_dict() | {"retryable": error.retryable}})
        assert outcomes.failure_line(line) == written
        assert list(outcomes.failure_line(line)) == list(written)
        assert set(written) == FailureLine.model_fields.keys() - {"root", "columns"}
        FailureLine.model_validate(written)
