"""One spider per platform: in which order what is fetched, and how the parts are joined."""
