"""Posts and pages that contradict themselves. ``table.yaml`` has more of them."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.errors import ScrapeError
from crawler.sandbox.microblog.site import Site
from tests.microblog_pages import (
    answer,
    page_of,
    posts_in,
    timeline_with,
)
from tests.platforms.microblog.test_variants import POST

SITE = Site()


def reason(source: str, status: int, body: bytes) -> tuple[str, str | None]:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page_of(source, body, status=status).to_item())
    return raised.value.code, raised.value.reason


# A page whose stream is not finished


def test_an_unfinished_stream_beside_posts_is_harmless() -> None:
    _, _, body = answer(SITE, "page", "quiet_harbor")
    stream = {"kind": "GraphQLRequestStream.Started", "key": 'LpkpphcOWljdki66nzocrg{"a":1}', "name": "Trends"}
    more = b'<script class="$tsr">$R[9000].next($R[9001]=' + orjson.dumps(stream) + b")</script></body>"
    whole, added = (asyncio.run(page_of("page", each).to_item()) for each in (body, body.replace(b"</body>", more)))
    assert whole == added


# A repost without the reposted post, and a part of a long text


def unread(body: bytes) -> list[str]:
    """The unread parts, except those that the minimal payloads of these tests lack."""
    page = page_of("timeline", body)
    asyncio.run(page.to_item())
    return [str(each) for each in page.unread if each.cause != "missing" and not each.path.startswith("user.")]


LEGACY: dict[str, Any] = POST["legacy"]  # type: ignore[assignment]  # a dict
REPOST: dict[str, Any] = POST | {
    "rest_id": "2098678373753225484",
    "legacy": LEGACY | {"full_text": "RT @other: words…"},
}


def test_a_repost_without_the_reposted_post_is_unread() -> None:
    body = timeline_with(POST, REPOST)
    assert [each["caption"] for each in posts_in(body)] == ["words"]
    path = "tweet_results.result.legacy.retweeted_status_result"
    assert unread(body) == [f"{path}: contradiction in 1 of 2, not collected"]
    assert reason("timeline", 200, timeline_with(REPOST)) == ("EXTRACTION_FAILED", "blind")


def test_a_cut_text_without_its_note_is_unread() -> None:
    text = "word " * 54 + "…"
    cut = REPOST | {"legacy": REPOST["legacy"] | {"full_text": text}}
    note = {"note_tweet": {"note_tweet_results": {"result": {"text": text[:-1] * 2}}}}
    path = "tweet_results.result.note_tweet.note_tweet_results.result"
    assert unread(timeline_with(POST, cut)) == [f"{path}: contradiction in 1 of 2"]
    assert unread(timeline_with(POST, cut | note)) == []
    assert posts_in(timeline_with(POST, cut))[1]["caption"] == text


# Markup around the data of a profile's page
