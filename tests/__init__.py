"""A regular package: Scrapy Cloud's runner installs a ``tests`` of its own, which would win over a mere folder."""
