"""The microblog platform: profiles with their posts."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="microblog",
    origins={"page": "https://x.com", "embed": "https://syndication.twitter.com", "api": "https://api.x.com"},
    concurrency=1,
    delay=3.0,
    scrapers=("microblog-profile", "microblog-profile-v4"),
)
