"""The video site platform: channels with their videos, shorts and live streams."""

from crawler.platforms import Platform

PLATFORM = Platform(
    name="videosite",
    origin="https://www.youtube.com",
    concurrency=2,
    # The best-known client advises visitors to send at most about 1,000 requests an hour. The budget allows
    # 64 + 3600 / 4 = 964.
    delay=4.0,
    burst=64,
    downloads=5,  # the channel's page, the feed or a continuation page, and the details that start within 10 seconds
    scrapers=("videosite-profile-v3", "videosite-profile"),
    image_hosts=("*.ytimg.com", "*.ggpht.com", "*.googleusercontent.com"),
)
