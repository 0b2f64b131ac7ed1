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

# The table ../links.tsv has more URLs.
GOOD_URLS = {
    f"{WWW}/in/jos%C3%A9-mar%C3%ADa": "josé-maría",
    f"{WWW}/in/%D7%A0%D7%95%D7%A2%D7%94": "נועה",
    f"\t{WWW}/in/jane-doe": "jane-doe",
    "uk.linkedin.com/in/jane-doe/en-us?locale=x#about": "jane-doe",
}
HOSTILE_URLS = [
    "",
    "/in/jane-doe",
    f"{WWW}/in/..",
    f"{WWW}/in/a%0ab",
    f"{WWW}/in/\njane-doe",
    f"{WWW}/in/jane-doe\r\nHost: evil.example",
    f"{WWW}\\in\\jane-doe",
    f"{WWW}/company/jane-doe",
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
    [" ", ".", "..", "a b", "a%2Fb", "%ff", "a?b", "a" * 151, *HOSTILE_URLS],
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
