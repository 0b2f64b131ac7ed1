"""The models of jobs: their uploads, states and outcomes, and the events about them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from crawler.jobs.changes import Kind
from crawler.jobs.options import CategoryOptions
from crawler.platforms.model import Model
from crawler.service.envelope import Detail, Time, Upstream


class JobTarget(Model):
    """A target: the params of its scraper, and your own keys, which are copied to its record."""

    model_config = ConfigDict(extra="allow")

    id: str = ""
    """The client's own id, which its record contains. By default, it is made from the line number."""
    scraper: str = ""
    """The name of the scraper. Not needed with a link in `url`."""
    url: str = ""
    """A link to the page, instead of the other params."""


class JobListing(CategoryOptions, JobTarget):
    """A listing, and the number of its pages to read."""


class JobTargets(Model):
    """The numbers of a job's targets by state."""

    total: int
    """All targets, and lines that are not targets. A target that occurs on several lines is counted once."""
    waiting: int
    """Targets that have not started, or that wait for another attempt."""
    running: int
    """Targets in progress."""
    done: int
    """Targets with a record, or without new data."""
    failed: int
    """Targets that ended with an error, and lines that are not targets."""
    dead: int
    """Targets whose workers exited repeatedly."""
    cancelled: int
    """Targets that were not scraped because the job was cancelled."""


class Run(Model):
    """What a description of a job and an event about it have in common."""

    job_id: str
    """The id of the job. `/v1/jobs/<job_id>` is its URL."""
    name: str
    """The name of the job, which all its runs share; the id of the request if the job was made without a name."""
    run: int
    """The number of the run among those of the same name, starting with 1."""
    revision: int
    """How often the run has become done: one more after each retry."""
    idempotency_key: str | None
    """The `Idempotency-Key` of the upload; null if the upload had none."""
    targets: JobTargets
    """The numbers of targets by state."""
    created_at: Time
    """When the upload began."""


class Job(Run):
    """A job of the client."""

    state: Literal["open", "cancelled", "done"]
    """`done`: all targets have an outcome."""
    ended_at: Time | None
    """When the last target of a done job ended, or when the job was cancelled; null if the job is open."""
    expires_at: Time | None
    """When the job is deleted with its records; null if it has not ended, or still has targets in progress."""
    targets_per_minute: float | None
    """The mean rate since the upload; null if the job is not open, or no target has ended."""
    estimated_end: Time | None
    """The estimated end of the waiting and running targets at this rate; null if there is no rate."""
    cursor: str
    """The value of `after` that selects outcomes after this response."""


class JobCoverage(Model):
    """The rows of listings that are known to be incomplete."""

    listings: int
    """The number of listings that are known to be incomplete."""
    expected: int
    """The rows that these listings have, as the platforms state. Listings without a stated number add 0."""
    collected: int
    """The rows of these listings that were collected."""


class SourceWarnings(Model):
    """How often an optional source failed for one reason, or parts of a source's payload could not be read."""

    source: str
    """The name of the source, which is one page or call of the platform."""
    code: str
    """The error code of the warning."""
    reason: str
    """The cause in short, for programs. `unread`: the source responded, but parts of its payload could not be read."""
    count: int
    """The number of targets."""


class TargetLine(Model):
    """The keys that identify a target in a line."""

    id: str
    """The id of the upload's line; for a further page of a listing, an id of its own."""
    root: str = ""
    """The id of the line that requested the target; only in exhaustive listings."""
    scraper: str | None
    """The scraper's primary name; null in a failure if the line names none."""
    params: Any
    """The params of the target, including defaults; in a failure, also a text that is not a target."""
    columns: dict[str, Any] = Field({})
    """Your own keys or columns; absent if there are none."""


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


class FailureLine(InvalidLine, TargetLine):
    """A target of a job that ended with an error, or a line that is not a target."""

    parent: str | None
    """The id of the target that led to this one; null for lines of the upload."""
    retryable: bool
    """Whether a retry may succeed."""
    upstream: Upstream | None
    """How the platform responded, and the cause of the error; null if neither is known."""


