"""What a crawl writes: feeds, Parquet, SQL tables."""
