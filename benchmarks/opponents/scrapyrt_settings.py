"""scrapyrt's own settings in the benchmark (``scrapyrt -S benchmarks.scrapyrt_settings``)."""

DEBUG = False  # as its documentation recommends for production: no tracebacks in responses
RESOURCES = {"crawl.json": "benchmarks.scrapyrt_records.RecordResource"}
