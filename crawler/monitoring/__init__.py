"""Progress and summary of a crawl."""
