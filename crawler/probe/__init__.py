"""``scrapy probe``: fetches one live target, reports requests and empty fields, and saves its pages as fixtures."""
