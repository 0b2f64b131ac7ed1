"""The profile page object on the sandbox's pages: expected records, and a typed error for each damaged page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest
from parsel import Selector
from selectolax.lexbor import LexborHTMLParser
from web_poet import HttpResponse, PageParams

from crawler.errors import UpstreamBlocked
from crawler.pipelines import validated
from crawler.platforms.professional.document import read_head
from crawler.platforms.professional.markup import dates
from crawler.platforms.professional.pages import ContentPage, ProfilePage
from crawler.platforms.professional.schema import MemberContent, Profile
from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest

SITE = "https://www.linkedin.com"


def page_of(body: str | bytes, *, slug: str = "", status: int = 200, url: str | None = None) -> ProfilePage:
    response = HttpResponse(
        url or f"{SITE}/in/{quote(slug or 'somebody')}",
        body.encode() if isinstance(body, str) else body,
        status=status,
        headers={"Content-Type": "text/html; charset=utf-8"},
    )
    return ProfilePage(response=response, page_params=PageParams({"slug": slug} if slug else {}))


def read(body: str | bytes, **options: Any) -> dict[str, Any]:
    """Return the validated data of a page."""
    return validated(Profile, asyncio.run(page_of(body, **options).to_item()))


@cache
def site(seed: int = 1) -> Site:
    return Site(seed, light=True)


@cache
def page(slug: str = "mara-lindqvist") -> str:
    return site().page(FakeRequest(f"/in/{slug}"))[2].decode()


def differences(network: Site) -> Iterator[tuple[str, str]]:
    """Yield (member, field) for each field whose value differs from the expected record, and (member, unread part)."""
    for slug in network.members:
        url = f"/in/{quote(slug)}"
        status, _, body = network.page(FakeRequest(url))
        response = page_of(body, slug=slug, status=status).response
        for kind, model, target in (
            (ProfilePage, Profile, {"url": url}),
            (ContentPage, MemberContent, {"username": slug}),
        ):
            page = kind(response=response, page_params=PageParams({"slug": slug}))
            found, expected = validated(model, asyncio.run(page.to_item())), network.expected_record(target)
            yield from ((slug, problem) for problem in page.problems())
            yield from ((slug, key) for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))


@pytest.mark.parametrize("seed", [*range(4), 175, *(pytest.param(n, marks=pytest.mark.soak) for n in range(200, 400))])
def test_pages_give_the_expected_records_over_seeds(seed: int) -> None:
    """In 175, no post of one member has comments."""
    assert list(differences(Site(seed, light=True))) == []


def test_full_size_pages_give_the_same_records() -> None:
    assert list(differences(Site())) == []


@pytest.mark.parametrize("name", ["no-linked-data", "broken-linked-data", "deep-linked-data"])
def test_linked_data_is_optional(name: str) -> None:
    body = site().damaged(name, FakeRequest(f"/in/{name}"))[2]
    assert read(body) == site().expected_record({"url": f"/in/{name}"})


@pytest.mark.parametrize(
    ("gone", "fields"),
    [
        (r'<meta property="profile:last_name"[^>]*>', set()),
        (r'<meta property="og:(title|type|image|description)"[^>]*>', set()),
        (r'<h2 class="top-card-layout__headline.*?</h2>', {"headline"}),
        (
            r'<section class="aside-section-container mb-4 browsemap".*?</section>',
            {"people_also_viewed"},
        ),
        (r'<section class="aside-section-container mb-4 samename".*?</section>', {"same_name"}),
        (r'<div data-section="websites">.*?</dl></div></div>', {"websites"}),
    ],
)
def test_removing_an_optional_part_changes_only_its_field(gone: str, fields: set[str]) -> None:
    body = re.sub(gone, "", page(), flags=re.DOTALL)
    assert body != page()
    damaged, original = read(body), read(page())
    assert {key for key in original if damaged[key] != original[key]} == fields


def website(label: str, url: str) -> str:
    return f'<div><dt>{label}</dt><dd><a href="{url}">shown</a></dd></div>'


@pytest.mark.parametrize(
    ("section", "websites", "unread"),
    [
        ("", 0, []),
        ("Blog", 0, ["websites[]: missing, not collected"]),
        (f"<dl>{website('Blog', 'https://a.example/')}{website('Shop', 'https://b.example/')}</dl>", 2, []),
        (
            f"<dl>{website('Blog', 'https://a.example/')}{website('Shop', '')}</dl>",
            1,
            ["websites[]: missing in 1 of 2, not collected"],
        ),
        (f"<dl>{website('Blog', '') * 2}</dl>", 0, ["websites[]: missing in 2 of 2, not collected"]),
        (f"<dl>{website('', 'https://a.example/') * 2}</dl>", 2, ["websites[].label: missing in 2 of 2"]),
    ],
)
def test_a_website_without_its_link_or_label_is_unread(section: str, websites: int, unread: list[str]) -> None:
    links = f'<div class="top-card__links-container"><div data-section="websites">{section}</div></div>'
    head = read_head(LexborHTMLParser(f'<section class="top-card-layout">{links}</section>'))
    assert len(head.websites) == websites
    assert [str(each) for each in head.unread if each.path.startswith("websites")] == unread


@pytest.mark.parametrize("dash", [" - ", "-", " – ", "—"])
def test_the_end_of_a_period_follows_any_dash(dash: str) -> None:
    node = LexborHTMLParser(f'<p class="date-range"><time>Jan. 2020</time>{dash}Heute</p>').css_first("p")
    assert node
    found = dates(node)
    assert (found.start, found.end) == ("Jan. 2020", "Heute")


def test_a_page_is_parsed_once_from_its_bytes_and_not_searched_by_xpath(monkeypatch: pytest.MonkeyPatch) -> None:
    body, expected = page(), site().expected_record({"url": "/in/mara-lindqvist"})
    monkeypatch.delattr(HttpResponse, "text")
    monkeypatch.delattr(Selector, "xpath")
    assert read(body) == expected


@pytest.mark.parametrize(
    ("status", "body", "seconds"),
    [
        (999, "", 3_600),
        (200, '<script>window.location.href = "/authwall?trk=" + trk;</script>', 3_600),
        (200, "<script>document.cookie = 'ccookie=1'</script>", None),
        (200, "<title>LinkedIn Login, Sign in | LinkedIn</title>", None),
    ],
    ids=["status 999", "refused with a script", "challenge", "login"],
)
def test_only_a_block_that_lasts_states_its_duration(status: int, body: str, seconds: int | None) -> None:
    with pytest.raises(UpstreamBlocked) as blocked:
        asyncio.run(page_of(body, status=status).to_item())
    assert blocked.value.retry_after == seconds
