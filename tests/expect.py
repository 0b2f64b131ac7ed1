"""Writes the missing expected outputs of fixtures that ``tests.transcribe`` made: ``python -m tests.expect``.

An expected error is listed in ``FAILURES``. Expected data is computed not by the page object, but by the small readers
in ``tests/field_maps``, which follow notes on the platform that are not part of the repository. An expected output is
committed before the page object reads the fixture, and is never overwritten.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from tests import transcribe

FAILURES = {
    ("microblog", "graphql-error-144-not-found-2024-09"): ("TargetNotFound", "not_found"),
    ("microblog", "graphql-error-214-bad-request"): ("ExtractionFailed", "bad_request"),
    # The capture is cut at both ends. A page without a readable script is an error, never an empty profile.
    ("microblog", "ssr-profile-page-excerpt-logged-out-2026-09-12"): ("ExtractionFailed", ""),
    ("microblog", "user-by-screen-name-suspended"): ("TargetRestricted", "suspended"),
    ("microblog", "tweet-result-unavailable-suspended"): ("ExtractionFailed", "unknown_form"),
    ("photoapp", "xig-page-throttled-shell-20261004"): ("UpstreamRateLimited", "throttled_shell"),
    ("photoapp", "xig-page-not-found-error-route-20261004"): ("TargetNotFound", "not_found"),
    ("photoapp", "xig-page-login-route-20261004"): ("UpstreamBlocked", "login_wall"),
    ("photoapp", "xig-gql-missing-20260922"): ("ExtractionFailed", "null_post"),
    ("photoapp", "xig-gql-gated-age-202608"): ("TargetRestricted", "age_gate"),
    ("photoapp", "og-meta-only-photo-20260805"): ("UpstreamRateLimited", "throttled_shell"),
    ("photoapp", "xig-fragment-carousel-image-child-20261004"): ("ExtractionFailed", "unknown_form"),
    ("professional", "profile-not-found-202406"): ("TargetNotFound", "not_found"),
    ("professional", "challenge-js-stub-202406"): ("UpstreamBlocked", "challenge"),
    ("professional", "guest-homepage-instead-of-profile-202406"): ("UpstreamBlocked", "guest_home"),
    ("professional", "http999-authwall-redirect-stub-2018copy"): ("UpstreamBlocked", "refused_with_script"),
    ("retail", "challenge-robot-or-human-2025-06"): ("UpstreamBlocked", "challenge"),
    ("retail", "product-page-not-a-listing-2024-12"): ("TargetNotFound", "wrong_page_kind"),
    ("retail", "product-out-of-stock-2026"): ("TargetNotFound", "wrong_page_kind"),
    ("videosite", "error-429-sorry-201912"): ("UpstreamRateLimited", "captcha"),
    ("videosite", "page-results-empty-html-ytcfg-202605"): ("ExtractionFailed", "no_channel"),
    ("videosite", "feed-rss-404-terminated-202601"): ("TargetNotFound", "not_found"),
    ("videosite", "removed-community-guidelines"): ("TargetNotFound", "removed"),
    ("videosite", "terminated-tos"): ("TargetNotFound", "terminated"),
    ("videosite", "does-not-exist"): ("TargetNotFound", "not_found"),
    ("videosite", "terminated-copyright"): ("TargetNotFound", "terminated"),
    ("videosite", "browseid-malformed-http-400"): ("ExtractionFailed", "bad_request"),
    ("videosite", "resolve-url-of-an-unknown-handle-http-404"): ("TargetNotFound", "not_found"),
}
"""(Platform, name of the fixture) -> class and reason of the expected error, from the tables of failures in the notes.
With the reason "", only the fixture must raise the error: its capture is not tested."""


def expected(entry: transcribe.Entry, body: str) -> dict[str, Any] | None:
    """Return the data that the body of a fixture or of its capture must give; None if no field map covers the body."""
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
        error, _ = FAILURES.get((entry.platform, entry.name), ("", ""))
        if error:
            write(entry, "exception.json", {"import_path": f"crawler.errors.{error}", "msg": ""})
        elif (data := expected(entry, transcribe.fixture_body(entry))) is not None:
            write(entry, "output.json", data)
        else:
            print(f"no expectation: {entry.platform} {entry.name}")  # noqa: T201


def write(entry: transcribe.Entry, name: str, value: dict[str, Any]) -> None:
    """Write an expected output in web-poet's format."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, indent=2)
    (entry.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
