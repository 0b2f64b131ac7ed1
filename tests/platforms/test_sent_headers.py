"""The headers of the platforms' requests: all of them, as a browser and the platforms' own pages send them."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from scrapy import Request

from crawler.platforms.microblog import urls as microblog
from crawler.platforms.photoapp import urls as photoapp
from crawler.platforms.professional import urls as professional
from crawler.platforms.requests import shipped_ids
from crawler.platforms.retail import urls as retail
from crawler.platforms.shortvideo import urls as shortvideo
from crawler.platforms.videosite import urls as videosite

NAVIGATION = {
    "Accept-Language": "en-US,en;q=0.9",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-User": "?1",
    "Upgrade-Insecure-Requests": "1",
}
"""What Chromium sends when a user enters an address. ``DEFAULT_REQUEST_HEADERS`` adds what all requests have."""
IDS = shipped_ids(microblog.Ids)
VERSION = videosite.SHIPPED.client_version
COOKIES = {"Cookie": "SOCS=CAE=; PREF=hl=en&tz=UTC"}


@pytest.mark.parametrize(
    ("request_", "headers"),
    [
        pytest.param(photoapp.post_request("DeAZ0uAgNuA"), NAVIGATION, id="photoapp"),
        pytest.param(professional.profile_request("jane-doe"), NAVIGATION, id="professional"),
        pytest.param(retail.listing_request(cat_id="3944"), {}, id="retail"),
        pytest.param(shortvideo.search_request(keywords="boats"), {}, id="shortvideo"),
        pytest.param(microblog.profile_request("harbor"), {}, id="microblog page"),
        pytest.param(
            microblog.token_request(bearer="k"), {"Authorization": "Bearer k", "Accept": "*/*"}, id="microblog token"
        ),
        pytest.param(
            microblog.query_request(IDS, IDS.user, IDS.user.ids[0], {"username": "harbor"}),
            {
                "Accept": "*/*",
                "Authorization": f"Bearer {IDS.bearer}",
                "Content-Type": "application/json",
                "Origin": "https://x.com",
                "Referer": "https://x.com/",
                "X-Twitter-Active-User": "yes",
                "X-Twitter-Client-Language": "en",
            },
            id="microblog query",
        ),
        pytest.param(videosite.channel_request("@a.b", "videos"), COOKIES, id="videosite page"),
        pytest.param(
            videosite.video_request("-abcdefghij"),
            {
                "Accept": "*/*",
                "Content-Type": "application/json",
                **COOKIES,
                "Origin": "https://www.youtube.com",
                "Referer": "https://www.youtube.com",
                "X-Youtube-Client-Name": "1",
                "X-Youtube-Client-Version": VERSION,
            },
            id="videosite call",
        ),
    ],
)
def test_the_headers_of_a_request(request_: Request, headers: dict[str, str]) -> None:
    assert dict(request_.headers.to_unicode_dict()) == headers


def test_a_call_of_the_video_site_states_what_its_web_client_states() -> None:
    request = videosite.video_request("-abcdefghij")
    query = parse_qs(urlsplit(request.url).query)
    assert (set(query), query["prettyPrint"]) == ({"prettyPrint", "$fields"}, ["false"]), "no key"
    body = orjson.loads(request.body)
    assert body == {
        "videoId": "-abcdefghij",
        "contentCheckOk": True,
        "racyCheckOk": True,
        "context": body["context"],
    }
    assert body["context"] == {
        "client": {
            "hl": "en",
            "gl": "US",
            "clientName": "WEB",
            "clientVersion": VERSION,
            "originalUrl": "https://www.youtube.com",
            "platform": "DESKTOP",
            "utcOffsetMinutes": 0,
        },
        "request": {"internalExperimentFlags": [], "useSsl": True},
        "user": {"lockedSafetyMode": False},
    }
