"""The retail platform: category listings and search results."""

from crawler.platforms import Platform

PLATFORM = Platform(
    name="retail",
    origin="https://www.walmart.com",
    concurrency=2,
    # 55 requests a minute were not blocked. The budget allows 5 + 60 / 2 = 35.
    delay=2.0,
    burst=5,
    scrapers=("retail-category-v4", "retail-search-v4"),
    image_hosts=("*.walmartimages.com", "*.walmartimages.ca"),
)
