"""The professional network platform: members' profiles."""

from itertools import product
from string import ascii_lowercase

from crawler.platforms import Platform

PLATFORM = Platform(
    name="professional",
    origin="https://www.linkedin.com",
    # The site redirects to its country editions, whose hosts have two letters instead of "www".
    other_origins=frozenset(f"https://{a}{b}.linkedin.com" for a, b in product(ascii_lowercase, repeat=2)),
    concurrency=1,
    # 33 requests in 32 minutes were not blocked, 50 in 3 minutes and "5 to 10" visits of a new visitor were.
    delay=60.0,
    burst=2,
    gap=2.0,
    scrapers=("professional-profile", "professional-profile-v4"),
    image_hosts=("*.licdn.com",),
)
