"""A Scrapy project that turns a stream of targets into exactly one outcome each: data, or a typed error."""
