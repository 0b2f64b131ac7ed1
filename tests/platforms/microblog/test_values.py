"""Values of posts, and of rate limits, at the edges of their rules."""

from __future__ import annotations

import time

import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import UpstreamRateLimited
from crawler.platforms.microblog.api import UserPage
from crawler.platforms.microblog.convert import caption, qualities
from crawler.platforms.microblog.payload import Media, VideoFile


@pytest.mark.parametrize(("files", "medium"), [(1, None), (2, None), (3, 1), (4, 1), (5, 2)])
def test_the_medium_file_of_an_even_number_is_the_smaller_one(files: int, medium: int | None) -> None:
    videos = [VideoFile(url=str(n), mime_type="video/mp4", bitrate=n) for n in range(files)]
    assert qualities([Media(files=videos)])["medium"] == (None if medium is None else str(medium))


def test_a_media_link_that_begins_where_the_shown_text_ends_is_removed() -> None:
    raw = "boats https://t.co/abc"
    assert caption(raw, [], escaped=True, has_media=True, shown_end=6) == "boats"
    assert caption(raw, [], escaped=True, has_media=True, shown_end=7) == raw


def test_a_rate_limit_ends_the_stated_number_of_seconds_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    for reset, seconds in (("1000120", 120), ("999000", 0)):
        headers = {"x-rate-limit-reset": reset}
        page = UserPage(
            response=HttpResponse("https://x.com/", b"{}", status=429, headers=headers), page_params=PageParams({})
        )
        with pytest.raises(UpstreamRateLimited) as raised:
            page.validate_input()
        assert raised.value.retry_after == seconds
