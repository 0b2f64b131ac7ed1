"""The video site: channels with their items."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="videosite",
    origins={"page": "https://www.youtube.com"},
    concurrency=2,
    delay=1.5,
    scrapers=("videosite-profile-v3",),
)
