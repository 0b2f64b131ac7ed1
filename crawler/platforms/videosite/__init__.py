"""The video site platform: channels with their videos, shorts and live streams."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="videosite",
    origins={"page": "https://www.youtube.com"},
    concurrency=2,
    delay=1.5,
    scrapers=("videosite-profile-v3", "videosite-profile"),
)
