"""Models of the responses about jobs, from which the OpenAPI document is generated, as in ``contract.py``."""

from __future__ import annotations

from typing import Any, Literal

from crawler.platforms.model import Model
from crawler.service.description.contract import Detail, Time
from crawler.service.description.status_contract import SourceWarnings


class JobTargets(Model):
    """The numbers of a job's targets by state."""

    total: int
    """All targets. A target that occurs on several lines is counted once."""
    waiting: int
    """Targets that have not started, or that wait for another attempt."""
    running: int
    """Targets in progress."""
    paused: int
    """Targets beyond the client's quota. They continue when there is quota again."""
    done: int
    """Targets with a record, or without new data."""
    failed: int
    """Targets that ended with an error."""
    dead: int
    """Targets whose workers exited repeatedly."""
    cancelled: int
    """Targets that were not scraped because the job was cancelled."""


class Job(Model):
    """A job of the client."""

    job_id: str
    """The id of the job. `/v1/jobs/<job_id>` is its URL."""
    state: Literal["open", "paused", "cancelled", "done"]
    """`paused`: all targets that are left are paused. `done`: all targets have an outcome."""
    idempotency_key: str | None
    """The `Idempotency-Key` of the upload; null if it had none."""
    targets: JobTargets
    """The numbers of targets by state."""
    created_at: Time
    """When the upload began."""
    ended_at: Time | None
    """When the last target ended; null if the job is not done or cancelled."""
    expires_at: Time | None
    """When the job is deleted with its records; null if it has not ended."""
    targets_per_minute: float | None
    """The mean rate since the upload; null if the job is not open, or no target has ended."""
    estimated_end: Time | None
    """The estimated end of the waiting and running targets at this rate; null if there is no rate."""
    cursor: str
    """The value of `after` that selects outcomes after this response."""


class JobCoverage(Model):
    """The rows of listings that are known to be incomplete."""

    listings: int
    """The number of these listings."""
    expected: int
    """The rows that the platforms state. Listings without a stated number add 0."""
    collected: int
    """The rows that were collected."""


class JobDetail(Job):
    """A job, with the outcomes of its targets."""

    arguments: dict[str, str]
    """`max_pages`, `exhaustive` and `since`, if the upload had them."""
    scrapers: list[str]
    """The scrapers of the targets."""
    codes: dict[str, int]
    """The number of ended targets by `OK` and error code."""
    unread: dict[str, int]
    """Parts of payloads that could not be read: source and path -> the number of targets."""
    unread_rows: dict[str, int]
    """Source and path -> the number of rows that are missing because this part could not be read."""
    warnings: list[SourceWarnings]
    """Other warnings about incomplete records."""
    coverage: JobCoverage | None
    """The coverage of incomplete listings; null if no listing is known to be incomplete."""


class InvalidLine(Model):
    """A line of an upload that is not a target."""

    line: int | None
    """The line number, starting with 1; null if it is not known."""
    code: str
    """The error code."""
    message: str
    """Text for people. It may change."""
    details: list[Detail]
    """The invalid values, if they are known."""


class JobUpload(Model):
    """The job of an upload, its lines, and its maximum cost."""

    job: Job | None
    """The job; null after `dry_run=true`."""
    valid: int
    """The number of lines with a target."""
    invalid: int
    """The number of other lines. They are failures of the job."""
    invalid_lines: list[InvalidLine]
    """The first 100 invalid lines."""
    records_at_most: int | None
    """The maximum number of billed records; null if it is not known."""
    requests_at_most: int | None
    """The maximum number of pages requested from the platforms, without retries; null if it is not known."""
    no_limit_because: str | None
    """Why a number is not known; null if both are known."""


class JobList(Model):
    """A page of the client's jobs, the newest first."""

    client_id: str
    """The client that owns the API key of this request."""
    jobs: list[Job]
    """The jobs of this page."""
    next_after: str | None
    """The value of `after` for the next page; null on the last page."""


class JobRetried(Model):
    """A job whose failed targets wait for another attempt."""

    retried: int
    """The number of these targets."""
    job: Job
    """The job."""


class RecordLine(Model):
    """A line of `format=jsonl` or `json`, without `explode`."""

    id: str
    """The id of the upload's line; for a further page of a listing, an id of its own."""
    scraper: str
    """The scraper's primary name."""
    params: dict[str, Any]
    """The params of the target, including defaults."""
    fetched_at: Time
    """When the record was complete."""
    warnings: list[dict[str, Any]]
    """The missing parts of the record."""
    data: dict[str, Any]
    """The record, or its selected fields."""
