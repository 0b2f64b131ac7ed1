"""One spider per platform: the order of its requests, and how their parts are joined."""
