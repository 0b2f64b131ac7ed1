"""The photo app's spider against the sandbox: crawl, endpoint and extract all give the same bytes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError, UpstreamBlocked
from crawler.platforms.photoapp.pages import EmbedPage, PostPage
from crawler.platforms.photoapp.urls import post_request
from crawler.sandbox.photoapp.page import prefetched
from crawler.sandbox.photoapp.site import EXAMPLE, FAULTS, Site
from crawler.sandbox.protocol import FakeRequest
from crawler.spiders.photoapp import PhotoappSpider
from crawler.targets.parser import check_params
from crawler.targets.target import Target
from tests.crawls import crawl, crawl_each
from tests.service.client import call
from tests.service.conftest import running
from tests.test_extract import Extract

HOME = "https://www.instagram.com"
SCRAPER = "photoapp-post-v4"
REFUSED = ("", "https://example.com/p/x/", f"{HOME}/natgeo/", f"{HOME}/reels/audio/1/", "http://127.0.0.1/p/x/")


def test_faults_and_posts_have_their_outcome(tmp_path: Path) -> None:
    site = Site()
    urls = {name: site.url_of_fault(name) for name in FAULTS}
    urls |= {code: f"{HOME}/{site.posts[code].owner.username}/reel/{code}/?igsh=x" for code in site.listed[::2]}
    urls |= {f"to {code}": f"{HOME}/share/reel/{token}" for token, code in list(site.shares.items())[::20]}
    expected = {name: FAULTS[name].code if name in FAULTS else "OK" for name in urls}
    urls |= {f"refused {number}": url for number, url in enumerate(REFUSED)}
    expected |= {f"refused {number}": "INVALID_REQUEST" for number in range(len(REFUSED))}
    targets = {name: {"url": url} for name, url in urls.items()}
    codes, out = crawl_each(tmp_path, "photoapp", targets, "-s", "PHOTOAPP_PLAY_COUNTS=1")
    assert codes == expected
    for line in out:
        assert line["data"] == site.expected_record({"url": urls[line["id"]], "plays": "1"}), line["id"]
    assert any(line["data"]["data"]["xdt_shortcode_media"]["video_play_count"] for line in out)


def test_crawl_extract_and_endpoint_give_the_same_bytes(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    site = Site()
    url = f"{HOME}/p/{EXAMPLE}/"
    status, out, _, log = crawl(tmp_path, "-a", f"url={url}", spider="photoapp")
    assert status == 0, log
    crawled = (tmp_path / "out.jsonl").read_bytes().strip()
    extract = Extract(tmp_path, capsysbinary)
    extracted = extract(SCRAPER, extract.file(site.page(FakeRequest(f"/p/{EXAMPLE}/"))[2]), "-a", f"url={url}")
    with running(tmp_path / "log") as service:
        reply = call(service.url, f"/v1/scrapers/{SCRAPER}", {"url": url})
        assert orjson.dumps(reply.body["data"]) == orjson.dumps(extracted.out) == crawled
        assert out == [site.expected_record({"url": url})]


def test_extract_joins_the_files_of_one_post(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    site = Site(light=True)
    post = next(
        post
        for post in (site.posts[code] for code in site.listed)
        if post.timing == "embed" and post.is_video and not post.hidden and post in site.reels(post.owner)
    )
    url = f"{HOME}/p/{post.code}/"
    extract = Extract(tmp_path, capsysbinary)
    files = [
        extract.file(site.page(FakeRequest(f"/p/{post.code}/embed/captioned/"))[2], "embed.html"),
        extract.file(site.reels_page(post.owner), "reels.html"),
        extract.file(site.page(FakeRequest(f"/p/{post.code}/"))[2], "page.html"),
    ]
    assert extract(SCRAPER, *files).out == site.expected_record({"url": url, "plays": "1"})
    item = extract(
        SCRAPER,
        extract.file(site.document(post, prefetched("PolarisPostRootQuery", site.data(post, "item"))), "item.html"),
        files[0],
    )
    assert item.out["data"]["xdt_shortcode_media"]["video_duration"] == post.duration
    assert extract(SCRAPER, files[1]).code == 4


def test_the_embed_page_replaces_a_duration_in_whole_seconds(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    site = Site(light=True)
    post = next(p for p in (site.posts[c] for c in site.listed) if p.timing == "label" and p.is_video)
    extract = Extract(tmp_path, capsysbinary)
    page = extract.file(site.page(FakeRequest(f"/p/{post.code}/"))[2], "page.html")
    embed = extract.file(site.page(FakeRequest(f"/p/{post.code}/embed/captioned/"))[2], "embed.html")
    assert extract(SCRAPER, page).out["data"]["xdt_shortcode_media"]["video_duration"] == int(post.duration)
    assert extract(SCRAPER, page, embed).out["data"]["xdt_shortcode_media"]["video_duration"] == post.duration


@pytest.mark.parametrize(
    ("fault", "fallback", "code"),
    [
        ("shell", ["photoapp"], "OK"),
        ("login-route", ["photoapp"], "OK"),
        ("shell", ["retail"], "UPSTREAM_RATE_LIMITED"),
        ("please-wait", ["photoapp"], "UPSTREAM_RATE_LIMITED"),
        ("age-gate", ["photoapp"], "TARGET_RESTRICTED"),
    ],
)
def test_a_refused_page_falls_back_to_the_browser(
    fault: str, fallback: list[str], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(light=True)
    (number,) = (number for number, name in site.faults.items() if name == fault)
    request_ = post_request(number)
    scraper = PhotoappSpider.scrapers[0]
    target = Target("1", scraper, check_params(scraper, {"url": f"{HOME}/p/{number}/"}))
    before_redirects = f"{HOME}/reel/{number}/"
    request_.meta.update(target=target, source="page", redirect_urls=[before_redirects])
    spider = PhotoappSpider(url=f"{HOME}/p/{number}/")
    spider.settings = Settings()
    spider.settings.setmodule("crawler.settings")
    spider.settings.set("BROWSER_FALLBACK", fallback)

    def page(answer: tuple[int, dict[str, str], bytes]) -> PostPage:
        response = HttpResponse(request_.url, answer[2], status=answer[0], headers=answer[1])
        return PostPage(response=response, page_params=PageParams({"shortcode": number}))

    async def browse(request: Request, _target: object) -> Response:
        assert "page_session_factory" in request.meta
        assert request.url == before_redirects
        shown = page(site.page(FakeRequest(f"/p/{number}/")))
        return Response(request_.url, request=request.replace(cb_kwargs={"page": shown}))

    monkeypatch.setattr(spider, "fetch", browse)
    refused = page(site.damaged(fault, FakeRequest(f"/p/{number}/")))
    found = ""
    try:
        post = asyncio.run(asyncio.run(spider.read(refused, request_)).to_item())
        found = "OK" if post["shortcode"] == number else post["shortcode"]
    except ScrapeError as error:
        found = error.code
    assert found == code


def test_an_embed_page_without_the_time_does_not_replace_the_post(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The post's page is a login wall. The time is required, and the embed pages of 2026-07 lack it."""
    site = Site(light=True)
    body = site.page(FakeRequest(f"/p/{EXAMPLE}/embed/captioned/"))[2].replace(b"taken_at_timestamp", b"new_key")
    extract = Extract(tmp_path, capsysbinary)
    assert extract(SCRAPER, extract.file(body, "embed.html")).code == 4
    embed = EmbedPage(response=HttpResponse(HOME, body, status=200), page_params=PageParams({"shortcode": EXAMPLE}))
    scraper = PhotoappSpider.scrapers[0]
    target = Target("1", scraper, check_params(scraper, {"url": f"{HOME}/p/{EXAMPLE}/"}))
    spider = PhotoappSpider(url=f"{HOME}/p/{EXAMPLE}/")
    spider.settings = Settings()
    spider.settings.setmodule("crawler.settings")

    async def get(*_: object, **__: object) -> EmbedPage:
        await embed.to_item()
        return embed

    class Walled:
        async def page(self, _: object) -> None:
            raise UpstreamBlocked("The platform demands a login.", reason="login_wall")

    monkeypatch.setattr(spider, "get", get)
    with pytest.raises(UpstreamBlocked):
        asyncio.run(spider.scrape(target, Walled()))  # type: ignore[arg-type]
