"""The outputs of a crawl: feeds, Parquet, SQL tables."""
