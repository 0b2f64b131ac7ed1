"""A Scrapy project that scrapes targets. Each target has exactly one outcome: data or a typed error."""
