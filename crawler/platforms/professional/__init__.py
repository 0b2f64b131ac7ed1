"""The professional network platform: members' profiles."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="professional",
    origins={"page": "https://www.linkedin.com"},
    concurrency=1,
    # 33 requests in 32 minutes were not blocked, 50 in 3 minutes and "5 to 10" visits of a new visitor were.
    delay=60.0,
    burst=2,
    gap=2.0,
    scrapers=("professional-profile", "professional-profile-v4"),
    image_hosts=("*.licdn.com",),
)
