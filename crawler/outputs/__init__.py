"""The outputs of a crawl: feeds in several formats, and SQL tables."""
