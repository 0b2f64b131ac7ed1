"""The photo app platform: single posts."""

from crawler.platforms import Platform

PLATFORM = Platform(
    name="photoapp",
    origin="https://www.instagram.com",
    concurrency=1,
    # After about 75 pages in an hour, the platform sent pages without data. The budget allows 10 + 3600 / 60 = 70.
    delay=60.0,
    burst=10,
    gap=1.0,
    downloads=2,  # the embed page of a video
    scrapers=("photoapp-post-v4",),
    image_hosts=("*.cdninstagram.com", "*.fbcdn.net"),
)
