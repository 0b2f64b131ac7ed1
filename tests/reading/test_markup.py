"""Documents with very many tags are refused, because each search in them blocks the event loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from web_poet import HttpResponse

from crawler.errors import ExtractionFailed
from crawler.platforms.photoapp.pages import post_in_html
from crawler.platforms.shortvideo.pages import wall_in
from crawler.reading.json import script_block
from crawler.reading.markup import MAX_TAGS, parsed_html


def test_a_document_with_the_largest_number_of_tags_is_parsed() -> None:
    page = parsed_html(b"<p>" * (MAX_TAGS - 1) + b"<b>caf\xc3\xa9\xff")
    assert page.css("b::text").get() == "café\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    "read",
    [
        parsed_html,
        post_in_html,
        lambda body: wall_in(HttpResponse("https://platform.example/", body=body)),
        lambda body: script_block(body, "DATA"),
    ],
    ids=["any", "photoapp", "shortvideo", "script"],
)
def test_a_document_with_more_tags_is_refused(read: Callable[[bytes], object]) -> None:
    body = b'<p class="Embed" data-media-id="1">DATA' + b"<p>" * MAX_TAGS
    with pytest.raises(ExtractionFailed, match="more than 50,000 tags") as refused:
        read(body)
    assert refused.value.reason == "too_large"
