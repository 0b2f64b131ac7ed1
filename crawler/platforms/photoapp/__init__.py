"""The photo app platform: single posts."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="photoapp",
    origins={"page": "https://www.instagram.com"},
    concurrency=1,
    delay=30.0,
    downloads=2,  # the embed page of a video
    scrapers=("photoapp-post-v4",),
    image_hosts=("*.cdninstagram.com", "*.fbcdn.net"),
)
