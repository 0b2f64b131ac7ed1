"""The professional scraper's params and data models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crawler.platforms.professional.schema import MemberParams, ProfileParams
from crawler.platforms.professional.urls import slug_of_url

WWW = "https://www.linkedin.com"

GOOD_URLS = {
    f"{WWW}/in/jane-doe-1a2b": "jane-doe-1a2b",
    f"{WWW}/in/jane-doe/": "jane-doe",
    f"{WWW}/in/jane-doe/de": "jane-doe",
    f"{WWW}/in/jane-doe/zh_CN/": "jane-doe",
    f"{WWW}/in/jane-doe/en-us?locale=x": "jane-doe",
    f"{WWW}/in/jane-doe?trk=people-guest_people_search-card#about": "jane-doe",
    f"{WWW}/in/jos%C3%A9-mar%C3%ADa": "josé-maría",
    f"{WWW}/in/josé-maría": "josé-maría",
    f"{WWW}/in/%D7%A0%D7%95%D7%A2%D7%94": "נועה",
    f"{WWW}/in/Jane.Doe_1'2": "Jane.Doe_1'2",
    f"{WWW}/in/ai-toolnbspits-crew-🤍": "ai-toolnbspits-crew-🤍",
    "https://uk.linkedin.com/in/jane-doe": "jane-doe",
    "http://linkedin.com/in/jane-doe": "jane-doe",
    "HTTPS://WWW.LINKEDIN.COM/in/jane-doe": "jane-doe",
    "www.linkedin.com/in/jane-doe": "jane-doe",
    "linkedin.com/in/jane-doe": "jane-doe",
    "//www.linkedin.com/in/jane-doe": "jane-doe",
    f"{WWW}/in//jane-doe": "jane-doe",
    f"{WWW}//in/jane-doe": "jane-doe",
    f"{WWW}/in/jane-doe/detail": "jane-doe",
    f"{WWW}/in/jane-doe/overlay/contact-info/": "jane-doe",
    f"{WWW}/mwlite/in/jane-doe": "jane-doe",
    "https://m.linkedin.com/in/jane-doe": "jane-doe",
    f"{WWW}/in/jane-doe/recent-activity/{'a/' * 9}": "jane-doe",
    f"\t{WWW}/in/jane-doe": "jane-doe",
    f" {WWW}/in/jane-doe": "jane-doe",
    f"{WWW}/in/jane\u202e": "jane",
    f"{WWW}/authwall?sessionRedirect={WWW}/in/jane-doe": "jane-doe",
    f"{WWW}/redir/redirect?url={WWW}/in/jane-doe": "jane-doe",
}

# tests/service/test_hostile.py calls each scraper with URLs of other hosts.
HOSTILE_URLS = [
    "",
    "jane-doe",
    "/in/jane-doe",
    "ftp://www.linkedin.com/in/jane-doe",
    "file:///in/jane-doe",
    "javascript:alert(1)//www.linkedin.com/in/jane-doe",
    "https:/www.linkedin.com/in/jane-doe",
    f"{WWW}",
    f"{WWW}/in",
    f"{WWW}/in/",
    f"{WWW}/IN/jane-doe",
    f"{WWW}/in/jane-doe/details/../../company/x",
    f"{WWW}/mwlite/company/x",
    f"{WWW}/mwlite/mwlite/in/x",
    f"{WWW}/in/..",
    f"{WWW}/in/.",
    f"{WWW}/in/%2e%2e",
    f"{WWW}/in/../company/x",
    f"{WWW}/in/..%2fcompany%2fx",
    f"{WWW}/in/a%5Cb",
    f"{WWW}/in/a%00b",
    f"{WWW}/in/a%0ab",
    f"{WWW}/in/a%20b",
    f"{WWW}/in/a%3fb",
    f"{WWW}/in/a%23b",
    f"{WWW}/in/%ff",
    f"{WWW}/in/a b",
    f"{WWW}/in/{'a' * 151}",
    f"{WWW}/in/a\\b",
    f"{WWW}\\in\\jane-doe",
    f"{WWW}/in/\njane-doe",
    f"{WWW}/in/jane-doe\r\nHost: evil.example",
    f"{WWW}/company/jane-doe",
    f"{WWW}/school/jane-doe",
    f"{WWW}/showcase/jane-doe",
    f"{WWW}/posts/jane-doe_x-activity-1",
    f"{WWW}/pulse/jane-doe",
    f"{WWW}/pub/jane-doe/1/2/3",
    f"{WWW}/pub/dir/Jane/Doe",
    f"{WWW}/feed/update/urn:li:activity:1",
    "https://mobile.linkedin.com/in/jane-doe",
    "https://u.k.linkedin.com/in/jane-doe",
    "https://www.uk.linkedin.com/in/jane-doe",
    "https://www.linkedin.cn/in/jane-doe",
]


@pytest.mark.parametrize(("url", "slug"), GOOD_URLS.items())
def test_profile_urls_give_the_name(url: str, slug: str) -> None:
    assert slug_of_url(url) == ProfileParams(url=url).slug == slug


@pytest.mark.parametrize("url", HOSTILE_URLS)
def test_other_urls_are_refused_with_the_expected_form(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ProfileParams(url=url)
    (error,) = refused.value.errors()
    assert error["loc"] == ("url",)
    assert "/in/<name>" in error["msg"]


NAMES = {
    "jane-doe-1a2b": "jane-doe-1a2b",
    "jos%C3%A9-mar%C3%ADa": "josé-maría",
    "נועה": "נועה",
    "Jane.Doe_1'2": "Jane.Doe_1'2",
} | GOOD_URLS


@pytest.mark.parametrize(("username", "slug"), NAMES.items())
def test_names_and_urls_give_the_name(username: str, slug: str) -> None:
    assert MemberParams(username=username).slug == slug


@pytest.mark.parametrize(
    "username",
    [*(" ", ".", "..", "a b", "a%2Fb", "%ff", "a?b", "a" * 151), *(url for url in HOSTILE_URLS if url != "jane-doe")],
)
def test_other_names_are_refused_with_the_expected_form(username: str) -> None:
    with pytest.raises(ValidationError) as refused:
        MemberParams(username=username)
    (error,) = refused.value.errors()
    assert error["loc"] == ("username",)
    assert "/in/<name>" in error["msg"]


@given(st.text() | st.text().map(f"{WWW}/in/".__add__) | st.text().map("https://".__add__))
def test_any_text_gives_a_safe_name_or_value_error(url: str) -> None:
    try:
        slug = slug_of_url(url)
    except ValueError:
        return
    assert slug
    assert not set(slug) & set("/\\?#% ")


@pytest.mark.parametrize(
    ("params", "loc"),
    [({}, "url"), ({"url": 1}, "url"), ({"url": None}, "url"), ({"url": f"{WWW}/in/x", "username": "x"}, "username")],
)
def test_invalid_params_are_refused(params: dict[str, Any], loc: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ProfileParams.model_validate(params)
    assert [error["loc"] for error in refused.value.errors()] == [(loc,)]
