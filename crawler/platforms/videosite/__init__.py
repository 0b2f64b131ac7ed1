"""The video site platform: channels with their videos, shorts and live streams."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="videosite",
    origins={"page": "https://www.youtube.com"},
    concurrency=2,
    delay=1.5,
    downloads=32,  # one for each of a page's 30 items, and two for pages of the channel
    scrapers=("videosite-profile-v3", "videosite-profile"),
    image_hosts=("*.ytimg.com", "*.ggpht.com", "*.googleusercontent.com"),
)
