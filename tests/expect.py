"""Writes the missing expected outputs of fixtures that ``tests.transcribe`` made: ``python -m tests.expect``.

An expected output is computed by the small readers in ``tests/field_maps``, which follow the notes on the platform, not
by the page object. It is committed before the page object reads the fixture, and is never overwritten.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from tests import transcribe

FAILURES = {
    ("microblog", "graphql-error-144-not-found-2024-09"): "TargetNotFound",
    ("microblog", "graphql-error-214-bad-request"): "ExtractionFailed",
    # The capture is cut at both ends. A page without a readable script is an error, never an empty profile.
    ("microblog", "ssr-profile-page-excerpt-logged-out-2026-09-12"): "ExtractionFailed",
    ("microblog", "user-by-screen-name-suspended"): "TargetRestricted",
    ("microblog", "tweet-result-unavailable-suspended"): "TargetRestricted",
    ("microblog", "tweet-detail-tombstone"): "TargetRestricted",
    ("photoapp", "xig-page-throttled-shell-20261004"): "UpstreamRateLimited",
    ("photoapp", "xig-page-not-found-error-route-20261004"): "TargetNotFound",
    ("photoapp", "xig-page-login-route-20261004"): "UpstreamBlocked",
    ("photoapp", "xig-gql-missing-20260922"): "TargetNotFound",
    ("photoapp", "xig-gql-gated-age-202608"): "TargetRestricted",
    ("photoapp", "og-meta-only-photo-20260805"): "UpstreamRateLimited",
    ("photoapp", "xig-fragment-carousel-image-child-20261004"): "ExtractionFailed",
    ("professional", "profile-not-found-202406"): "TargetNotFound",
    ("professional", "challenge-js-stub-202406"): "UpstreamBlocked",
    ("professional", "guest-homepage-instead-of-profile-202406"): "UpstreamBlocked",
    ("professional", "http999-authwall-redirect-stub-2018copy"): "UpstreamBlocked",
    ("retail", "challenge-robot-or-human-2025-06"): "UpstreamBlocked",
    ("retail", "product-page-not-a-listing-2024-12"): "TargetNotFound",
    ("retail", "product-out-of-stock-2026"): "TargetNotFound",
    ("videosite", "error-429-sorry-201912"): "UpstreamRateLimited",
    ("videosite", "page-results-empty-html-ytcfg-202605"): "TargetNotFound",
    ("videosite", "feed-rss-404-terminated-202601"): "TargetNotFound",
    ("videosite", "removed-community-guidelines"): "TargetNotFound",
    ("videosite", "terminated-tos"): "TargetNotFound",
    ("videosite", "does-not-exist"): "TargetNotFound",
    ("videosite", "terminated-copyright"): "TargetNotFound",
    ("videosite", "browseid-malformed-http-400"): "TargetNotFound",
    ("videosite", "resolve-url-of-an-unknown-handle-http-404"): "TargetNotFound",
}
"""The expected errors for captures of failures, from the tables of failures in the notes."""


def expected(entry: transcribe.Entry) -> dict[str, Any] | None:
    """Return what must be extracted from a fixture; None if no field map covers it."""
    body = transcribe.fixture_body(entry)
    fields = import_module(f"tests.field_maps.{entry.platform}")
    if transcribe.is_json(body):
        payload = json.loads(body)
    elif hasattr(fields, "payload_of"):
        payload = fields.payload_of(body)
    else:
        return None
    found: dict[str, Any] | None = fields.expected(entry.page.rpartition(".")[2], payload)
    return found


def main() -> None:
    """Write the missing expected outputs, and print the fixtures that still have none."""
    for entry in transcribe.entries():
        if (entry.folder / "output.json").exists() or (entry.folder / "exception.json").exists():
            continue
        error = FAILURES.get((entry.platform, entry.name))
        if error:
            write(entry, "exception.json", {"import_path": f"crawler.errors.{error}", "msg": ""})
        elif (data := expected(entry)) is not None:
            write(entry, "output.json", data)
        else:
            print(f"no expectation: {entry.platform} {entry.name}")  # noqa: T201


def write(entry: transcribe.Entry, name: str, value: dict[str, Any]) -> None:
    """Write an expected output in web-poet's format."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, indent=2)
    (entry.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
