"""``scrapy probe``: fetches one live target, reports its requests and empty fields, and saves its pages as fixtures."""
