"""The routes of webhooks, and the events, in the OpenAPI document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crawler.errors import PayloadTooLarge, UnsupportedMediaType
from crawler.platforms.model import Model
from crawler.service.description.contract import Time
from crawler.service.description.headers import RATE_LIMIT_HEADERS, TEXT, parameter
from crawler.service.description.jobs import JobTargets
from crawler.service.description.operations import ERRORS, body, empty, limit, operation, query, response, success
from crawler.service.description.schemas import Json, Refs

ID = "^msg_[0-9a-f]{32}$"
BODY_ERRORS = (*ERRORS, PayloadTooLarge, UnsupportedMediaType)


class WebhookSettings(Model):
    """The destination of the client's events."""

    url: str = Field(max_length=2_000, pattern="^https?://[!-~]+$")
    """An `https` URL of a public address."""
    secret: str = Field("", pattern="^whsec_([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/]{2}(==|[A-Za-z0-9+/]=))?$")
    """The secret that signs the events: `whsec_` and the Base64 form of 24 to 64 bytes. Without it, the current secret
    is kept, or a new one is generated."""


class Webhook(Model):
    """The webhook of the client."""

    client_id: str
    """The client that owns the API key of this request."""
    url: str | None
    """The URL to which events are sent; null if there is none."""
    changed_at: Time | None
    """When the URL was set; null if there is none."""


class NewWebhook(Webhook):
    """The new webhook of the client."""

    secret: str | None
    """The new secret, which no other response contains; null if the client has chosen one or had one before."""


class TestEvent(Model):
    """A test event that will be sent."""

    id: str = Field(pattern=ID)
    """The id of its delivery."""
    type: Literal["webhook.test"]
    """The type of the event."""


class DeliveryAttempt(Model):
    """A try to send an event."""

    at: Time
    """When the try began."""
    status: int | None
    """The HTTP status of the receiver's response; null if there was no response."""
    error: str | None
    """Why the try did not deliver the event, for people; null if it did."""
    duration_ms: int
    """Milliseconds until the response or the error."""


class Delivery(Model):
    """An event, and the tries to send it."""

    id: str = Field(pattern=ID)
    """The id of the event. The header `webhook-id` contains it in every try."""
    type: str
    """The type of the event."""
    state: Literal["pending", "delivered", "failed"]
    """`pending`: the event will be sent again. `failed`: it will not be sent again."""
    created_at: Time
    """When the event happened."""
    delivered_at: Time | None
    """When the event was delivered; null if it was not."""
    next_attempt_at: Time | None
    """The earliest time of the next try; null if there is none."""
    attempts: list[DeliveryAttempt]
    """The tries, the oldest first."""


class DeliveryList(Model):
    """A page of the events of the client, the newest first."""

    client_id: str
    """The client that owns the API key of this request."""
    deliveries: list[Delivery]
    """The events of this page."""
    next_before: str | None
    """The value of `before` for the next page; null on the last page."""


class JobChange(Model):
    """A job that is done, cancelled or paused."""

    job_id: str
    """The id of the job."""
    state: Literal["done", "cancelled", "paused"]
    """The state of the job."""
    idempotency_key: str | None
    """The `Idempotency-Key` of the job's upload; null if there was none."""
    targets: JobTargets
    """The numbers of the job's targets by state."""
    created_at: Time
    """When the job was made."""
    ended_at: Time | None
    """When the job ended or was cancelled; null if it is paused."""


class JobEvent(Model):
    """The body of an event about a job."""

    type: Literal["job.done", "job.cancelled", "job.paused"]
    """The type of the event."""
    timestamp: Time
    """When the event happened."""
    data: JobChange
    """The job."""


def paths(ref: Refs) -> Json:
    """Return the routes."""
    shown = "The webhook of the key's client.\nWithout its secret."
    changed = (
        "Set the URL to which events of the client are sent.\n"
        "Events about the client's jobs follow the Standard Webhooks specification."
    )
    deleted = "Send no more events.\nEvents that are not delivered yet fail."
    tested = "Send a test event.\n`/v1/webhook/deliveries` shows the result."
    sent = response("The event will be sent.", ref[TestEvent], RATE_LIMIT_HEADERS)
    listed = "The events of the client.\nOf the last 7 days, with all tries to send them."
    before = query("before", "The `next_before` of the previous page.", TEXT | {"pattern": ID})
    return {
        "/v1/webhook": {
            "get": operation("webhook", shown, success(ref[Webhook])),
            "put": operation("set-webhook", changed, success(ref[NewWebhook]), errors=BODY_ERRORS)
            | body(ref[WebhookSettings]),
            "delete": operation("delete-webhook", deleted, {"204": empty("The client has no webhook now.")}),
        },
        "/v1/webhook/test": {"post": operation("test-webhook", tested, {"202": sent})},
        "/v1/webhook/deliveries": {
            "get": operation("deliveries", listed, success(ref[DeliveryList]), limit("events"), before)
        },
    }


EVENTS: dict[str, tuple[str, type[Model]]] = {
    "job.done": ("All targets of a job have an outcome.", JobEvent),
    "job.cancelled": ("A job was cancelled, and its last target has ended.", JobEvent),
    "job.paused": ("A job has reached a limit.", JobEvent),
}


def events(ref: Refs) -> Json:
    """Return the requests that the service sends."""
    headers = {
        "webhook-id": "The id of the event, the same in every try.",
        "webhook-timestamp": "The Unix time of this try.",
        "webhook-signature": "The signature of this try.",
    }
    verified = "Verify the signature with a library of the Standard Webhooks specification."
    parameters = [parameter("header", name, text, TEXT, required=True) for name, text in headers.items()]
    delivered = {"204": {"description": "The event is delivered."}}
    return {
        name: {
            "post": operation(name.replace(".", "-"), f"{summary}\n{verified}", delivered, *parameters, errors=())
            | body(ref[event])
            | {"security": []}
        }
        for name, (summary, event) in EVENTS.items()
    }
