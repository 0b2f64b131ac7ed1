"""scrapyrt's own settings in the benchmark (``scrapyrt -S benchmarks.scrapyrt_settings``)."""

DEBUG = False  # its documentation's word for production: no tracebacks in answers
RESOURCES = {"crawl.json": "benchmarks.scrapyrt_records.RecordResource"}
