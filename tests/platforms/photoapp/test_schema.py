"""The params of the photo app's scrapers: accepted URLs with their shortcodes, and rejected URLs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from crawler.platforms.photoapp.schema import PostParams
from crawler.platforms.photoapp.urls import ACCEPTED, code_of_id, link_of_path

CODE = "DeAZ0uAgNuA"
HOME = "https://www.instagram.com"


# The table ../links.tsv has more URLs.
@pytest.mark.parametrize(
    "url",
    [
        "",
        CODE,
        "not a url",
        f"{HOME}/natgeo/",
        f"{HOME}/p/../accounts/login/",
        f"{HOME}/p/DeAZ\r\nHost: x/",
        f"{HOME}/p/DeAZ\t0uAgNuA/",
    ],
)
def test_other_urls_are_refused_with_the_accepted_forms(url: str) -> None:
    with pytest.raises(ValidationError) as raised:
        PostParams(url=url)
    assert ACCEPTED in str(raised.value)


@pytest.mark.parametrize("url", [None, 12, ["https://www.instagram.com/p/x/"], b"x", f"{HOME}/p/{CODE}/?{2000 * 'x'}"])
def test_other_types_and_long_urls_are_refused(url: object) -> None:
    with pytest.raises(ValidationError):
        PostParams(url=url)  # type: ignore[arg-type]  # the point of the test


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValidationError):
        PostParams.model_validate({"url": f"{HOME}/p/{CODE}/", "shortcode": CODE})


def test_a_path_of_another_kind_is_not_a_link() -> None:
    assert link_of_path("/natgeo/") is None


@pytest.mark.parametrize(
    ("pk", "code"), [("3999310043081137024", "DeAZ0uAgNuA"), ("0", ""), ("", ""), ("-1", ""), ("9" * 30, "")]
)
def test_codes_of_ids(pk: str, code: str) -> None:
    assert code_of_id(pk) == code
