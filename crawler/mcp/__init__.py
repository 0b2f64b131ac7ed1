"""``scrapy mcp``: the scrapers of an endpoint as tools of the Model Context Protocol."""
