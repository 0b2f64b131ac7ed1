"""The professional network platform: members' profiles."""

from crawler.platforms.platform import Platform

PLATFORM = Platform(
    name="professional",
    origins={"page": "https://www.linkedin.com"},
    concurrency=1,
    delay=60.0,
    scrapers=("professional-profile", "professional-profile-v4"),
    image_hosts=("*.licdn.com",),
)
