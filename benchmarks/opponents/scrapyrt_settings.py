"""scrapyrt's settings in the benchmarks (``scrapyrt -S``): as for production."""

DEBUG = False  # as its documentation recommends for production: no tracebacks in responses
CRAWL_MANAGER = "benchmarks.opponents.scrapyrt_manager.InfoCrawlManager"
