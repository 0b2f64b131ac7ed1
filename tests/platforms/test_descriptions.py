"""The field descriptions in the OpenAPI document and in docs/nulls.md."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import getitem

import pytest

from tests.openapi import DOCUMENT

SCHEMAS = DOCUMENT["components"]["schemas"]

READINGS = {
    "photoapp": {
        "PhotoappPost": "signed and expire. The slides of a carousel are not part",
        "PhotoappPost.video_view_count": "as for most reels",
        "PhotoappPost.video_play_count": "as for most reels",
        "PhotoappPost.video_duration": "exact or rounded to whole seconds",
        "PhotoappDimensions": "size of the uploaded file",
    },
    "shortvideo": {
        "ShortvideoPhotoSearchParams.count": "may have fewer rows even if more follow",
        "ShortvideoPhotoSearch.cursor": "number of rows in all records",
        "ShortvideoPhotoSearch.has_more": "the next page then fails with UPSTREAM_BLOCKED",
    },
    "videosite": {
        "VideositeContentItem.view_count": "may contain exact and rounded numbers",
        "VideositeContentItem.published_date": 'Null if only "3 weeks ago" is known',
        "VideositeContentItem.content_type": "finished live stream is `live`, too",
        "VideositeProfile.content_count": "From 1,000 on, it is rounded unless `include_about` is set",
        "VideositeProfile.follower_count": "rounds to three digits",
        "VideositeProfile.account_creation_date": "midnight UTC if only the day is known",
    },
    "microblog": {
        "MicroblogPost.comment_count": "Also null on a repost",
        "MicroblogPost.like_count": "Also null on a repost",
        "MicroblogPost.share_count": "On a repost, it is the reposted post's",
        "MicroblogPost.is_quote": "False on every repost, even if the reposted post is a quote",
        "MicroblogPost.quoted_post": "Also null, although `is_quote` is true",
        "MicroblogProfile.hasMore": "Also true if the timeline could not be fetched",
    },
    "professional": {
        "ProfessionalProfile.activity_count": "all of which are on the page",
        "ProfessionalDataAvailability.fields_withheld_by_linkedin": "Never empty",
        "ProfessionalProfile.skills": "if the member lists none, and in a masked profile",
        "ProfessionalProfile.profile_url": "differs from the requested name",
    },
    "retail": {
        "RetailPrice": "default store",
        "RetailAvailability.in_stock": "null for any other status",
        "RetailListing.total_results": "Unreliable",
        "RetailListing.max_page": "Unreliable",
        "RetailListing.has_more": "may be true although the next page is empty",
    },
}
"""Facts that the description of a field or model must state, by its place in the OpenAPI document."""


def places() -> Iterator[tuple[str, str]]:
    for readings in READINGS.values():
        yield from readings.items()


@pytest.mark.parametrize(("place", "reading"), places())
def test_co_readings_are_in_the_openapi_document(place: str, reading: str) -> None:
    name, *field = place.split(".")
    described = reduce(getitem, ("properties", *field) if field else (), SCHEMAS[name])
    assert reading in " ".join(described["description"].split())
