from urllib.parse import parse_qs, urlsplit

import pytest

from crawler.platforms.shortvideo.requests import search_request

ORIGIN = "https://video.example"


@pytest.mark.parametrize(
    "words",
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
def test_words_are_only_ever_words(words: str) -> None:
    request = search_request(ORIGIN, keywords=words.encode(errors="replace").decode())
    url = urlsplit(request.url)
    assert (f"{url.scheme}://{url.netloc}", url.path, url.fragment) == (ORIGIN, "/search/photo", "")
    assert parse_qs(url.query) == {"q": [words.encode(errors="replace").decode()]}


def test_the_page_is_told_what_was_asked_for() -> None:
    request = search_request(ORIGIN, keywords="whales", cursor="12", count=5)
    assert request.meta["page_params"] == {"keywords": "whales", "cursor": "12", "count": 5}
    assert request.url == f"{ORIGIN}/search/photo?q=whales"
