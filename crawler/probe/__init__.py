"""``scrapy probe``: one live target, what each request took, what came back null, and a fixture of what was read."""
