"""The microblog platform: profiles with their posts."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="microblog",
    origins={"page": "https://x.com", "embed": "https://syndication.twitter.com", "api": "https://api.x.com"},
    concurrency=1,
    delay=3.0,
    scrapers=("microblog-profile", "microblog-profile-v4"),
    downloads=5,  # page, embed, token, user, timeline
    # The platform allows 50 requests for timelines in 15 minutes, or one in 18 s. A margin is added, because the actual
    # intervals vary.
    sources={"timeline": {"concurrency": 1, "delay": 21.0}},
    image_hosts=("*.twimg.com",),
)
