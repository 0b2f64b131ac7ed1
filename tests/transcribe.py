"""Writes the transcribed fixtures: ``python -m tests.transcribe``. Requires the recorded responses in ``../shared``.

A transcribed fixture has the structure of a recorded refusal (keys, nesting, types, order, null and missing parts,
markup, script wrappers) with made-up content. ``tests/transcription/captures.json`` lists the recorded responses
("captures") by the names that ``scripts/captures.py`` gives them. A capture is a JSON value, markup, or a JSON list of
responses. The errors are listed by hand, in ``FAILURES``. Pages with data are not transcribed: the sandbox's pages have
their structure, and the sandbox's expected records were written by hand.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from web_poet import HttpResponse, PageParams
from web_poet.serialization import SerializedDataFileStorage, serialize

from crawler.platforms import platforms
from scripts import captures
from tests import saved_parts
from tests.make_fixtures import TRANSCRIBED
from tests.transcription import leaves, markup, shape
from tests.transcription.invent import Inventor

TESTS = Path(__file__).parent
PATHS = {"photoapp": "/p/Example0001/", "professional": "/in/example-member"}
"""Platform -> path of its fixtures' URL, for the platforms whose page objects take the path ``/`` for a block."""
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


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
"""(Platform, name of the fixture) -> class and reason of the expected error. With the reason "", only the fixture must
raise the error: its capture is not tested."""


@dataclass(frozen=True)
class Entry:
    """A capture, and the fixture that is made from it."""

    capture: str
    """The name of the capture."""
    platform: str
    name: str
    page: str
    """The import path of the page object."""
    status: int = 200
    part: int | None = None
    """The index of the response, if the capture is a list of responses."""

    @property
    def folder(self) -> Path:
        return TESTS / "fixtures" / self.page / f"{TRANSCRIBED}{self.name}"


def entries() -> list[Entry]:
    """Return the entries of all transcribed captures, for each platform from the newest to the oldest."""
    listed = json.loads((TESTS / "transcription" / "captures.json").read_text(encoding="utf-8"))
    return [Entry(**each) for each in listed]


def body_of(entry: Entry) -> str:
    """Return the text of an entry's response. If the capture is a part of a response, the rest is made up."""
    text = saved_parts.whole(entry.platform, captures.body_of(entry.capture)).decode()
    if entry.part is None:
        return text
    body = json.loads(text)[entry.part]["body"]
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


@cache
def captured() -> leaves.Content:
    """Return the content of all captures, including those without a fixture. No fixture may contain any of it."""
    return leaves.content(captures.body_of(name).decode() for name in captures.captures())


def transcribe(entry: Entry, seen: set[str]) -> str:
    """Return the body of an entry's fixture. ``seen``: the kinds of rows in the platform's earlier fixtures."""
    body = body_of(entry)
    inventor = Inventor(entry.platform, hashlib.sha256(body.encode()).digest(), captured().parts)
    if entry.platform == "photoapp":
        inventor.overrides = _codes(inventor, body)
    pruner = shape.Pruner(entry.platform, seen)
    if is_json(body):
        return json.dumps(inventor.value(pruner(json.loads(body))), ensure_ascii=False, separators=(",", ":"))
    return markup.transcribe(inventor, body, pruner, seen)


def is_json(body: str) -> bool:
    """Return whether a body is JSON and not markup."""
    return body.lstrip()[:1] in {"{", "["}


def _codes(inventor: Inventor, body: str) -> dict[str, str]:
    """Return shortcode -> new shortcode for the photo app, whose shortcodes encode the ids of posts."""
    ids = set(re.findall(r"(?<!\d)\d{15,20}(?!\d)", body))
    pairs = ((_code(int(each)), _code(int(inventor.digits(each)))) for each in ids)
    return {before: after for before, after in pairs if before in body}


def _code(number: int) -> str:
    code = ""
    while number:
        number, digit = divmod(number, 64)
        code = BASE64URL[digit] + code
    return code


def write(entry: Entry, body: str) -> None:
    """Write a fixture: its inputs, and the error that is expected."""
    inputs = entry.folder / "inputs"
    shutil.rmtree(inputs, ignore_errors=True)
    inputs.mkdir(parents=True)
    url = platforms()[entry.platform].origin + PATHS.get(entry.platform, "/")
    headers = {"Content-Type": "text/html; charset=utf-8"}
    response = HttpResponse(url, body.encode(), status=entry.status, headers=headers)
    SerializedDataFileStorage(inputs).write(serialize([response, PageParams({})]))
    error, _ = FAILURES[entry.platform, entry.name]
    expected = {"import_path": f"crawler.errors.{error}", "msg": ""}
    (entry.folder / "exception.json").write_text(json.dumps(expected, sort_keys=True, indent=2), encoding="utf-8")


def structure(body: str) -> set[str]:
    """Return the key paths of a body."""
    if is_json(body):
        return set(shape.paths(json.loads(body)))
    return set(markup.paths(body))


def coverage() -> Iterator[tuple[str, int, int, int]]:
    """Yield each platform with its number of fixtures, of key paths in captures, and of these paths in fixtures."""
    found: dict[str, tuple[list[Entry], set[str], set[str]]] = {}
    for entry in entries():
        listed, captured, covered = found.setdefault(entry.platform, ([], set(), set()))
        listed.append(entry)
        captured |= structure(body_of(entry))
        covered |= structure(fixture_body(entry))
    for platform, (listed, captured, covered) in found.items():
        yield platform, len(listed), len(captured), len(captured & covered)


def fixture_body(entry: Entry) -> str:
    """Return the body of an entry's fixture."""
    return (entry.folder / "inputs" / "HttpResponse-body.html").read_text(encoding="utf-8")


def main() -> None:
    """Write all transcribed fixtures, and print how much of the structure of the captures they cover."""
    seen: dict[str, set[str]] = {}
    for entry in entries():
        write(entry, transcribe(entry, seen.setdefault(entry.platform, set())))
    for platform, fixtures, captured, covered in coverage():
        size = sum(len(fixture_body(each)) for each in entries() if each.platform == platform)
        share = f"{covered} of {captured} paths ({covered / captured:.1%})"
        print(f"{platform}: {fixtures} fixtures, {share}, {size} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
