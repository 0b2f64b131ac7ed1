"""The microblog platform: profiles with their posts."""

from crawler.platforms import Platform

EMBED = "https://syndication.twitter.com"
"""The origin of embedded timelines."""
API = "https://api.x.com"
"""The origin of the guest API."""

PLATFORM = Platform(
    name="microblog",
    origin="https://x.com",
    other_origins=frozenset({EMBED, API}),
    concurrency=2,
    delay=3.0,
    burst=18,
    scrapers=("microblog-profile", "microblog-profile-v4"),
    downloads=5,  # page, embed, token, user, timeline
    sources={
        # The platform allows 50 requests for timelines in 15 minutes. The budget allows 7 + 900 / 21 = 49.
        "timeline": {"concurrency": 1, "delay": 21.0, "burst": 7, "gap": 1.0},
        # After "a few quick requests" for embeds, the platform responded with status 429, for up to 16 minutes.
        "embed": {"concurrency": 1, "delay": 20.0, "burst": 3, "gap": 2.5},
    },
    image_hosts=("*.twimg.com",),
)
