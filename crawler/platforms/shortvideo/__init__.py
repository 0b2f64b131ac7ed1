"""The short-video platform: photo posts, found by keyword search."""

from crawler.platforms import Platform

PLATFORM = Platform(
    name="shortvideo",
    origin="https://www.tiktok.com",
    concurrency=2,
    delay=0.0,
    seconds=15.0,  # for a page in the browser
    scrapers=("shortvideo-photo-search-v4",),
    image_hosts=("*.tiktokcdn.com", "*.tiktokcdn-us.com", "*.tiktokcdn-eu.com", "*.muscdn.com"),
)
