"""The params of the photo app's scrapers: accepted URLs with their shortcodes, and rejected URLs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from crawler.platforms.photoapp.schema import PostParams
from crawler.platforms.photoapp.urls import ACCEPTED, code_of_id, link_of_path, link_of_url

CODE = "DeAZ0uAgNuA"
HOME = "https://www.instagram.com"


@pytest.mark.parametrize(
    "url",
    [
        f"{HOME}/p/{CODE}/",
        f"{HOME}/p/{CODE}",
        f"http://instagram.com/p/{CODE}/",
        f"https://instagr.am/p/{CODE}/",
        f"https://www.instagr.am/p/{CODE}",
        f"HTTPS://WWW.Instagram.COM/p/{CODE}/",
        f"{HOME}/reel/{CODE}/",
        f"{HOME}/reels/{CODE}/",
        f"{HOME}/tv/{CODE}/",
        f"{HOME}/some.name_1/p/{CODE}/",
        f"{HOME}/some.name_1/reel/{CODE}/",
        f"{HOME}/p/{CODE}/embed/",
        f"{HOME}/p/{CODE}/embed/captioned/",
        f"{HOME}/p/{CODE}/?igsh=x&img_index=3&utm_source=y&stkn=z#top",
        f"{HOME}/p/{CODE}{28 * 'x'}/",
        f"{HOME}/p/{CODE}xx/",
    ],
)
def test_links_to_a_post_give_its_shortcode(url: str) -> None:
    assert PostParams(url=url).link.shortcode == CODE


@pytest.mark.parametrize(
    "url",
    [
        f"instagram.com/p/{CODE}",
        f"www.instagram.com/p/{CODE}/",
        f"https://m.instagram.com/p/{CODE}/",
        f"{HOME}/p/{CODE}/c/17846368219941196/",
    ],
)
def test_links_without_a_scheme_of_the_mobile_site_and_of_a_comment(url: str) -> None:
    assert PostParams(url=url).link.shortcode == CODE


def test_older_codes_are_shorter() -> None:
    assert link_of_url(f"{HOME}/p/BcQcdiXltb/").shortcode == "BcQcdiXltb"
    assert link_of_url(f"{HOME}/p/BcQcdiXltb{28 * 'x'}/").shortcode == "BcQcdiXltb"


@pytest.mark.parametrize(
    ("path", "share"),
    [
        ("/share/BAPkVzN3fE", "share/BAPkVzN3fE"),
        ("/share/p/BAPkVzN3fE/?x=1", "share/p/BAPkVzN3fE"),
        ("/share/reel/_-PkVzN3fE/", "share/reel/_-PkVzN3fE"),
    ],
)
def test_share_links(path: str, share: str) -> None:
    link = PostParams(url=HOME + path).link
    assert (link.shortcode, link.share) == (None, share)


@pytest.mark.parametrize(
    "url",
    [
        "",
        CODE,
        "not a url",
        f"ftp://www.instagram.com/p/{CODE}/",
        f"file:///p/{CODE}/",
        f"javascript:https://www.instagram.com/p/{CODE}/",
        # other hosts: see tests/service/test_hostile.py
        f"https://evil.instagram.com/p/{CODE}/",
        # other pages
        f"{HOME}/",
        f"{HOME}/p/",
        f"{HOME}/natgeo/",
        f"{HOME}/natgeo/reels/",
        f"{HOME}/reels/audio/123/",
        f"{HOME}/reels/audio/",
        f"{HOME}/stories/natgeo/123/",
        f"{HOME}/stories/p/{CODE}/",
        f"{HOME}/explore/p/{CODE}/",
        f"{HOME}/x/?next=/p/{CODE}/",
        f"{HOME}/#/p/{CODE}/",
        f"{HOME}/share/",
        f"{HOME}/share/p/",
        f"{HOME}/share/p/../x/",
        # malformed codes
        f"{HOME}/p/../accounts/login/",
        f"{HOME}/p/%2e%2e/{CODE}/",
        f"{HOME}/p/{CODE}%2F..%2Fx/",
        f"{HOME}/p/{CODE}/../../x",
        f"{HOME}/p/{CODE};x=1/",
        f"{HOME}/p/DeAZ 0uAgNuA/",
        f"{HOME}/p/DeAZ\r\nHost: x/",
        f"{HOME}/p/DeAZ\t0uAgNuA/",
        f"{HOME}/p/ÄÖÜ/",
        f"{HOME}/p/١٢٣/",
        f"{HOME}/p/{65 * 'a'}/",
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
