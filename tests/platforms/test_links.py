"""The URLs that the params of each scraper accept."""

from __future__ import annotations

import pytest

from crawler.platforms.links import LinkError, read_link
from crawler.registry import find_scraper
from crawler.targets.parser import check_params

URLS = {
    "photoapp-post-v4": "www.instagram.com/p/DdG4RIxIPyf/?next=https://x",
    "professional-profile": "www.linkedin.com/in/jane-doe?trk=https://x",
    "retail-category-v4": "www.walmart.com/browse/food/976759?povid=https://x",
}


@pytest.mark.parametrize("scheme", ["", "//", "https://", "http://", "HTTPS://"])
@pytest.mark.parametrize("scraper", URLS)
def test_the_scheme_is_optional_in_every_url(scraper: str, scheme: str) -> None:
    check_params(find_scraper(scraper), {"url": f"{scheme}{URLS[scraper]}"})


@pytest.mark.parametrize("prefix", ["ftp://", "https:", "https:/", "https://https://", "://"])
@pytest.mark.parametrize("scraper", URLS)
def test_other_prefixes_are_refused(scraper: str, prefix: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        find_scraper(scraper).params.model_validate({"url": f"{prefix}{URLS[scraper]}"})


SHORT = "has short links, whose destination is unknown: open the link in a browser, and copy the address of the page"


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("t.co", "x.com"),
        ("pic.x.com", "x.com"),
        ("pic.twitter.com", "x.com"),
        ("ig.me", "instagram.com"),
        ("lnkd.in", "www.linkedin.com"),
        ("w-mt.co", "www.walmart.com"),
        ("vm.tiktok.com", "www.tiktok.com"),
        ("vt.tiktok.com", "www.tiktok.com"),
    ],
)
def test_a_short_link_is_refused_with_what_to_do(host: str, site: str) -> None:
    with pytest.raises(LinkError) as refused:
        read_link(f"https://{host}/eAbC123d")
    sentence, _, expected = str(refused.value).partition("; expected ")
    assert sentence == f"{host} {SHORT}"
    assert site in expected