class JobFailures(Model):
    """The failures of a job that have one code."""

    code: str
    """The error code."""
    count: int
    """The number of targets."""
    retryable: bool
    """Whether a retry may succeed. `POST .../retry` repeats only these targets, with `all=true` the others, too."""
    examples: list[FailureLine]
    """The first failures, at most three."""


class JobDetail(Job):
    """A job, with the outcomes of its targets."""

    previous: str | None
    """The id of the last run of the same name before this one that is done and kept; null if there is none."""
    arguments: dict[str, int | bool | str]
    """The options that the upload had, by name."""
    scrapers: list[str]
    """The scrapers of the targets."""
    codes: dict[str, int]
    """`OK` or an error code -> the number of targets that ended with this code."""
    failures: list[JobFailures]
    """The failures by code, with examples."""
    repeated: int
    """The number of lines whose target an earlier line has. It is scraped once."""
    partial: int
    """The number of targets with warnings, whose records may lack a part."""
    unread: dict[str, int]
    """Parts of payloads that could not be read: source and path -> the number of targets."""
    unread_rows: dict[str, int]
    """Source and path -> the number of rows that are missing because this part could not be read."""
    warnings: list[SourceWarnings]
    """The warnings about incomplete records, without those about unread parts."""
    coverage: JobCoverage | None
    """The coverage of incomplete listings; null if no listing is known to be incomplete."""


class JobUpload(Model):
    """The job of an upload, its lines, and its maximum cost."""

    job: Job | None
    """The job; null after `dry_run=true`."""
    previous: str | None
    """The id of the last run of the same name before this one that is done and kept; null if there is none."""
    valid: int
    """The number of lines with a target."""
    invalid: int
    """The number of lines without a target, which are failures of the job."""
    invalid_lines: list[InvalidLine]
    """The first 100 invalid lines."""
    records_at_most: int | None
    """The maximum number of billed records; null if it is not known."""
    requests_at_most: int | None
    """The maximum number of pages requested from the platforms, without retries; null if it is not known."""
    no_limit_because: str | None
    """Why a number is not known; null if both are known."""


class JobRun(Model):
    """A run with the targets of an earlier run."""

    job: Job
    """The new run."""
    previous: str | None
    """The id of the last run of the same name before this one that is done and kept; null if there is none."""


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
    """The job after the retry."""


class RecordLine(TargetLine):
    """A record of a job, without `explode`: a line of `jsonl`, an element of `json`; in tables, `data` is columns."""

    fetched_at: Time
    """When the record was complete."""
    warnings: list[dict[str, Any]]
    """The missing parts of the record."""
    note: str
    """Sentences about params that were reduced to their limits or that no response proves; "" if there are none."""
    data: dict[str, Any]
    """The record, or its selected fields."""


class ChangeLine(TargetLine):
    """A change of a target, a row or a value since an earlier run of the job."""

    change: Kind
    """The kind of the change (docs/changes.md)."""
    run: int
    """The number of the run."""
    baseline_run: int | None
    """The number of the earlier run with the record that was compared; null if there is none."""
    rows: str
    """The list with the row, such as `products`; "" if the change is not that of a row."""
    key: str
    """The key of the row, such as the `item_id`; "" without a row."""
    path: str
    """The dotted path of the value in the row, or in the record; "" if the whole row or target has changed."""
    old: Any
    """The earlier value, or the row that is gone."""
    new: Any
    """The new value, or the row that has appeared."""
    code: str
    """Why the target was not compared, or which error states that it is gone; "" for other changes."""


class ChangeCounts(Model):
    """How much has changed since the earlier jobs of the same name."""

    counts: dict[str, int]
    """The number of changes by kind, of the targets that were compared, and of what is not known (docs/changes.md)."""
    url: str
    """Where the changes are: a path if the operator has not set `SERVICE_URL`."""


class JobChange(Run):
    """A job that is done."""

    state: Literal["done"]
    """The state of the job."""
    ended_at: Time
    """When the job ended."""
    changes: ChangeCounts | None
    """What has changed; null if there is no earlier job of the same name, or if the jobs could not be compared."""


class JobEvent(Model):
    """The body of an event."""

    type: Literal["job.done"]
    """The type of the event."""
    timestamp: Time
    """When the event happened."""
    data: JobChange
    """The job."""
