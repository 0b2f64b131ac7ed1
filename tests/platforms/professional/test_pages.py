"""The profile page object on the sandbox's pages: expected records, and a typed error for each damaged page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed, ScrapeError
from crawler.pipelines import validated
from crawler.platforms.professional.document import read_head
from crawler.platforms.professional.pages import ProfilePage
from crawler.platforms.professional.schema import Profile
from crawler.sandbox.professional.site import FAULTS, Site
from crawler.sandbox.protocol import FakeRequest

SITE = "https://www.linkedin.com"
LINKED = re.compile(r'(?<=<script type="application/ld\+json">).*?(?=</script>)', re.DOTALL)
TAG = re.compile(r"<[^>]*>")


def read(body: str | bytes, *, slug: str = "", status: int = 200, url: str | None = None) -> dict[str, Any]:
    """Return the validated data of a page."""
    response = HttpResponse(
        url or f"{SITE}/in/{quote(slug or 'somebody')}",
        body.encode() if isinstance(body, str) else body,
        status=status,
        headers={"Content-Type": "text/html; charset=utf-8"},
    )
    page = ProfilePage(response=response, page_params=PageParams({"slug": slug} if slug else {}))
    return validated(Profile, asyncio.run(page.to_item()))


@cache
def site(seed: int = 1) -> Site:
    return Site(seed, light=True)


@cache
def page(slug: str = "mara-lindqvist") -> str:
    return site().page(FakeRequest(f"/in/{slug}"))[2].decode()


def differences(seed: int) -> Iterator[tuple[str, str]]:
    """Yield (member, field) for each field whose value differs from the expected record."""
    network = Site(seed, light=True)
    for slug in network.members:
        status, _, body = network.page(FakeRequest(f"/in/{quote(slug)}"))
        found, expected = read(body, slug=slug, status=status), network.expected_record({"url": f"/in/{quote(slug)}"})
        yield from ((slug, key) for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))


@pytest.mark.parametrize("seed", [*range(3), 175])
def test_pages_give_the_expected_records_over_seeds(seed: int) -> None:
    """In 175, no post of one member has comments."""
    assert list(differences(seed)) == []


@pytest.mark.soak
@pytest.mark.parametrize("decade", range(20))
def test_pages_give_the_expected_records_over_200_seeds(decade: int) -> None:
    for seed in range(100 + 10 * decade, 110 + 10 * decade):
        assert list(differences(seed)) == []


def test_full_size_pages_give_the_same_records() -> None:
    full = Site()
    for slug in full.members:
        assert read(full.page(FakeRequest(f"/in/{quote(slug)}"))[2]) == full.expected_record(
            {"url": f"/in/{quote(slug)}"}
        )


@pytest.mark.parametrize("name", ["no-linked-data", "broken-linked-data", "deep-linked-data"])
def test_linked_data_is_optional(name: str) -> None:
    body = site().damaged(name, FakeRequest(f"/in/{name}"))[2]
    assert read(body) == site().expected_record({"url": f"/in/{name}"})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("not-found", "not_found"),
        ("not-found-404", "not_found"),
        ("login-wall-page", "login_wall"),
        ("challenge", "challenge"),
        ("guest-home", "guest_home"),
        ("status-999", "status_999"),
        ("status-999-empty", "status_999"),
        ("script-200", "refused_with_script"),
        ("wrong-member", "wrong_echo"),
        ("no-profile", "unknown_form"),
        ("nameless", "no_profile"),
        ("no-address", "no_profile"),
        ("blind", "blind"),
        ("blind-sections", "blind"),
    ],
)
def test_each_failure_has_its_reason(name: str, reason: str) -> None:
    status, _, body = site().damaged(name, FakeRequest(f"/in/{name}"))
    with pytest.raises(ScrapeError) as refused:
        read(body, status=status)
    assert (refused.value.code, refused.value.reason) == (FAULTS[name].code, reason)
    assert refused.value.upstream_status == status
    assert ProfilePage.recognise(body.decode()) or status == 999


# Damage: a damaged page gives data or a typed error


def assert_data_or_typed_error(body: str) -> None:
    try:
        data = read(body)
    except ScrapeError:
        return
    assert data["fullName"]
    assert data["public_identifier"]


@cache
def tags(slug: str) -> tuple[tuple[int, int], ...]:
    return tuple(found.span() for found in TAG.finditer(page(slug)))


SLUGS = st.sampled_from(["mara-lindqvist", "masked-linked", "nobody-yet"])
JUNK = st.sampled_from(
    ["", "<", ">", '"', "<!--", "<script>", "</section>", "<li>", "&#0;", "\0", "<p", "***", "\ud7ff"]
)


@st.composite
def damaged_pages(draw: st.DrawFn) -> str:
    """Draw a page in which parts are removed, duplicated or replaced, or which is truncated."""
    slug = draw(SLUGS)
    body, spans = page(slug), tags(slug)
    numbers = draw(st.lists(st.integers(0, len(spans) - 1), min_size=1, max_size=6))
    for number in sorted(numbers, reverse=True):
        start, end = spans[number]
        kind = draw(st.sampled_from(["gone", "junk", "class", "doubled", "cut"]))
        tag = body[start:end]
        with_junk = {
            "gone": "",
            "junk": draw(JUNK),
            "class": tag.replace("__", "-x-").replace("data-section", "data-x").replace("href", "src"),
            "doubled": tag + tag,
            "cut": tag[: len(tag) // 2],
        }[kind]
        body = body[:start] + with_junk + body[end:]
    return body[: draw(st.integers(0, len(body)))] if draw(st.booleans()) else body


@st.composite
def damaged_linked_data(draw: st.DrawFn) -> str:
    """Draw a page whose linked data lacks keys, has other types, is truncated, or is nested too deeply to parse."""
    slug = draw(st.sampled_from(["mara-lindqvist", "masked-linked"]))
    data = orjson.loads(LINKED.findall(page(slug))[0])
    values: st.SearchStrategy[Any] = st.sampled_from(
        [None, 0, -1, 1.5, "", "x", [], {}, [[]], [{}], True, "https://[", "***", 10**18]
    ).map(deepcopy)  # later damages change the lists that are put in
    for _ in range(draw(st.integers(1, 6))):
        holder: Any = data
        for _ in range(draw(st.integers(1, 6))):
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(holder[key], dict | list) or draw(st.booleans()):
                holder[key] = draw(values)
                break
            holder = holder[key]
    block = orjson.dumps(data).decode()
    if draw(st.booleans()):
        depth = draw(st.sampled_from([0, 100, 10_000]))
        block = block[: draw(st.integers(0, len(block)))] + "[" * depth + "]" * depth
    bare = draw(st.booleans())
    return f'<script type="application/ld+json">{block}</script>' if bare else LINKED.sub(lambda _: block, page(slug))


many = settings(max_examples=80, suppress_health_check=list(HealthCheck))
very_many = settings(max_examples=2_000, suppress_health_check=list(HealthCheck))


@many
@given(damaged_pages())
def test_damaged_pages(body: str) -> None:
    assert_data_or_typed_error(body)


@many
@given(damaged_linked_data())
def test_damaged_linked_data(body: str) -> None:
    assert_data_or_typed_error(body)


@pytest.mark.soak
@very_many
@given(damaged_pages())
def test_damaged_pages_over_2000_examples(body: str) -> None:
    assert_data_or_typed_error(body)


@pytest.mark.soak
@very_many
@given(damaged_linked_data())
def test_damaged_linked_data_over_2000_examples(body: str) -> None:
    assert_data_or_typed_error(body)


@pytest.mark.parametrize("tag", ["div", "ul", "span", "section"])
def test_a_page_nested_ten_thousand_deep(tag: str) -> None:
    deep = f"<{tag}>" * 10_000
    for slug in ("mara-lindqvist", "masked-linked"):
        assert_data_or_typed_error(page(slug).replace("<section", f"{deep}<section", 1))


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


@pytest.mark.parametrize(
    "gone", [r"(?<=<h1).*?(?=</h1>)", r'<link rel="canonical"[^>]*>|<meta property="og:url"[^>]*>']
)
def test_removing_a_mandatory_part_fails_with_its_path(gone: str) -> None:
    body = re.sub(
        gone, " class='top-card-layout__title'>" if "h1" in gone else "", LINKED.sub("", page()), flags=re.DOTALL
    )
    with pytest.raises(ExtractionFailed) as refused:
        read(body)
    assert refused.value.details[0]["loc"] == [".top-card-layout__title" if "h1" in gone else 'link[rel="canonical"]']


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


# Marks of refusals


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("not-found", (["body"], "<title>Profile Not Found")),
        ("login-wall-page", (["body"], '"auth_wall_d')),
        ("challenge", (["body"], "ccookie=")),
        ("guest-home", (["body"], "d_homepage-guest-home")),
        ("status-999", (["status"], "999")),
        ("script-200", (["body"], '"/authwall?trk=" +')),
        ("blind", (["experience"], "the page has this section, but no known row in it")),
    ],
)
def test_a_refusal_quotes_its_mark(name: str, mark: tuple[list[str], str]) -> None:
    status, _, body = site().damaged(name, FakeRequest(f"/in/{name}"))
    with pytest.raises(ScrapeError) as refused:
        read(body, status=status)
    (detail,) = refused.value.details
    assert (detail["loc"], detail["msg"], detail["type"]) == (*mark, "mark")


@pytest.mark.parametrize("text", ['"auth_wall_', "<title>", "<title> ", '"/authwall?trk="', "ccookie", "d_homepage"])
def test_marks_are_searched_in_linear_time(text: str) -> None:
    """The number of steps is bounded by a text that a quadratic search would take minutes for."""
    with pytest.raises(ScrapeError):
        read(f"<p>{text * 200_000}</p>")
