from urllib.parse import parse_qs, urlsplit

import pytest

from crawler.platforms import shortvideo
from crawler.platforms.shortvideo.urls import search_request

ORIGIN = shortvideo.PLATFORM.origin


@pytest.mark.parametrize(
    "keywords",
    [
        "whales",
        "black & white",
        "#hashtag",
        "50% off?",
        "a/b\\c",
        "مرحبا 🐋",
        "x&q=other",
        "https://evil.example/",
        "../../login",
        "line\nbreak",
        "\ud83d",
    ],
)
def test_keywords_cannot_change_the_url(keywords: str) -> None:
    request = search_request(keywords=keywords.encode(errors="replace").decode())
    url = urlsplit(request.url)
    assert (f"{url.scheme}://{url.netloc}", url.path, url.fragment) == (ORIGIN, "/search/photo", "")
    assert parse_qs(url.query) == {"q": [keywords.encode(errors="replace").decode()]}


def test_page_params_contain_the_params() -> None:
    request = search_request(keywords="whales", cursor="12", count=5)
    assert request.meta["page_params"] == {"keywords": "whales", "cursor": "12", "count": 5}
    assert request.url == f"{ORIGIN}/search/photo?q=whales"
