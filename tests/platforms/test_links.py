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


OTHER_PAGES = {
    "retail www.walmart.com": {
        "/": "the home page",
        "/en/ip/Yellow-Mustard/1234567": "a product",
        "/search": "a search without words",
        "/es/search/": "a search without words",
        "/browse": "a category page without a category's id",
        "/cp/": "a category page without a category's id",
        "/c/kp/mustard": "a page of products for a keyword, which is a search",
        "/shop/deals": "a page of deals",
        "/brand/mustard/10001234": "a brand or a seller",
        "/global/seller/101": "a brand or a seller",
        "/seller/101": "a brand or a seller",
    },
    "professional www.linkedin.com": {
        "/company/harbor/": "a company",
        "/showcase/harbor/": "a company",
        "/school/harbor/": "a school",
        "/jobs/view/123": "a job or a search for jobs",
        "/posts/jane-doe_boats-activity-71": "a post",
        "/feed/update/urn:li:activity:71/": "a post",
        "/pulse/boats-jane-doe": "an article",
        "/search/results/people/?keywords=jane": "a search",
        "/pub/dir/Jane/Doe": "a directory of names",
        "/pub/jane-doe/1/2a/b3": "a profile's address of before 2015",
        "/in/": "a profile without a name",
        "/": "the home page",
    },
    "videosite www.youtube.com": {
        "/watch?v=aaaaaaaaaaa": "a video",
        "/live/aaaaaaaaaaa": "a video",
        "/embed/aaaaaaaaaaa": "a video",
        "/clip/Ugkx": "a video",
        "/shorts/aaaaaaaaaaa": "a short",
        "/playlist?list=PLa": "a playlist",
        "/results?search_query=boats": "a search",
        "/hashtag/boats": "a search",
        "/post/Ugkx": "a post",
        "/channel/UCa": "a channel without a valid id",
        "/": "the home page",
    },
    "microblog x.com": {
        "/harbor/status/71": "a post",
        "/i/web/status/71": "a post",
        "/i/lists/71": "a list, community or space",
        "/i/spaces/71": "a list, community or space",
        "/harbor/lists": "a list, community or space",
        "/harbor/followers": "a list of people",
        "/harbor/verified_followers": "a list of people",
        "/search?q=boats": "a search",
        "/hashtag/boats": "a search",
        "/": "the home page",
        "/home": "the home page",
    },
    "photoapp www.instagram.com": {
        "/stories/harbor/71/": "a story or highlight",
        "/explore/tags/boats/": "a search, hashtag or place",
        "/reels/audio/71/": "a sound",
        "/p/": "a post without a code",
        "/": "the home page",
        "/harbor/": "a profile",
        "/harbor/tagged/": "a profile",
    },
    "shortvideo www.tiktok.com": {
        "/t/ZM/": "a short link",
        "/@harbor/photo/71": "a photo post",
        "/@harbor/video/71": "a video",
        "/embed/71": "a video",
        "/@harbor": "a profile",
        "/tag/boats": "a hashtag",
        "/music/boats-71": "a sound",
        "/search/video?q=boats": "a search for videos or accounts",
        "/search": "a search without words",
        "/": "the home page",
    },
}


@pytest.mark.parametrize(
    ("site", "path", "page"), [(site, path, page) for site, of in OTHER_PAGES.items() for path, page in of.items()]
)
def test_another_page_of_a_platform_is_refused_by_its_name(site: str, path: str, page: str) -> None:
    platform, host = site.split()
    with pytest.raises(LinkError) as refused:
        read_link(f"https://{host}{path}")
    assert str(refused.value).startswith(f"this is {page} on the platform {platform}, which no scraper can read; ")
