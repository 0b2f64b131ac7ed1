"""The professional scraper in the endpoint: same data as ``crawl`` and ``extract``; HTTP 999 opens the breaker."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import quote

from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest
from tests import forks
from tests.crawls import crawl
from tests.service.client import call
from tests.service.conftest import ROOT, Service, running

PROFILE = "/v1/scrapers/professional-profile"
SITE = "https://www.linkedin.com/in/"


def test_endpoint_crawl_and_extract_return_the_same_data(service: Service, tmp_path: Path) -> None:
    urls = {slug: SITE + quote(slug) for slug in ("mara-lindqvist", "masked-linked", "נועה-בן-עמי")}
    targets = tmp_path / "targets.jsonl"
    targets.write_text("\n".join(json.dumps({"id": slug, "url": url}) for slug, url in urls.items()))
    _, out, _, log = crawl(tmp_path, "-a", f"targets={targets}", spider="professional")
    crawled = {line["id"]: json.dumps(line["data"]) for line in out}
    assert crawled.keys() == urls.keys(), log
    for slug, url in urls.items():
        reply = call(service.url, PROFILE, {"url": url})
        assert (reply.status, reply.code) == (200, "OK")
        assert json.dumps(reply.body["data"]) == crawled[slug]
    page = tmp_path / "page.html"
    page.write_bytes(Site().page(FakeRequest(f"/in/{quote(slug)}"))[2])
    command = [sys.executable, "-m", "scrapy", "extract", "professional-profile", str(page)]
    done = forks.run(command, cwd=ROOT, capture_output=True, check=True)
    assert json.dumps(json.loads(done.stdout)) == crawled[slug]


def test_a_url_of_another_kind_is_refused_with_the_accepted_form(service: Service) -> None:
    reply = call(service.url, PROFILE, {"url": "https://www.linkedin.com/company/x"})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert "/in/<name>" in reply.body["error"]["details"][0]["msg"]


def test_one_999_opens_the_circuit_breaker_for_an_hour(tmp_path: Path) -> None:
    with running(tmp_path / "log", "BREAKER_THRESHOLD=5") as service:
        refused = call(service.url, PROFILE, {"url": f"{SITE}status-999"})
        assert (refused.status, refused.code) == (502, "UPSTREAM_BLOCKED")
        assert refused.body["error"]["upstream"] == {"status": 999, "reason": "status_999"}
        assert refused.body["error"]["retry_after"] == 3_600
        closed = call(service.url, PROFILE, {"url": f"{SITE}mara-lindqvist"})
        assert (closed.status, closed.code) == (503, "CIRCUIT_OPEN")
        assert closed.body["error"]["retry_after"] > 3_500
        other = call(service.url, "/v1/scrapers/retail-category-v4", {"cat_id": "976759"})
        assert other.status == 200, "other platforms are not affected"
