"""A regular package: Scrapy Cloud's runner installs its own ``tests``, which would shadow a namespace package."""
