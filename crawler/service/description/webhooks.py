"""The events that the service sends, in the OpenAPI document."""

from __future__ import annotations

from typing import Literal

from crawler.platforms.model import Model
from crawler.service.description.contract import Time
from crawler.service.description.headers import TEXT, parameter
from crawler.service.description.jobs import JobTargets
from crawler.service.description.operations import body, operation
from crawler.service.description.schemas import Json, Refs


class JobChange(Model):
    """A job that is done."""

    job_id: str
    """The id of the job."""
    name: str
    """The name of the job, which all its runs share; the id of the request if the job was made without a name."""
    run: int
    """The number of the run among those of the same name, starting with 1."""
    revision: int
    """How often the run has become done: 1, and one more after each retry."""
    state: Literal["done"]
    """The state of the job."""
    idempotency_key: str | None
    """The `Idempotency-Key` of the job's upload; null if there was none."""
    targets: JobTargets
    """The numbers of the job's targets by state."""
    created_at: Time
    """When the job was made."""
    ended_at: Time
    """When the job ended."""


class JobEvent(Model):
    """The body of an event."""

    type: Literal["job.done"]
    """The type of the event."""
    timestamp: Time
    """When the event happened."""
    data: JobChange
    """The job."""


def events(ref: Refs) -> Json:
    """Return the requests that the service sends."""
    headers = {
        "webhook-id": "The id of the event, the same in every try.",
        "webhook-timestamp": "The Unix time of this try.",
        "webhook-signature": "The signature of this try.",
    }
    done = (
        "All targets of a job have an outcome.\nSent to the URL that the operator has set for the client, again after"
        " each retry of the job. Verify the signature with a library of the Standard Webhooks specification."
    )
    parameters = [parameter("header", name, text, TEXT, required=True) for name, text in headers.items()]
    delivered = {"204": {"description": "The event is delivered."}}
    sent = operation("job-done", done, delivered, *parameters, errors=())
    return {"job.done": {"post": sent | body(ref[JobEvent]) | {"security": []}}}
