"""``scrapy crawl professional`` end to end, in a real process that also runs the sandbox."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from crawler.registry import scrapers
from crawler.sandbox.professional.site import FAULTS, Site
from crawler.spiders.professional import ProfessionalSpider
from tests.crawls import crawl, crawl_each

SITE = "https://www.linkedin.com/in/"
NO_BREAKER = ("-s", "BREAKER_THRESHOLD=0")


def test_one_target(tmp_path: Path) -> None:
    url = "se.linkedin.com/in/mara-lindqvist/sv?trk=x"
    code, out, failures, log = crawl(tmp_path, "-a", f"url={url}", spider="professional")
    assert (code, failures) == (0, []), log
    assert out == [Site().expected_record({"url": url})]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"username": "mara-lindqvist"}, {"slug": "mara-lindqvist"}),
        ({"url": f"{SITE}mara-lindqvist/"}, {"slug": "mara-lindqvist"}),
        ({}, {}),
    ],
)
def test_a_saved_page_is_compared_with_the_member_that_is_named(
    given: dict[str, str], expected: dict[str, str]
) -> None:
    assert ProfessionalSpider.page_params(scrapers()["professional-profile-v4"], given) == expected


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://www.linkedin.com/company/x", "this is a company on the platform professional, which no scraper"),
        ("https://evil.example/in/mara-lindqvist", "'evil.example' is not a host of a platform"),
    ],
)
def test_an_invalid_url_is_refused(tmp_path: Path, url: str, problem: str) -> None:
    status, out, failures, log = crawl(tmp_path, "-a", f"url={url}", spider="professional")
    assert (status, out, failures) == (2, [], []), log
    assert log.startswith(f"professional-profile: url: {problem}")
    assert "expected a member's profile" in log


@pytest.mark.parametrize(
    ("key", "scraper"),
    [("url", "professional-profile"), ("username", "professional-profile-v4")],
    ids=["flat", "content"],
)
def test_every_member_and_every_fault_has_its_outcome(tmp_path: Path, key: str, scraper: str) -> None:
    site = Site()
    targets = {slug: {key: SITE + quote(slug) if key == "url" else slug} for slug in (*site.members, *FAULTS)}
    codes, out = crawl_each(tmp_path, "professional", targets, *NO_BREAKER)
    assert codes == dict.fromkeys(site.members, "OK") | {name: fault.code for name, fault in FAULTS.items()}
    assert {line["scraper"] for line in out} == {scraper}
    assert [line["id"] for line in out if line["data"] != site.expected_record(targets[line["id"]])] == []


def test_status_999_is_never_retried(tmp_path: Path) -> None:
    _, _, failures, log = crawl(tmp_path, "-a", f"url={SITE}status-999", *NO_BREAKER, spider="professional")
    assert [(failure["code"], failure["retryable"]) for failure in failures] == [("UPSTREAM_BLOCKED", True)]
    assert "'downloader/request_count': 1," in log
    assert "retry/count" not in log


def test_content_takes_one_request(tmp_path: Path) -> None:
    for username in ("mara-lindqvist", "https://uk.linkedin.com/in/mara-lindqvist/de?trk=x"):
        code, out, failures, log = crawl(tmp_path, "-a", f"username={username}", spider="professional")
        assert (code, failures) == (0, []), log
        assert out == [Site().expected_record({"username": username})]
        assert "'downloader/request_count': 1," in log
